"""The version of everything here: command line, plugin, resources; pyproject.toml says the same (a test compares)."""

from __future__ import annotations

VERSION = "0.1.0"

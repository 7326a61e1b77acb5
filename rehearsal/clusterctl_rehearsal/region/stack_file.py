"""rehearsal.yaml beside a stack: how a person wants the region to behave."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any  # YAML values before they are checked

import yaml
from clusterctl_infra.catalog.reader import load_catalog

from clusterctl_rehearsal.region.existing import existing_problem
from clusterctl_rehearsal.region.settings import Settings, SettingsError, capacity_problem, settings_from_rows

SETTINGS_FILE = "rehearsal.yaml"


def read_settings(folder: Path) -> dict[str, Any]:
    """The rows of the folder's rehearsal.yaml, checked; empty without one. Raises SettingsError."""
    path = folder / SETTINGS_FILE
    try:
        rows = yaml.safe_load(path.read_text()) or {}
    except FileNotFoundError:
        return {}
    except yaml.YAMLError as e:
        raise SettingsError(f"{path}: not YAML ({e})") from e
    if not isinstance(rows, dict):
        raise SettingsError(f"{path}: not a mapping")
    settings = settings_from_rows(rows, source=str(path))
    if (problem := existing_problem(settings.existing)) is not None:
        raise SettingsError(f"{path}: {problem}")
    if settings.capacity:
        _refuse_unknown_types(settings, path)
    return {**rows, "shares": _folders(rows.get("shares", {}))} if "shares" in rows else rows


def _refuse_unknown_types(settings: Settings, path: Path) -> None:
    """Raises SettingsError for a limit of a type that does not exist: misspelt, it would limit nothing."""
    types = load_catalog().names()
    unknown = [
        f"capacity.{problem}" for name in settings.capacity if (problem := capacity_problem(name, types)) is not None
    ]
    if unknown:
        raise SettingsError(f"{path}: " + "; ".join(unknown))


def _folders(shares: Mapping[str, str]) -> dict[str, str]:
    return {str(path): inside for name, inside in shares.items() if (path := Path(name).expanduser()).is_dir()}

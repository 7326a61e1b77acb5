"""What an Identity is made of, as the engine hands it to our provider."""

from __future__ import annotations

from typing import Any  # JSON

IDENTITY: dict[str, Any] = {
    "name": "train",
    "owner": "ada",
    "image_spec": "dlami",
    "image_candidate": "ami-0123456789abcdef0",
    "zone_candidate": "us-west-2b",
    "run": 1,
}

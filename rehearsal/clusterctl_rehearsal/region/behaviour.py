"""The settings that apply now: the last run's rehearsal.yaml, overridden by the faults of this rehearsal."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any  # JSON values

from clusterctl_rehearsal.put_in_place import put_in_place
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.settings import Settings, settings_from_rows

CREDENTIALS_ENDED = "credentials_ended"


class Behaviour:
    """The region's settings and faults, kept on disk so that a restarted region behaves as before."""

    def __init__(self, folder: Path) -> None:
        self._settings_file = folder / "settings.json"
        self._faults_file = folder / "faults.json"
        self._lock = threading.Lock()
        self._rows: dict[str, Any] = _read(self._settings_file)
        self._faults: dict[str, Any] = _read(self._faults_file)

    def settings(self) -> Settings:
        """The settings that apply now."""
        settings = settings_from_rows(self._rows, source="rehearsal.yaml")
        faults = self._faults
        return dataclasses.replace(
            settings,
            capacity=_overridden(settings.capacity, faults.get("capacity")),
            quotas=_overridden(settings.quotas, faults.get("quotas")),
            latency_ms=faults.get("latency_ms", settings.latency_ms),
            images_dated=faults.get("images_dated", settings.images_dated),
        )

    def register(self, rows: Mapping[str, Any]) -> None:
        """Takes the settings of a stack. Raises SettingsError."""
        settings_from_rows(rows, source="rehearsal.yaml")
        with self._lock:
            self._rows = dict(rows)
            put_in_place(self._settings_file, json.dumps(self._rows))

    def faults(self) -> dict[str, Any]:
        """The settings that faults have changed."""
        return dict(self._faults)

    def check_credentials(self) -> None:
        """Raises AwsError if the person's credentials have expired (EC2 and IAM, common errors: ExpiredToken)."""
        if self._faults.get(CREDENTIALS_ENDED):
            raise AwsError("ExpiredToken", "The security token included in the request is expired", status=403)

    def set_fault(self, key: str, value: Any) -> None:
        """Overrides a setting; None ends that."""
        with self._lock:
            self._set(key, value)

    def set_fault_entry(self, key: str, name: str, value: Any) -> None:
        """Overrides one entry of a mapping, such as the capacity of one type; None ends that."""
        with self._lock:
            self._set(key, _without_none({**self._faults.get(key, {}), name: value}) or None)

    def _set(self, key: str, value: Any) -> None:
        self._faults = _without_none({**self._faults, key: value})
        put_in_place(self._faults_file, json.dumps(self._faults))


def _without_none(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kept for name, kept in entries.items() if kept is not None}


def _overridden(settings: Mapping[str, int], faults: Mapping[str, int] | None) -> dict[str, int]:
    return {**settings, **(faults or {})}


def _read(path: Path) -> dict[str, Any]:
    try:
        rows = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return rows if isinstance(rows, dict) else {}

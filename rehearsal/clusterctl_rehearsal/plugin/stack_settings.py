"""What the plugin knows of the run it serves: the stack's rehearsal.yaml, the proof that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # YAML values before they are checked

import yaml
from clusterctl_infra.names import NONCE_VARIABLE, STACK_DIR_VARIABLE

from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.region.settings import SettingsError, settings_from_rows

SETTINGS_FILE = "rehearsal.yaml"


@dataclass(frozen=True, kw_only=True)
class StackContext:
    """One engine run. `default_region`: what AWS's own variables say."""

    home: RehearsalHome
    folder: Path
    nonce: str | None
    default_region: str | None

    def settings(self) -> dict[str, Any]:
        """rehearsal.yaml, checked; empty without one. Raises SettingsError."""
        path = self.folder / SETTINGS_FILE
        try:
            rows = yaml.safe_load(path.read_text()) or {}
        except FileNotFoundError:
            return {}
        except yaml.YAMLError as e:
            raise SettingsError(f"{path}: not YAML ({e})") from e
        if not isinstance(rows, dict):
            raise SettingsError(f"{path}: not a mapping")
        settings_from_rows(rows, source=str(path))
        return {**rows, "shares": _folders(rows.get("shares", {}))} if "shares" in rows else rows

    @property
    def machines(self) -> str:
        """What boots behind the stack's instances."""
        return settings_from_rows(self.settings(), source=SETTINGS_FILE).machines

    def prove(self) -> None:
        """Leaves the run's nonce where our own provider looks for it: it was the stand-in that answered."""
        if self.nonce is not None and self.nonce.isalnum():
            self.home.proof.mkdir(parents=True, exist_ok=True)
            (self.home.proof / self.nonce).touch()


def stack_context(environment: Mapping[str, str], *, home: RehearsalHome, folder: Path) -> StackContext:
    """The context of this process. `folder`: where the engine started it, unless the environment says otherwise."""
    return StackContext(
        home=home,
        folder=Path(environment.get(STACK_DIR_VARIABLE) or folder),
        nonce=environment.get(NONCE_VARIABLE) or None,
        default_region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None,
    )


def _folders(shares: Mapping[str, str]) -> dict[str, str]:
    return {str(path): inside for name, inside in shares.items() if (path := Path(name).expanduser()).is_dir()}

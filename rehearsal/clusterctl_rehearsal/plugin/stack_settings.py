"""What the plugin knows of the engine run that it serves: the stack's rehearsal.yaml, and the run's nonce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # YAML values before they are checked

from clusterctl_infra.names import NONCE_VARIABLE, STACK_DIR_VARIABLE
from clusterctl_infra.private_home import make_private_folder

from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.region.settings import settings_from_rows
from clusterctl_rehearsal.region.stack_file import SETTINGS_FILE, read_settings


@dataclass(frozen=True, kw_only=True)
class StackContext:
    """The context of one engine run. `default_region`: the region in AWS's own environment variables."""

    home: RehearsalHome
    folder: Path
    nonce: str | None
    default_region: str | None

    def settings(self) -> dict[str, Any]:
        """rehearsal.yaml, checked; empty without one. Raises SettingsError."""
        return read_settings(self.folder)

    @property
    def machines(self) -> str:
        """The kind of machine behind the stack's instances."""
        return settings_from_rows(self.settings(), source=SETTINGS_FILE).machines

    def prove(self) -> None:
        """Leaves the run's nonce where our own provider looks for it, to prove that the stand-in answered."""
        if self.nonce is not None and self.nonce.isalnum():
            make_private_folder(self.home.proof)
            (self.home.proof / self.nonce).touch()


def stack_context(environment: Mapping[str, str], *, home: RehearsalHome, folder: Path) -> StackContext:
    """The context of this process. `folder`: where the engine started it, unless the environment says otherwise."""
    return StackContext(
        home=home,
        folder=Path(environment.get(STACK_DIR_VARIABLE) or folder),
        nonce=environment.get(NONCE_VARIABLE) or None,
        default_region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None,
    )

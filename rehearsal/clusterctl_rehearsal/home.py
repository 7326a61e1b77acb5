"""The files and folders of a rehearsal."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.home_path import home_path
from clusterctl_infra.names import HOME_VARIABLE, REGION_KEYS_FILE, REGION_TOKEN_FILE


@dataclass(frozen=True, kw_only=True)
class RehearsalHome:
    """`$CLUSTERCTL_HOME/rehearsal`: one region server, its state, its machines."""

    root: Path

    @property
    def endpoint_file(self) -> Path:
        """JSON that says where the running region listens; written once it does."""
        return self.root / "region.json"

    @property
    def lock_file(self) -> Path:
        """Held by the region for as long as it runs."""
        return self.root / "region.lock"

    @property
    def start_lock_file(self) -> Path:
        """The lock file that a process holds while it starts a region."""
        return self.root / "start.lock"

    @property
    def log_file(self) -> Path:
        return self.root / "region.log"

    @property
    def token_file(self) -> Path:
        """The password of the region's private requests, readable by its owner only."""
        return self.root / REGION_TOKEN_FILE

    @property
    def keys_file(self) -> Path:
        """The key pair that calls of the region's AWS are signed with, readable by its owner only."""
        return self.root / REGION_KEYS_FILE

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def machines(self) -> Path:
        return self.root / "machines"

    @property
    def executions_file(self) -> Path:
        """The executions of state machines that have ended, one a line."""
        return self.root / "executions.jsonl"

    @property
    def shares(self) -> Path:
        """The folders that stand for file systems, each named by the file system's id."""
        return self.root / "shares"

    @property
    def buckets(self) -> Path:
        """The initial content of S3's buckets: one folder for each bucket."""
        return self.root / "buckets"

    @property
    def proof(self) -> Path:
        """The nonces of engine runs that the stand-in plugin has served, an empty file for each."""
        return self.root / "proof"


def rehearsal_home(environment: Mapping[str, str]) -> RehearsalHome:
    """The rehearsal's part of the home that `CLUSTERCTL_HOME` names, or of the default one."""
    return RehearsalHome(root=home_path(environment) / "rehearsal")


def clean_command(cluster: str, folder: Path | None) -> str:
    """The command that removes a cluster. `folder`: another home's machines; None: the home in which it is typed."""
    where = "" if folder is None else f"{HOME_VARIABLE}={shlex.quote(str(folder.parent.parent))} "
    return f"{where}clusterctl rehearse clean {cluster}"


def current_home() -> RehearsalHome:
    """The home of this process's environment."""
    return rehearsal_home(os.environ)


def cache_folder() -> Path:
    """The folder with what all rehearsals share, such as the base image."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("CLUSTERCTL_CACHE") or f"{base}/clusterctl")

"""Where clusterctl keeps what it knows on this computer: `$CLUSTERCTL_HOME`, else `~/.local/state/clusterctl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import UsageError
from clusterctl_infra.home_path import home_path, other_home
from clusterctl_infra.names import PRICES_FILE


@dataclass(frozen=True, kw_only=True)
class Home:
    """The folders below `path`; none of them need exist."""

    path: Path

    @property
    def inventory_dir(self) -> Path:
        """One `<cluster>.json` per cluster."""
        return self.path / "inventory"

    @property
    def keys_dir(self) -> Path:
        """One folder per cluster: login key, known_hosts."""
        return self.path / "keys"

    @property
    def ledger_dir(self) -> Path:
        """One append-only `<cluster_id>.jsonl` per cluster."""
        return self.path / "ledger"

    @property
    def observed_dir(self) -> Path:
        """One append-only `<cluster_id>.jsonl` per cluster: what AWS said of its machines and reservations."""
        return self.path / "observed"

    @property
    def prices_file(self) -> Path:
        """Prices that `clusterctl prices refresh` asked for; newer than the shipped ones."""
        return self.path / PRICES_FILE

    @property
    def runs_dir(self) -> Path:
        """One `<cluster>.json` per run of the engine that is under way, failed or was killed."""
        return self.path / "runs"

    @property
    def apps_dir(self) -> Path:
        """One stack folder per app of a Python program that has a cluster of its own."""
        return self.path / "apps"

    @property
    def purchases_dir(self) -> Path:
        """One `<cluster>.json` per cluster that a capacity block was, or may have been, bought for."""
        return self.path / "purchases"

    @property
    def job_clusters_dir(self) -> Path:
        """One file per job that this computer started: the name of its cluster."""
        return self.path / "job-clusters"

    @property
    def jobs_dir(self) -> Path:
        """One folder per cluster, and in it one per job, with the job's kept output."""
        return self.path / "jobs"

    @property
    def rehearsal_dir(self) -> Path:
        """The rehearsed region: its server's files, what exists in it, its machines, the engine's state."""
        return self.path / "rehearsal"

    @property
    def warm_dir(self) -> Path:
        """The sockets of the processes that keep connections for later commands."""
        return self.path / "warm"

    @property
    def log_dir(self) -> Path:
        """Tracebacks of unexpected failures, and the events of the engine's runs."""
        return self.path / "log"

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """The clusters that this computer has an inventory of, sorted."""
        try:
            return tuple(sorted(path.stem for path in self.inventory_dir.glob("*.json")))
        except OSError:
            return ()

    def inventory_file(self, cluster: str) -> Path:
        """The inventory of `cluster`, whose name ends in `@rehearsal` if it is rehearsed."""
        return self.inventory_dir / f"{cluster}.json"

    def run_file(self, cluster: str) -> Path:
        """The engine's run for `cluster` that is under way, failed or was killed."""
        return self.runs_dir / f"{cluster}.json"

    def purchase_file(self, cluster: str) -> Path:
        """The last purchase of a capacity block for `cluster`."""
        return self.purchases_dir / f"{cluster}.json"

    def ledger_file(self, cluster_id: str) -> Path:
        """The append-only account of the cluster with this id."""
        return self.ledger_dir / f"{cluster_id}.jsonl"

    def observed_file(self, cluster_id: str) -> Path:
        """What AWS said of the machines and reservations of the cluster with this id."""
        return self.observed_dir / f"{cluster_id}.jsonl"


def home_directory(environ: Mapping[str, str]) -> Home:
    """The home that `environ` names. Raises UsageError where that is a file."""
    home = named_home(environ)
    if home.path.is_file():
        raise UsageError(f"{home.path} is a file; clusterctl keeps what it knows in a folder", hint=other_home(environ))
    return home


def named_home(environ: Mapping[str, str]) -> Home:
    """The home that `environ` names, whatever is there: for code that reports failures."""
    return Home(path=home_path(environ))

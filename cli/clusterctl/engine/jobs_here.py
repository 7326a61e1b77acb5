"""Which cluster each job that this computer started runs on, so that its name is enough to find the cluster."""

from __future__ import annotations

import contextlib
from pathlib import Path

from clusterctl_infra.names import clusters_called
from clusterctl_infra.private_home import make_private_folder

from clusterctl.home import Home

MOST_JOBS = 500
LONGEST_NAME = 200


def note_job(job: str, cluster: str, home: Home) -> None:
    """Keeps where the job runs, and forgets the oldest jobs beyond MOST_JOBS; a full disk does not fail the job."""
    with contextlib.suppress(OSError):
        make_private_folder(home.job_clusters_dir)
        known = sorted(home.job_clusters_dir.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in known[: max(0, len(known) + 1 - MOST_JOBS)]:
            path.unlink(missing_ok=True)
        (home.job_clusters_dir / job).write_text(f"{cluster}\n", encoding="utf-8")


def cluster_of_job(job: str, home: Home) -> str | None:
    """The cluster of a job that was started here, if it is still known; None, too, for the name of a node."""
    if not job or len(job) > LONGEST_NAME or Path(job).name != job:
        return None
    try:
        cluster = (home.job_clusters_dir / job).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    known = home.cluster_names
    base, _, number = job.rpartition("-")
    if number.isdecimal() and {*clusters_called(base)} & {*known}:
        return None
    return cluster if cluster in known else None

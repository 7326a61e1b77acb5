"""What is left of a job on its cluster's nodes: nothing, once it has ended."""

from __future__ import annotations

from tests.integration.rehearsed import Rehearsed


def left_of(cluster: Rehearsed, job: str) -> str:
    """Processes with the job in their environment, and files that say that it runs or holds a node; empty: nothing."""
    look = (
        f"grep -lsz '^CLUSTERCTL_JOB={job}$' /proc/[0-9]*/environ; "
        f"ls -d /run/clusterctl/jobs/{job} /run/clusterctl/job-secrets/{job} 2>/dev/null; "
        f"ls /run/clusterctl/job-lease 2>/dev/null | grep '^{job}\\.'; true"
    )
    return cluster.ok("ssh", "--node", "all", "--command", look).strip()

"""What is left of a job on its cluster's nodes: nothing, once it has ended."""

from __future__ import annotations

from tests.integration.rehearsed import Rehearsed

WAIT = 'for _ in $(seq 150); do left=$({look}); [ -n "$left" ] || exit 0; sleep 0.2; done; echo "$left"'
"""Half a minute, by the nodes themselves: asked again and again, each command takes 0.7 s of the processor."""


def left_of(cluster: Rehearsed, job: str) -> str:
    """Processes with the job in their environment, and files that say that it runs or holds a node; empty: nothing."""
    return cluster.ok("ssh", "--node", "all", "--command", _look(job)).strip()


def left_in_the_end(cluster: Rehearsed, job: str) -> str:
    """What `left_of` gives: empty as soon as nothing is left, else what is there after half a minute."""
    return output_in_the_end(cluster, _look(job))


def output_in_the_end(cluster: Rehearsed, look: str, *flags: str, node: str = "all") -> str:
    """The output of `look` on the nodes: empty as soon as it prints nothing, else as it is after half a minute."""
    return cluster.ok("ssh", "--node", node, *flags, "--command", WAIT.format(look=look)).strip()


def _look(job: str) -> str:
    return (
        f"grep -lsz '^CLUSTERCTL_JOB={job}$' /proc/[0-9]*/environ; "
        f"ls -d /run/clusterctl/jobs/{job} /run/clusterctl/job-secrets/{job} 2>/dev/null; "
        f"ls /run/clusterctl/job-lease 2>/dev/null | grep '^{job}\\.'; true"
    )

"""A shell command that lists a node's running jobs, to append to another command. It needs no root."""

from __future__ import annotations

import re

LINE = (
    "for mark in /run/clusterctl/jobs/*; do job=${mark##*/}; "
    'if [ -e "/var/lib/clusterctl/jobs/$job/spec.json" ] && read -r pid start <"$mark" && [ -e "/proc/$pid" ]; '
    'then echo "job $job"; fi; done 2>/dev/null'
)
"""Prints `job NAME` for each job that has a spec here, and a mark that names a living process: the job's keeper."""
PRINTED = re.compile(r"job ([a-z0-9][a-z0-9-]{0,39})", re.ASCII)
MOST = 100


def running_jobs(text: str) -> tuple[str, ...]:
    """The names in what `LINE` printed, sorted."""
    found = (PRINTED.fullmatch(line) for line in text.splitlines())
    return tuple(sorted({match[1] for match in found if match is not None}))[:MOST]


def other_lines(text: str) -> str:
    """The other output, without the lines about jobs."""
    return "\n".join(line for line in text.splitlines() if PRINTED.fullmatch(line) is None)

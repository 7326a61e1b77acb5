"""Which files of a job's folder on a node say how the job went."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Tuple

from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.output_log import segments


def log_rows(layout: Layout, job: str) -> Iterator[Tuple[Path, str]]:
    """How the job went, and all attempts' output; a rank's own log where the node's output has lost its beginning."""
    folder = layout.folder(job)
    for path in (*files_of(layout, job), folder / "supervisor.log"):
        if path.exists():
            yield path, path.name
    for attempt in sorted(folder.glob("attempt-*")):
        numbers = segments(attempt)
        for path in sorted(attempt.glob("output.??????")):
            yield path, "%s/%s" % (attempt.name, path.name)
        for path in sorted((attempt / "ranks").glob("*")):
            if path.suffix == ".json" or (numbers and numbers[0] > 1 and ".log" in path.name):
                yield path, "%s/ranks/%s" % (attempt.name, path.name)
        for path in sorted(attempt.glob("*.log")):
            yield path, "%s/%s" % (attempt.name, path.name)


def files_of(layout: Layout, job: str) -> Tuple[Path, ...]:
    """The files that the supervisor writes here about the whole job."""
    return (layout.spec(job), layout.state(job), layout.events(job))

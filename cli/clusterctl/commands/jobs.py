"""`clusterctl jobs`: the jobs of a cluster."""

from __future__ import annotations

import click
from clusterctl_infra.errors import SomeNodesFailed

from clusterctl.jobs.known import job_nodes, known_jobs
from clusterctl.jobs.shown import HEADER, state_json, table_row
from clusterctl.options import chosen_cluster, cluster_option, connect_timeout_option, json_option
from clusterctl.output import Output

HELP = """Lists the jobs of a cluster and their states, as its nodes know them: the same from every computer.

Unfinished jobs come first. The exit code is 4 when a node was not reached, 255 when none was.

\b
Examples:
  clusterctl jobs
  clusterctl jobs --json
"""


@click.command("jobs", help=HELP)
@cluster_option
@connect_timeout_option(default="10s")
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, connect_timeout: float, as_json: bool) -> int:
    known = known_jobs(job_nodes(chosen_cluster(cluster), connect_timeout_s=connect_timeout))
    if as_json:
        output.json([state_json(job) for job in known.jobs])
    elif known.jobs:
        output.table(HEADER, [table_row(job) for job in known.jobs], right=("ranks",))
    else:
        output.note("no job\n  next: clusterctl run -- train.py")
    for answer in known.unheard:
        output.note(answer.error_line)
    return SomeNodesFailed.exit_code if known.unheard else 0

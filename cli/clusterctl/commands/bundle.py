"""`clusterctl bundle`: one archive for a colleague or an issue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any  # JSON

import click
from clusterctl_infra.outputs import Inventory

from clusterctl.bundle.request import BundleRequest, carry_out
from clusterctl.home import home_directory
from clusterctl.options import cluster_option, connect_timeout_option, size_option
from clusterctl.output import Output
from clusterctl.probes.sweep import Sweep, chosen_probes, swept
from clusterctl.probes.view import sweep_json
from clusterctl.ssh.remote_command import usable_keys

SWEEP_S = 60.0


@click.command("bundle")
@cluster_option
@click.option(
    "--output",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the archive here.  [./bundle-….tar.gz]",
)
@size_option("--limit", default="1GiB", help="The most of the job's files, before they are compressed.")
@connect_timeout_option(default="10s")
@click.argument("job", metavar="[JOB]", required=False)
@click.pass_obj
def command(
    output: Output, cluster: str | None, target: Path | None, limit: int, connect_timeout: float, job: str | None
) -> int:
    """Packs what is known of a cluster into one archive, for a colleague or an issue; with JOB its output, too.

    The archive has versions, the cluster as this computer knows it, all jobs' states, what each node says of itself
    (status, disks, memory, GPUs, kernel log, clusterctl's units), and a sweep. If the cluster is gone, it has what was
    kept of the job. *** replaces what looks like a secret: the values of --secret, variables and flags whose names say
    so, and keys in known forms. Look through it before you send it. The exit code is 4 when a node did not answer or
    files were left out.

    \b
    Examples:
      clusterctl bundle
      clusterctl bundle train-1123-101500 --output for-ada.tar.gz
    """

    def health(inventory: Inventory) -> Any:
        sweep = Sweep(
            inventory=inventory,
            nodes=inventory.nodes,
            probes=chosen_probes(()),
            is_chosen=False,
            keys=usable_keys(inventory, home_directory(os.environ)),
            connect_timeout_s=connect_timeout,
            timeout_s=SWEEP_S,
        )
        return sweep_json(swept(sweep))

    request = BundleRequest(
        cluster=cluster, job=job, target=target, most_bytes=limit * 1024**3, connect_timeout_s=connect_timeout
    )
    return carry_out(request, output, health)

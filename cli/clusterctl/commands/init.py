"""`clusterctl init`: write the folder of a new stack."""

from __future__ import annotations

import os
import shlex
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.catalog.reader import load_catalog

from clusterctl.home import home_directory
from clusterctl.lifecycle.new_stack import NewStack, write_new_stack
from clusterctl.options import StackFolder, count_option
from clusterctl.output import Output

PRIVATE = "private nodes, reached through AWS's Session Manager; --ssh-from makes them public, for one network alone"


def complete_regions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the catalog's regions."""
    return [name for name in load_catalog().regions() if name.startswith(incomplete)]


def complete_types(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the catalog's instance types."""
    return [name for name in load_catalog().names() if name.startswith(incomplete)]


@click.command("init")
@click.argument("folder", metavar="NAME", type=StackFolder(is_new=True))
@click.option("--region", metavar="REGION", shell_complete=complete_regions, help="The AWS region, such as us-west-2.")
@click.option(
    "--type",
    "instance_type",
    metavar="TYPE",
    shell_complete=complete_types,
    help="The machine of each node, such as p5.48xlarge.",
)
@click.option("--gpus", metavar="GPUS", help="Instead of --type: the GPUs of each node, such as h100:8.")
@count_option("--nodes", help="How many nodes; 2 if left out.")
@click.option(
    "--ssh-from",
    metavar="CIDR",
    multiple=True,
    help="Nodes get public addresses, which this network alone reaches; your own is $(curl -s "
    "https://checkip.amazonaws.com)/32. Left out: no public address. May be repeated.",
)
@click.option("--runtime", metavar="TIME", default="8h", show_default=True, help="When the cluster ends by itself.")
@click.option("--budget", metavar="USD", help="What the cluster may cost, over all its runs.")
@click.pass_obj
def command(
    output: Output,
    folder: Path,
    region: str | None,
    instance_type: str | None,
    gpus: str | None,
    nodes: int | None,
    ssh_from: tuple[str, ...],
    runtime: str,
    budget: str | None,
) -> None:
    """Writes a new stack folder NAME, which `plan` and `up` take as it is.

    NAME is also the name of the cluster and of its Pulumi project. AWS is not asked. If `plan` would refuse the
    result, all problems are reported and nothing is written. Add everything else that a cluster can have to the
    folder's cluster.yaml.

    \b
    Example:
      clusterctl init stacks/mine --region us-west-2 --type p5.48xlarge --nodes 4
      clusterctl plan stacks/mine
    """
    asked = NewStack(
        folder=folder,
        region=region,
        instance_type=instance_type,
        gpus=gpus,
        nodes=2 if nodes is None else nodes,
        ssh_from=ssh_from,
        runtime=runtime,
        budget_usd=budget,
    )
    write_new_stack(asked, home=home_directory(os.environ), now=datetime.now(UTC).replace(microsecond=0))
    output.note(f"wrote {folder}: Pulumi.yaml, __main__.py, cluster.yaml")
    if not ssh_from:
        output.note(f"  {PRIVATE}")
    shown = shlex.quote(str(folder))
    output.note(f"  next: clusterctl plan {shown}")

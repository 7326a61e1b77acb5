"""`clusterctl up`: creates or updates a cluster, and waits until every node is ready."""

from __future__ import annotations

import os
from pathlib import Path

import click
from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import USUAL_STACK_NAME

from clusterctl.engine.whereabouts import whereabouts_of_cluster
from clusterctl.home import home_directory
from clusterctl.hosts.folder import HostsFolder, hosts_folder_of, refuse_flags
from clusterctl.hosts.up import HostsUp, bring_up_hosts
from clusterctl.lifecycle.retry_up import bring_up_in_time
from clusterctl.lifecycle.up import bring_up
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.options import StackFolder, chosen_cluster, complete_clusters, count_option, json_option, time_option
from clusterctl.output import Output

HOSTS_FLAGS = ("stack_dir", "cluster", "yes", "is_forced", "reorder_ranks", "ready_timeout", "as_json")
"""The parameters that apply to `target: hosts`."""


@click.command("up")
@click.argument("stack_dir", metavar="[STACK]", type=StackFolder(), required=False)
@click.option(
    "--cluster",
    metavar="NAME",
    shell_complete=complete_clusters,
    help="Instead of STACK: a cluster that is known on this computer.",
)
@click.option("--stack-name", metavar="NAME", default=USUAL_STACK_NAME, show_default=True, help="The Pulumi stack.")
@click.option("--rehearse", is_flag=True, help="Rehearse: on this computer instead of AWS, at no cost.")
@count_option("--nodes", help="This many nodes, until cluster.yaml says another number.")
@click.option("--yes", "-y", is_flag=True, help="Agree to the price without being asked.")
@click.option("--buy", is_flag=True, help="Buy a capacity block that is looked for, without being asked.")
@click.option("--ask", is_flag=True, help="In a rehearsal: ask as on AWS.")
@click.option("--retry-until-up", is_flag=True, help="While AWS has no capacity: try again, with longer pauses.")
@time_option("--for", parameter="for_s", default="6h", help="With --retry-until-up: start no try after this time.")
@click.option("--reorder-ranks", is_flag=True, help="With `ranks: topology`: order the ranks again.")
@click.option(
    "--force", "is_forced", is_flag=True, help="Even if this ends nodes on which jobs run: the jobs are lost."
)
@click.option(
    "--replace-failed", is_flag=True, help="Replace nodes whose boot or script failed, without being asked about them."
)
@time_option(
    "--ready-timeout",
    default=None,
    help="How long nodes may take: 10m (a rehearsal, hosts: 2m), 30m for each hook, longer while they make progress.",
)
@json_option
@click.pass_obj
def command(
    output: Output,
    stack_dir: Path | None,
    cluster: str | None,
    stack_name: str,
    rehearse: bool,
    nodes: int | None,
    yes: bool,
    buy: bool,
    ask: bool,
    retry_until_up: bool,
    reorder_ranks: bool,
    is_forced: bool,
    replace_failed: bool,
    ready_timeout: float | None,
    as_json: bool,
    for_s: float,
) -> None:
    """Creates or updates the cluster of the folder STACK, and waits until every node is ready.

    It first repairs what an interrupted command left behind, and replaces machines that are gone. A node whose boot or
    script failed is replaced only if you agree, because the data on its disks is lost: `up` asks at a terminal, but not
    with --yes or --json; --replace-failed agrees. If AWS lacks capacity for a new cluster, no node is left, only
    storage that holds data, with its network. On AWS you agree to the price first: above $20 an hour, or $500 until
    the deadline, or if a price is not known, by typing the cluster's name. With --json or without a terminal nobody is
    asked, and only --yes agrees to a price; in a rehearsal only --ask asks about it. --json prints the nodes at the
    end. The exit code is 4 when a node is not ready. With --retry-until-up nothing bills between two tries.

    With `capacity_block: {find: …}` a capacity block is bought after a question of its own, which shows the sum. The
    sum is not refunded. --yes does not agree to that, --buy does. Until the block begins, --retry-until-up waits.

    With `target: hosts`, up makes existing machines nodes: docs/hosts.md.

    \b
    Examples:
      clusterctl up stacks/train
      clusterctl up stacks/train --rehearse --nodes 2
    """
    hosts = hosts_folder_of(stack_dir, cluster)
    if hosts is None and cluster is not None:
        stack_dir, stack_name, rehearse = _folder_of(cluster, stack_dir)
    request = UpRequest(
        stack_dir=Path() if stack_dir is None else stack_dir,
        stack_name=stack_name,
        rehearse=rehearse,
        nodes=nodes,
        is_agreed=yes,
        buys=buy,
        ready_timeout_s=ready_timeout,
        reorders_ranks=reorder_ranks,
        asks_in_rehearsal=ask,
        as_json=as_json,
        is_forced=is_forced,
        replaces_failed=replace_failed,
    )
    if hosts is not None:
        return _make_nodes(hosts, request, output)
    return _bring_up(request, output, retries_s=for_s if retry_until_up else None)


def _make_nodes(hosts: HostsFolder, request: UpRequest, output: Output) -> None:
    refuse_flags(but=HOSTS_FLAGS)
    given = HostsUp(
        folder=hosts,
        is_agreed=request.is_agreed,
        is_forced=request.is_forced,
        as_json=request.as_json,
        reorders_ranks=request.reorders_ranks,
        ready_timeout_s=request.ready_timeout_s,
    )
    bring_up_hosts(given, output, home_directory(os.environ))


def _bring_up(request: UpRequest, output: Output, *, retries_s: float | None) -> None:
    if retries_s is not None:
        bring_up_in_time(request, output, os.environ, for_s=retries_s)
    else:
        bring_up(request, output, os.environ)


def _folder_of(cluster: str, stack_dir: Path | None) -> tuple[Path, str, bool]:
    """The cluster's folder, its stack's name, and whether it is rehearsed. Raises UsageError if a folder was typed."""
    if stack_dir is not None:
        raise UsageError(f"the folder {stack_dir} and --cluster {cluster}: give only one of them")
    where = whereabouts_of_cluster(chosen_cluster(cluster))
    return where.stack.directory, where.stack.name, where.rehearse

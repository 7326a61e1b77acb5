"""The flags that several verbs share: the same word means the same everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from clusterctl_infra.config.quantities import parse_seconds, parse_size_gib
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.engine.known_clusters import find_cluster
from clusterctl.home import home_directory, named_home
from clusterctl.text.cluster_word import cluster_word
from clusterctl.text.next_commands import nodes_again
from clusterctl.text.node_set import ALL, own_names, parse_node_set

F = TypeVar("F", bound=Callable[..., object])
NO_LIMIT = 999_999_999
NODES_HELP = "The nodes: 2, or 0,2-5, or train-2, or all."
EMPTY = "empty, as from a shell variable that is not set; name {what}, or leave it out"
"""An empty name would mean this folder, or the only cluster, and `down --yes` would end it."""


def chosen_cluster(name: str | None) -> Inventory:
    """The inventory of the cluster that `--cluster` or `$CLUSTERCTL_CLUSTER` names, else of the only one."""
    return find_cluster(home_directory(os.environ), name=name, environ=os.environ)


def cluster_but_not_hosts(name: str | None, *, verb: str, instead: str) -> Inventory:
    """The chosen cluster, for verbs that need machines that clusterctl made. Raises UsageError for hosts."""
    inventory = chosen_cluster(name)
    if inventory.is_hosts:
        message = f"{verb} is not for {inventory.cluster}, whose machines are not clusterctl's: {instead}"
        raise UsageError(message, hint=f"clusterctl status --cluster {inventory.cluster}")
    return inventory


def chosen_nodes(inventory: Inventory, text: str) -> tuple[int, ...]:
    """The slots that the text of `--node` means in this cluster."""
    slots = [node.slot for node in inventory.nodes]
    return parse_node_set(
        text, cluster=inventory.name, slots=slots, look=nodes_again(inventory), names=own_names(inventory)
    )


def chosen_rows(inventory: Inventory, text: str) -> tuple[InventoryNode, ...]:
    """The nodes that the text of `--node` means, ascending."""
    slots = set(chosen_nodes(inventory, text))
    return tuple(node for node in inventory.nodes if node.slot in slots)


class StackFolder(click.Path):
    """The click type of a stack's folder."""

    def __init__(self, *, is_new: bool = False) -> None:
        """`is_new`: the folder is yet to be made, so that a cluster may have its name."""
        super().__init__(path_type=Path)
        self._is_new = is_new

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail(EMPTY.format(what="the folder"), param, ctx)
        if ctx is not None and not self._is_new and not os.path.exists(value):
            refuse_cluster_for_folder(os.fspath(value), ctx)
        return super().convert(value, param, ctx)


def refuse_cluster_for_folder(word: str, ctx: click.Context) -> None:
    """Raises UsageError if a word that is no folder names a known cluster, or a node of one."""
    flags = [flag for parameter in ctx.command.params for flag in parameter.opts]
    named = cluster_word(word, named_home(os.environ).cluster_names, typed=ctx.command_path, flags=flags)
    if named is not None:
        message = f"there is no folder {word}, but {word} is {named.kind}: write it after {named.flag}"
        raise UsageError(message, hint=named.hint)


def cluster_option(function: F) -> F:
    """Adds `--cluster NAME`."""

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value == "":
            raise click.BadParameter(EMPTY.format(what="the cluster"), ctx=ctx, param=param)
        return value

    return click.option(
        "--cluster",
        metavar="NAME",
        callback=convert,
        shell_complete=complete_clusters,
        help="The cluster; else $CLUSTERCTL_CLUSTER, else the only one known here.",
    )(function)


def inventory_option(function: F) -> F:
    """Adds `--inventory FILE`, passed as `file`."""
    kind = click.Path(path_type=Path)
    return click.option("--inventory", "file", metavar="FILE", type=kind, help="Use the machines in this file.")(
        function
    )


def node_option(*, default: str | None, help: str) -> Callable[[F], F]:
    """Adds `--node SET` with this default, which is shown, and this help."""
    return click.option(
        "--node", metavar="SET", default=default, show_default=True, shell_complete=complete_nodes, help=help
    )


def connect_timeout_option(*, default: str | None, shown: str | None = None) -> Callable[[F], F]:
    """Adds `--connect-timeout TIME`, passed as `connect_timeout` in seconds; `shown` says what None stands for."""
    default_words = "" if shown is None else f" ({shown})"
    help = f"How long connecting and logging in to a node may take{default_words}."
    return time_option("--connect-timeout", default=default, help=help)


def time_option(name: str, *, default: str | None, help: str, parameter: str | None = None) -> Callable[[F], F]:
    """Adds a flag for a time, passed in seconds; as `parameter`, if the flag's own name cannot be a Python name."""
    names = (name,) if parameter is None else (name, parameter)

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
        try:
            return None if value is None else parse_seconds(value)
        except ValueError as e:
            raise click.BadParameter(str(e), ctx=ctx, param=param) from e

    return click.option(*names, metavar="TIME", default=default, show_default=True, callback=convert, help=help)


def size_option(name: str, *, default: str, help: str) -> Callable[[F], F]:
    """Adds a flag for a size, passed in whole GiB."""

    def convert(ctx: click.Context, param: click.Parameter, value: str) -> int:
        try:
            return parse_size_gib(value)
        except ValueError as e:
            raise click.BadParameter(str(e), ctx=ctx, param=param) from e

    return click.option(name, metavar="SIZE", default=default, show_default=True, callback=convert, help=help)


def count_option(name: str, *, help: str, most: int = NO_LIMIT) -> Callable[[F], F]:
    """Adds a flag for how many, passed as a whole number from 1 to `most`; None when it is not given."""

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) < 10 and 0 < int(value) <= most):
            allowed = "a whole number from 1" + (f" to {most}" if most < NO_LIMIT else "")
            raise click.BadParameter(f"{value!r}: write how many, {allowed}", ctx=ctx, param=param)
        return int(value)

    return click.option(name, metavar="N", callback=convert, help=help)


def environment_pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Variable → its value. Raises click.BadParameter for a text that is not NAME=VALUE."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise click.BadParameter(f"{name + equals!r}: write NAME=VALUE", ctx=ctx, param=param)
    return {name: value for name, _, value in pairs}


def environment_option(function: F) -> F:
    """Adds `--env KEY=VALUE`, as often as wanted, passed as the dictionary `env`."""

    help_text = "A variable for the command; may be repeated."
    return click.option("--env", metavar="KEY=VALUE", multiple=True, callback=environment_pairs, help=help_text)(
        function
    )


def json_option(function: F) -> F:
    """Adds `--json`, passed as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="JSON to stdout instead of text.")(function)


def names_option(*, default: bool | None, usual: str) -> Callable[[F], F]:
    """Adds `--names/--numbers`, passed as `has_names`: how lines of several nodes begin."""
    help_text = f"--names: lines begin with [train-0]; --numbers: with [Node 0].  [default: {usual}]"
    return click.option("--names/--numbers", "has_names", default=default, help=help_text)


def names_of_nodes() -> list[str]:
    """The nodes' names of every readable rehearsed cluster that is known here, for completion."""
    names: list[str] = []
    for cluster in named_home(os.environ).cluster_names:
        try:
            inventory = chosen_cluster(cluster)
        except ClusterctlError:
            continue
        names += [node.name for node in inventory.nodes if inventory.rehearsal]
    return names


def complete_clusters(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The clusters that this computer knows."""
    names = named_home(os.environ).cluster_names
    return [name for name in names if name.startswith(incomplete)]


def complete_nodes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The nodes of the chosen cluster, by number and by name, and `all`."""
    try:
        inventory = chosen_cluster(ctx.params.get("cluster"))
    except ClusterctlError:
        return []
    words = [ALL, *(str(node.slot) for node in inventory.nodes), *(node.name for node in inventory.nodes)]
    return [word for word in words if word.startswith(incomplete)]

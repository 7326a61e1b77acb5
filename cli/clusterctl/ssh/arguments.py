"""Reads the words after `clusterctl ssh` into a request, for the verb and for the process that keeps connections."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from clusterctl.engine.jobs_here import cluster_of_job
from clusterctl.home import named_home
from clusterctl.options import (
    cluster_option,
    connect_timeout_option,
    count_option,
    environment_option,
    inventory_option,
    json_option,
    names_option,
    node_option,
    time_option,
)
from clusterctl.ssh.command import command_line
from clusterctl.ssh.request import Shown, SshRequest, refuse_contradiction

F = TypeVar("F", bound=Callable[..., object])

_ARGUMENTS: tuple[Callable[[Any], Any], ...] = (  # Any: each gives back the function that it was given
    cluster_option,
    inventory_option,
    node_option(default=None, help="The nodes: 2, or 0,2-5, or train-2, or all. A command: all; a login: 0."),
    click.option("--command", "line", metavar="LINE", help="A line for the shell on the node."),
    click.option("--gather", is_flag=True, help="At the end, show equal outputs once, under their nodes' names."),
    names_option(default=True, usual="--names"),
    json_option,
    time_option("--timeout", default=None, help="End the command after this time: 30s, 2m."),
    connect_timeout_option(default="15s"),
    count_option("--fanout", most=4096, help="Nodes at a time, at most 4096.  [256; by proxy 64]"),
    click.option("--fail-fast", is_flag=True, help="Stop on all nodes at the first failure."),
    environment_option,
    click.option("--sudo", is_flag=True, help="Run as root (sudo must ask for no password)."),
    click.option("--cold", is_flag=True, help="Use new connections, and keep none. [$CLUSTERCTL_WARM=no]"),
    click.option("-t", "--tty", is_flag=True, help="Give the command a terminal, on one node: for htop and the like."),
    click.argument("argv", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED),
)
"""In the order in which the help lists them."""


class SshCommand(click.Command):
    """Tells a command after `--` from one whose first word may name a node, or a job."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as click does, and sets `is_after_dashes`; a job's name is replaced by `--cluster` and its cluster."""
        args = self._with_cluster_of_job(ctx, args)
        typed = tuple(args)
        rest = super().parse_args(ctx, args)
        argv = ctx.params.get("argv") or ()
        ctx.params["is_after_dashes"] = typed[: len(typed) - len(argv)][-1:] == ("--",)
        return rest

    def _with_cluster_of_job(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turns `ssh JOB --node 1 …` into `ssh --cluster CLUSTER --node 1 …`, for a job started on this computer."""
        options, _, _ = self.make_parser(ctx).parse_args(list(args))
        # Without words click puts an empty tuple, None or (since 8.3) a sentinel here.
        found = options.get("argv")
        words: tuple[str, ...] = found if isinstance(found, tuple) else ()
        before = args[: len(args) - len(words)]
        if not words or before[-1:] == ["--"] or not (len(words) == 1 or words[1].startswith("--")):
            return args
        cluster = cluster_of_job(words[0], named_home(os.environ))
        if cluster is None:
            return args
        named = [] if {"cluster", "file"} & {*options} else ["--cluster", cluster]
        return [*before, *named, *words[1:]]


def ssh_arguments(function: F) -> F:
    """Adds all flags and the command to a function, which is called with what `requested` takes."""
    for add in reversed(_ARGUMENTS):
        function = add(function)
    return function


def request_of(argv: Sequence[str]) -> SshRequest:
    """What `clusterctl ssh ARGV` asks for. Raises click's exceptions and UsageError."""
    reader = click.command(cls=SshCommand)(ssh_arguments(lambda **_: None))
    return requested(**reader.make_context("clusterctl ssh", list(argv)).params)


def requested(
    *,
    cluster: str | None,
    file: Path | None,
    node: str | None,
    line: str | None,
    gather: bool,
    has_names: bool,
    as_json: bool,
    timeout: float | None,
    connect_timeout: float,
    fanout: int | None,
    fail_fast: bool,
    env: dict[str, str],
    sudo: bool,
    cold: bool,
    tty: bool,
    argv: tuple[str, ...],
    is_after_dashes: bool,
) -> SshRequest:
    """What the flags ask for. Raises UsageError."""
    refuse_contradiction(gather=gather, as_json=as_json)
    return SshRequest(
        cluster=cluster,
        file=file,
        node=node,
        line=command_line(argv, line),
        words=() if is_after_dashes or line is not None else argv,
        shown=_shown(gather=gather, as_json=as_json, has_names=has_names),
        environment=env,
        is_sudo=sudo,
        is_terminal_wanted=tty,
        is_failing_fast=fail_fast,
        is_cold=cold,
        timeout_s=timeout,
        connect_timeout_s=connect_timeout,
        fan_out=fanout,
    )


def _shown(*, gather: bool, as_json: bool, has_names: bool) -> Shown:
    if as_json:
        return Shown.JSON
    if gather:
        return Shown.GATHERED
    return Shown.LIVE if has_names else Shown.NUMBERED

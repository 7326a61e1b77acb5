"""What an `up` is asked for: by its flags, the stack's file and the stack's config, before the state is known."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.config.flag_size import size_in_file, typed_size
from clusterctl_infra.errors import ConfigError

from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import config_values, own_config
from clusterctl.engine.stack_plan import config_folder
from clusterctl.home import Home
from clusterctl.lifecycle.intent import Intent, read_intent
from clusterctl.lifecycle.spend_gate import BY_FLAG

NODES_FLAG = "--nodes"
NODES_KEY = "config clusterctl:nodes"
"""Where a typed size is kept, and so what a problem with it names."""


@dataclass(frozen=True, kw_only=True)
class UpRequest:
    """What a person asked for."""

    stack_dir: Path
    stack_name: str
    rehearse: bool
    nodes: int | None
    is_agreed: bool
    """`--yes`."""
    ready_timeout_s: float | None
    reorders_ranks: bool = False
    """`--reorder-ranks`: the order that was made once is made anew."""
    asks_in_rehearsal: bool = False
    """`--ask`: a rehearsal asks what an `up` on AWS would ask."""
    buys: bool = False
    """`--buy`: a capacity block that has to be bought is bought without being asked."""
    as_json: bool = False
    """A program reads stdout: nobody is asked, and the nodes come as JSON at the end."""
    is_forced: bool = False
    """`--force`: though jobs run on nodes that end."""
    replaces_failed: bool = False
    """`--replace-failed`: nodes whose boot or script failed get new machines, and nobody is asked."""
    agreed_by: str = BY_FLAG
    """What agrees to the price if nobody can be asked, as the message about that calls it."""
    on_agreed: Callable[[], None] = lambda: None
    """Called when a person has agreed to the price."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What the stack's file and config say, with what was typed over them."""

    intent: Intent
    size_settings: Mapping[str, str]
    """The config's values, the size among them, as they hold for this run."""
    size_in_file: str | None


def read_written(request: UpRequest, stack: Stack, home: Home) -> Written:
    """The intent as far as it is known without the state. Raises ConfigError."""
    folder = config_folder(stack, home=home, rehearse=request.rehearse)
    config_text = own_config(folder / stack.config_file.name, written_for=stack.config_file)
    values, in_file = config_values(config_text), size_in_file(stack.cluster_file)
    size = typed_size(values, request.nodes, in_file=in_file)
    with naming_the_flag(request.nodes):
        intent = read_intent(
            stack,
            config_text,
            nodes=None,
            given=size,
            fresh_prices=home.prices_file,
            is_rehearsal=request.rehearse or stack.is_rehearsal_project,
        )
    settings = values if request.nodes is None else {key: text for key, text in {**values, **size}.items() if text}
    return Written(intent=intent, size_settings=settings, size_in_file=in_file)


@contextlib.contextmanager
def naming_the_flag(nodes: int | None) -> Iterator[None]:
    """While entered, a ConfigError names the flag instead of the config's key, if `nodes` was typed."""
    try:
        yield
    except ConfigError as e:
        if nodes is None:
            raise
        problems = [problem.replace(NODES_KEY, NODES_FLAG) for problem in e.problems]
        raise ConfigError(e.message, problems=problems, hint=e.hint) from e

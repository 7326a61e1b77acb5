"""The stack that plain `pulumi` in a stack's folder means, so that nobody has to type `--stack`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

from clusterctl_infra.errors import EngineError

from clusterctl.engine.backend import folder_of
from clusterctl.engine.boundary import Engine
from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import real_variables

STACK_VARIABLE = "PULUMI_STACK"
"""If a person has set it, `pulumi` uses the stack that it names, whatever is selected (engine 3.250, tried
2026-11-26): nothing is selected then, which saves a start of the engine."""


@contextlib.contextmanager
def selected_meanwhile(engine: Engine, environ: Mapping[str, str]) -> Iterator[None]:
    """Selects the stack of a rehearsal for plain `pulumi` while the caller works; failing to do so is no error.

    The selection is in the PULUMI_HOME of whoever types `pulumi` (`environ`): a rehearsal has another one.
    """
    person = persons_engine(engine, environ)
    selecting = threading.Thread(target=select_for, args=(person,), daemon=True, name="stack select")
    selecting.start()
    try:
        yield
    finally:
        selecting.join()


def persons_engine(engine: Engine, environ: Mapping[str, str]) -> Engine:
    """The engine as a person starts it in the stack's folder. Pure."""
    stack = engine.stack
    environment = replace(engine.environment, env=real_variables(environ), config_file=stack.config_file)
    return PulumiEngine(stack=stack, environment=environment)


def select_for(person: Engine) -> None:
    """Selects the stack for a person who types `pulumi`, unless others would notice it."""
    with contextlib.suppress(EngineError, OSError):
        if person.stack.is_rehearsal_project:
            if not person.environment.env.get(STACK_VARIABLE):
                person.select_stack()
        elif folder_of(person.backend_url()) is not None:
            # The person's own backend has no such stack before the first real `up`, and `pulumi preview` wants one. An
            # empty one costs nothing in files; a colleagues' backend is not touched by a rehearsal.
            person.select_stack(creates=True)

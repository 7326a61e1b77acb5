"""What is wrong with the number behind `--nodes`, said of that flag: it comes to be read as a value of the config."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from clusterctl_infra.errors import ConfigError

FLAG = "--nodes"
AS_READ = "config clusterctl:nodes"


@contextlib.contextmanager
def said_of_the_flag(nodes: int | None) -> Iterator[None]:
    """Raises ConfigError with the flag's name where `nodes` were typed."""
    try:
        yield
    except ConfigError as e:
        if nodes is None:
            raise
        problems = [problem.replace(AS_READ, FLAG) for problem in e.problems]
        raise ConfigError(e.message, problems=problems, hint=e.hint) from e

"""Room for a file descriptor per node, and more: many systems begin with 1,024 in all."""

from __future__ import annotations

import resource


def allow_many_files() -> None:
    """Allows this process as many open files as it may have: a node takes one, its large outputs one each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

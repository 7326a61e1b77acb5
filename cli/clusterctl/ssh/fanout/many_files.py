"""Room for a descriptor per node, and more: 1,024 in all is what many systems begin with."""

from __future__ import annotations

import resource


def allow_many_files() -> None:
    """As many descriptors as this process may have: a node takes one, its large outputs one each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

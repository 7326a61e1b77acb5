"""The lines of /etc/clusterctl/env as a dictionary."""

from __future__ import annotations

import shlex


def environment_json(text: str) -> dict[str, str]:
    """Name → value, quotes and all undone as a shell would, values over several lines too.

    Raises ValueError for what is no `NAME=value`.
    """
    found = {}
    for word in shlex.split(text, comments=True):
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{word!r} is no NAME=value")
        found[name] = value
    return found

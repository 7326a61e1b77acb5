"""What machines need on a computer, and the command that installs what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def what_is_missing(
    kind: str,
    tools: Mapping[str, str],
    *,
    platform: str,
    find: Callable[[str], str | None],
    user_id: int = 0,
) -> str | None:
    """Why machines of a kind do not work, for the person who wants them; None when nothing is missing.

    `tools`: program → Debian package. `user_id`: of this user, for a kind that needs root.
    """
    if platform != "linux":
        return f"{kind} machines need Linux, this is {platform}"
    if user_id != 0:
        return f'{kind} machines need root: run the same command with sudo -E "$(command -v clusterctl)" for clusterctl'
    packages = [package for tool, package in tools.items() if find(tool) is None]
    if packages:
        return f"tools are missing: apt-get install -y --no-install-recommends {' '.join(packages)}"
    return None

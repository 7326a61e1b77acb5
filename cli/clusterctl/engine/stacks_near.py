"""The stacks near a folder, for the command that helps. Used by verbs that load nothing else of the engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CLUSTER_FILE = "cluster.yaml"
STACK_FILES = ("Pulumi.yaml", CLUSTER_FILE)


def stacks_near(directory: Path) -> tuple[Path, ...]:
    """The stacks in a folder and beside it, and in `stacks` of either, written as the folder was typed."""
    places = (directory, directory / "stacks", directory.parent, directory.parent / "stacks")
    found = [child for place in places for child in sorted(_children(place))]
    # By os.path, which takes a folder that may not be looked into, such as another user's .pulumi, for no stack.
    return tuple(
        dict.fromkeys(folder for folder in found if all(os.path.isfile(folder / file) for file in STACK_FILES))
    )


def _children(place: Path) -> Iterator[Path]:
    try:
        yield from place.iterdir()
    except OSError:
        return

"""The stacks near a folder, for the command that helps: verbs look for them that load nothing else of the engine."""

from __future__ import annotations

from pathlib import Path

CLUSTER_FILE = "cluster.yaml"
STACK_FILES = ("Pulumi.yaml", CLUSTER_FILE)


def stacks_near(directory: Path) -> tuple[Path, ...]:
    """The stacks in a folder and beside it, and in `stacks` of either, as a person who typed it would type them."""
    places = (directory, directory / "stacks", directory.parent, directory.parent / "stacks")
    found = [child for place in places if place.is_dir() for child in sorted(place.iterdir())]
    return tuple(dict.fromkeys(one for one in found if all((one / file).is_file() for file in STACK_FILES)))

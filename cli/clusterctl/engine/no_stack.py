"""What is said of a folder that is no stack, with the command that helps."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import nearest

from clusterctl.engine.stacks_near import STACK_FILES, stacks_near
from clusterctl.views.again import stack_words


def refuse_no_stack(directory: Path, *, name: str, verb: str, rehearse: bool, files: Sequence[str]) -> None:
    """Raises UsageError where there is no folder, or where one of `files` is not in it.

    `name`, `verb` and `rehearse` are what was typed around the folder.
    """
    folder = directory.expanduser()
    if not folder.is_dir():
        what = (
            f"{directory} is a file, and a stack is a folder" if folder.exists() else f"there is no folder {directory}"
        )
        there = next(one for one in (*folder.parents, Path()) if one.is_dir())
        hint = _with(folder, verb, name=name, rehearse=rehearse) or f"ls {shlex.quote(str(there))}"
        raise UsageError(what + _named(folder), hint=hint)
    missing = next((one for one in files if not (folder / one).is_file()), None)
    if missing is None:
        return
    shown = f"this folder ({folder.absolute()})" if directory == Path() else str(directory)
    told = f"{shown} is not a stack, a folder with {' and '.join(STACK_FILES)}: it has no {missing}"
    if any((folder / one).is_file() for one in files):
        raise UsageError(told, hint=f"ls -A {shlex.quote(str(directory))}")
    hint = _with(folder, verb, name=name, rehearse=rehearse) or f"clusterctl {verb.split()[0]} --help"
    raise UsageError(told + _named(folder), hint=hint)


def _named(folder: Path) -> str:
    stacks = [shlex.quote(str(one)) for one in stacks_near(folder)]
    return f"; stacks near it: {', '.join(stacks)}" if len(stacks) > 1 else ""


def _with(folder: Path, verb: str, *, name: str, rehearse: bool) -> str | None:
    """The same command where it is plain which stack was meant; else one that makes and ends nothing."""
    near = stacks_near(folder)
    own = folder.parent if folder.is_file() and all((folder.parent / one).is_file() for one in STACK_FILES) else None
    inside = [one for one in near if one.is_relative_to(folder)]
    slip = None if folder.exists() else nearest(folder.name, [one.name for one in near])
    meant = own or next((one for one in near if one.name == slip), inside[0] if len(inside) == 1 else None)
    if meant is not None:
        return f"clusterctl {verb} {stack_words(meant, stack_name=name, rehearse=rehearse)}"
    return f"clusterctl plan {stack_words(near[0], stack_name=name, rehearse=rehearse)}" if near else None

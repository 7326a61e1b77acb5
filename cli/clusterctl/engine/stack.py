"""A stack folder: its project, whether it names the stand-in for AWS, where its config lies."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from clusterctl_infra.config.document import syntax_message
from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import USUAL_STACK_NAME
from clusterctl_infra.nearest import nearest

from clusterctl.engine.stacks_near import CLUSTER_FILE, STACK_FILES, stacks_near
from clusterctl.text.next_commands import edit, stack_words

PROGRAM = "__main__.py"
"""What Pulumi runs of a Python project that names no `main`."""
STACK_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""What the engine takes (pulumi 3.250.0: "alphanumeric, hyphens, underscores, or periods", 2026-11-22)."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One Pulumi stack as `clusterctl` drives it."""

    directory: Path
    """Absolute."""
    project: str
    name: str
    is_rehearsal_project: bool
    """Whether its Pulumi.yaml names the stand-in, so that plain `pulumi up` there is a rehearsal, too."""
    typed: Path | None = None
    """The folder as a person typed it; None: nobody did."""
    plugin_folders: tuple[str, ...] = ()
    """Where its Pulumi.yaml says that plugins lie: absolute, as the engine names them."""
    program: str | None = None
    """The file that Pulumi runs; None where its Pulumi.yaml names another, or another language."""

    @property
    def cluster_file(self) -> Path:
        """The person's cluster.yaml."""
        return self.directory / CLUSTER_FILE

    @property
    def source(self) -> str:
        """cluster.yaml's path as every message shows it."""
        return str((self.typed or self.directory) / CLUSTER_FILE)

    @property
    def project_file(self) -> Path:
        """The path of Pulumi.yaml, as a person would type it."""
        return (self.typed or self.directory) / "Pulumi.yaml"

    @property
    def config_file(self) -> Path:
        """The Pulumi config of this stack, as plain `pulumi` uses it."""
        return self.directory / f"Pulumi.{self.name}.yaml"

    @property
    def urn(self) -> str:
        """The URN of the stack resource itself."""
        return f"urn:pulumi:{self.name}::{self.project}::pulumi:pulumi:Stack::{self.project}-{self.name}"


def read_stack(
    directory: Path,
    *,
    name: str = USUAL_STACK_NAME,
    verb: str = "up",
    rehearse: bool = False,
    files: Sequence[str] = STACK_FILES,
) -> Stack:
    """The stack in a folder with Pulumi.yaml and cluster.yaml. Raises UsageError naming what is missing.

    `verb` and `rehearse`: what was typed around the folder, for the command that helps; `files`: what has to be in the
    folder for it to be a stack.
    """
    if not STACK_NAME.fullmatch(name):
        message = f"--stack-name {name!r}: letters, digits, hyphens, underscores and periods only"
        raise UsageError(message, hint=f"clusterctl {verb.split()[0]} --help")
    refuse_no_stack(directory, name=name, verb=verb, rehearse=rehearse, files=files)
    folder = directory.expanduser().absolute()
    project, data = _project(directory, folder)
    plugins = _providers_by_path(data)
    return Stack(
        directory=folder,
        project=project,
        name=name,
        is_rehearsal_project="aws" in plugins,
        typed=directory,
        plugin_folders=tuple(os.path.normpath(folder / path) for path in plugins.values()),
        program=PROGRAM if _is_python(data.get("runtime")) and "main" not in data else None,
    )


def refuse_without_program(stack: Stack) -> None:
    """Raises UsageError, with the command that brings it back, if the stack's program is missing.

    Otherwise the engine would fail without it, after a person was asked.
    """
    if stack.program is None or (stack.directory / stack.program).is_file():
        return
    typed = stack.typed or stack.directory
    near = (other / stack.program for other in stacks_near(typed.expanduser()))
    found = next((file for file in near if file.is_file()), None)
    hint = f"ls {shlex.quote(str(typed))}" if found is None else shlex.join(["cp", str(found), f"{typed}/"])
    raise UsageError(f"{typed} has no {stack.program}, the program that Pulumi runs; nothing was changed", hint=hint)


def _project(directory: Path, folder: Path) -> tuple[str, Mapping[str, object]]:
    """The project's name, and all that its file says. Raises UsageError."""
    try:
        data = yaml.safe_load((folder / "Pulumi.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        message = f"{directory}/Pulumi.yaml cannot be read: {_reason(e)}"
        raise UsageError(message, hint=edit(directory / "Pulumi.yaml")) from e
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str):
        message = f"{directory}/Pulumi.yaml names no project (name: …)"
        raise UsageError(message, hint=edit(directory / "Pulumi.yaml"))
    return name, data


def _reason(e: Exception) -> str:
    if isinstance(e, yaml.MarkedYAMLError) and e.problem_mark is not None:
        return f"line {e.problem_mark.line + 1}: {syntax_message(e)}"
    return str(e)


def _providers_by_path(data: Mapping[str, object]) -> dict[str, str]:
    plugins = data.get("plugins")
    providers = plugins.get("providers") if isinstance(plugins, dict) else None
    rows = providers if isinstance(providers, list) else []
    return {str(row["name"]): str(row["path"]) for row in rows if isinstance(row, dict) and {"name", "path"} <= {*row}}


def _is_python(runtime: object) -> bool:
    return (runtime.get("name") if isinstance(runtime, dict) else runtime) == "python"


def refuse_no_stack(directory: Path, *, name: str, verb: str, rehearse: bool, files: Sequence[str]) -> None:
    """Raises UsageError where there is no folder, or where one of `files` is not in it.

    `name`, `verb` and `rehearse`: as for `read_stack`.
    """
    folder = directory.expanduser()
    if not folder.is_dir():
        what = (
            f"{directory} is a file, and a stack is a folder" if folder.exists() else f"there is no folder {directory}"
        )
        there = next(parent for parent in (*folder.parents, Path()) if parent.is_dir())
        hint = _nearest_command(folder, verb, name=name, rehearse=rehearse) or f"ls {shlex.quote(str(there))}"
        raise UsageError(what + _named(folder), hint=hint)
    missing = next((file for file in files if not (folder / file).is_file()), None)
    if missing is None:
        return
    shown = f"this folder ({folder.absolute()})" if directory == Path() else str(directory)
    message = f"{shown} is not a stack, a folder with {' and '.join(STACK_FILES)}: it has no {missing}"
    if any((folder / file).is_file() for file in files):
        raise UsageError(message, hint=f"ls -A {shlex.quote(str(directory))}")
    hint = _nearest_command(folder, verb, name=name, rehearse=rehearse) or f"clusterctl {verb.split()[0]} --help"
    raise UsageError(message + _named(folder), hint=hint)


def _named(folder: Path) -> str:
    stacks = [shlex.quote(str(stack)) for stack in stacks_near(folder)]
    return f"; stacks near it: {', '.join(stacks)}" if len(stacks) > 1 else ""


def _nearest_command(folder: Path, verb: str, *, name: str, rehearse: bool) -> str | None:
    """The command for the stack that was surely meant; one that changes nothing if several may be; None without any."""
    near = stacks_near(folder)
    own = folder.parent if folder.is_file() and all((folder.parent / file).is_file() for file in STACK_FILES) else None
    inside = [stack for stack in near if stack.is_relative_to(folder)]
    slip = None if folder.exists() else nearest(folder.name, [stack.name for stack in near])
    meant = own or next((stack for stack in near if stack.name == slip), inside[0] if len(inside) == 1 else None)
    if meant is not None:
        return f"clusterctl {verb} {stack_words(meant, stack_name=name, rehearse=rehearse)}"
    return f"clusterctl plan {stack_words(near[0], stack_name=name, rehearse=rehearse)}" if near else None

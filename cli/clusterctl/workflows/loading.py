"""Reads a workflow's file: gives the workflow, or raises one ConfigError with every problem and its line."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any  # values of a person's file

from clusterctl_infra.config.document import Document, Path, read_document
from clusterctl_infra.config.problems import ConfigProblem, keys_at, problems_of
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.nearest import did_you_mean
from pydantic import ValidationError

from clusterctl.text.quantities import count
from clusterctl.workflows.bounded_rendering import bounded_render
from clusterctl.workflows.model import File, Resources, Task, Workflow, WorkflowFile
from clusterctl.workflows.rules import ROOT, faults, token_faults
from clusterctl.workflows.template import Rendered, TemplateProblems, read_settings, render

MOST_BYTES = 1024 * 1024
MOST_FILE_BYTES = 16 * 1024 * 1024
"""The largest file that a `localpath` may name; data belongs on shared storage."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person's flags change in a workflow."""

    words: tuple[str, ...] = ()
    """The NAME=VALUE of `--set`."""
    texts: tuple[str, ...] = ()
    """The NAME=VALUE of `--set-string`."""
    environment: Mapping[str, str]
    """The variables of `--set-env`, for all tasks."""


@dataclass(frozen=True, kw_only=True)
class LoadedWorkflow:
    """A workflow without problems, and the files that it sends to its tasks."""

    source: str
    workflow: Workflow
    rendered: str
    contents: Mapping[tuple[str, str], bytes]
    """(task, path) → the file's content, with its tokens unresolved."""


ReadFile = Callable[[str], bytes]
"""Gives the content of the file at a path relative to the workflow's file. Raises OSError, ValueError."""


Rendering = Callable[[str, Mapping[str, Any]], Rendered]
"""Renders a template (its text) with values, as `render` does."""


def load_workflow(path: FilePath, settings: Settings, *, rendering: Rendering = bounded_render) -> LoadedWorkflow:
    """The workflow in the file. Raises ConfigError with all problems."""
    try:
        data = path.read_bytes()
    except OSError as e:
        raise ConfigError(f"{path}: {e.strerror}", hint="clusterctl workflow validate FILE") from e
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{path}: {len(data)} bytes, too large for a workflow; at most {MOST_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise ConfigError(f"{path}: not UTF-8 text (line {line})") from e
    return read_workflow(
        text,
        source=str(path),
        settings=settings,
        read_file=lambda name: _read(path.parent, name),
        rendering=rendering,
    )


def render_text(text: str, *, source: str, settings: Settings, rendering: Rendering = render) -> Rendered:
    """The file's text, rendered with the values of the flags. Raises ConfigError."""
    try:
        return rendering(text.removeprefix("\ufeff"), read_settings(settings.words, settings.texts))
    except TemplateProblems as e:
        problems = [ConfigProblem(path=(), message=sentence, line=line) for line, sentence in e.problems]
        raise workflow_error(source, problems) from e


def read_workflow(
    text: str, *, source: str, settings: Settings, read_file: ReadFile, rendering: Rendering = render
) -> LoadedWorkflow:
    """The workflow in `text`; pure but for `read_file` and `rendering`. Raises ConfigError with all problems."""
    rendered = render_text(text, source=source, settings=settings, rendering=rendering)
    read = read_document(rendered.text)
    problems = [
        ConfigProblem(path=each.path, message=each.message, line=each.line and (rendered.line_of(each.line) or None))
        for each in read.problems
    ]
    if read.tree is None and problems:  # not YAML: nothing more can be checked
        raise workflow_error(source, problems)
    workflow, model_problems = _validated(read.tree)
    problems += model_problems
    contents: dict[tuple[str, str], bytes] = {}
    if workflow is not None:
        workflow = _with_environment(workflow, settings.environment)
        problems += [ConfigProblem(path=fault.path, message=fault.message) for fault in faults(workflow)]
        problems += _read_contents(workflow, read_file, contents)
    if workflow is None or problems:
        raise workflow_error(source, [_placed(problem, read, rendered) for problem in problems])
    return LoadedWorkflow(source=source, workflow=workflow, rendered=rendered.text, contents=contents)


def workflow_error(source: str, problems: Sequence[ConfigProblem]) -> ConfigError:
    """One error with all problems, in the order of their lines; a problem that a loop repeats is reported once."""
    first: dict[tuple[object, ...], ConfigProblem] = {}
    for problem in problems:
        first.setdefault(_repetition_key(problem), problem)
    distinct = sorted(first.values(), key=lambda problem: (problem.line is None, problem.line or 0))
    lines = [f"  line {each.line:<3} {each.text()}" if each.line else f"  {each.text()}" for each in distinct]
    return ConfigError(f"{source}: {count(len(distinct), 'problem')}, nothing was started", problems=lines)


def _repetition_key(problem: ConfigProblem) -> tuple[object, ...]:
    return (problem.line, problem.path if problem.line is None else problem.path[-1:], problem.message)


def _validated(tree: Any) -> tuple[Workflow | None, list[ConfigProblem]]:
    if not isinstance(tree, dict):
        message = "no workflow: write the key workflow, and below it name and groups"
        return None, [ConfigProblem(path=(), message=message)]
    try:
        found = WorkflowFile.model_validate(tree)
    except ValidationError as e:
        return None, [_reworded(problem) for problem in problems_of(e, WorkflowFile)]
    if found.version not in (None, "2"):
        return None, [ConfigProblem(path=("version",), message=f"{found.version!r}: only version 2 is read")]
    return found.workflow, []


def _reworded(problem: ConfigProblem) -> ConfigProblem:
    """The problem with its path and message as they suit a workflow's file."""
    path = tuple(part for part in problem.path if part not in ("str", "dict[str,str]"))
    if problem.message.startswith("missing;"):
        return replace(problem, path=path, message="missing")
    if path[:2] == (*ROOT, "resources") and len(path) == 4 and problem.message == "unknown key":
        return replace(problem, message=f"unknown key{did_you_mean(str(path[3]), keys_at(Resources, ()))}")
    return replace(problem, path=path)


def _with_environment(workflow: Workflow, environment: Mapping[str, str]) -> Workflow:
    """The workflow, with the variables of `--set-env` added to every task."""
    if not environment:
        return workflow

    def changed(task: Task) -> Task:
        return task.model_copy(update={"environment": {**task.environment, **environment}})

    groups = tuple(
        group.model_copy(update={"tasks": tuple(changed(task) for task in group.tasks)}) for group in workflow.groups
    )
    return workflow.model_copy(update={"groups": groups, "tasks": tuple(changed(task) for task in workflow.tasks)})


def _read_contents(
    workflow: Workflow, read_file: ReadFile, contents: dict[tuple[str, str], bytes]
) -> list[ConfigProblem]:
    """Reads every file of every task into `contents`, each `localpath` once; returns the problems."""
    problems = []
    known: dict[str, bytes | str] = {}
    for place, group in enumerate(workflow.all_groups()):
        for index, task in enumerate(group.tasks):
            above: Path = (*ROOT, "groups", place, "tasks", index) if workflow.groups else (*ROOT, "tasks", place)
            for number, file in enumerate(task.files):
                content = _content(file, read_file, known)
                where: Path = (*above, "files", number, "contents" if file.localpath is None else "localpath")
                if isinstance(content, str):
                    problems.append(ConfigProblem(path=where, message=content))
                    continue
                contents[task.name, file.path] = content
                if file.localpath is not None:
                    sentences = token_faults(content.decode(errors="ignore"), task, group)
                    problems += [ConfigProblem(path=where, message=f"{file.localpath}: {each}") for each in sentences]
    return problems


def _content(file: File, read_file: ReadFile, known: dict[str, bytes | str]) -> bytes | str:
    """The file's content, or what is wrong with it."""
    if file.localpath is None:
        try:
            text = file.contents or ""
            return base64.b64decode(text, validate=True) if file.base64 else text.encode()
        except (binascii.Error, ValueError):
            return "not base64"
    if file.localpath not in known:
        try:
            known[file.localpath] = read_file(file.localpath)
        except OSError as e:
            known[file.localpath] = f"{file.localpath!r}: {e.strerror}; it is looked for beside the workflow's file"
        except ValueError as e:
            known[file.localpath] = f"{file.localpath!r}: {e}"
    return known[file.localpath]


def _placed(problem: ConfigProblem, read: Document, rendered: Rendered) -> ConfigProblem:
    """The problem with its line in the person's file, if that is known."""
    if problem.line is not None:
        return problem
    line = read.line_of(problem.path)
    return problem if line is None else replace(problem, line=rendered.line_of(line))


def _read(folder: FilePath, name: str) -> bytes:
    """The content of a file in the workflow's folder, or elsewhere in its git checkout. Raises OSError, ValueError.

    Somebody else may have written the workflow: it must not send any other file of this computer away, not even
    through a link.
    """
    path = folder / name
    if not path.resolve().is_relative_to(_own_tree(folder.resolve())):
        raise ValueError("outside the folder of the workflow's file and its git checkout; copy it there")
    if path.is_file() and path.stat().st_size > MOST_FILE_BYTES:
        raise ValueError(f"{path.stat().st_size} bytes; at most {MOST_FILE_BYTES}: data belongs on shared storage")
    return path.read_bytes()


def _own_tree(folder: FilePath) -> FilePath:
    """The git checkout that the folder is in; the folder itself, where it is in none."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)

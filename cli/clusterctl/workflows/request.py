"""What `clusterctl workflow` was asked for, and how it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import UsageError

from clusterctl.output import Output
from clusterctl.text.quantities import count
from clusterctl.workflows.loading import LoadedWorkflow, Settings, load_workflow

VALIDATE, SPEC = "validate", "spec"
VERBS = (VALIDATE, SPEC)
HINT = "clusterctl workflow --help"


@dataclass(frozen=True, kw_only=True)
class WorkflowFlags:
    """The flags, read."""

    verb: str
    words: tuple[str, ...]
    """Behind the verb: a file, or a workflow's id."""
    settings: tuple[str, ...]
    setting_texts: tuple[str, ...]
    environment: Mapping[str, str]
    as_json: bool


def carry_out(flags: WorkflowFlags, output: Output) -> int:
    """The exit code. Raises ClusterctlError."""
    loaded = load_workflow(Path(_only_word(flags, "a workflow's file")), _settings(flags))
    if flags.verb == SPEC:
        _show_spec(loaded, output, as_json=flags.as_json)
        return 0
    _show_valid(loaded, output, as_json=flags.as_json)
    return 0


def _only_word(flags: WorkflowFlags, what: str) -> str:
    if len(flags.words) != 1 or not flags.words[0]:
        raise UsageError(f"workflow {flags.verb} wants {what}", hint=HINT)
    return flags.words[0]


def _settings(flags: WorkflowFlags) -> Settings:
    return Settings(words=flags.settings, texts=flags.setting_texts, environment=flags.environment)


def _show_spec(loaded: LoadedWorkflow, output: Output, *, as_json: bool) -> None:
    """The file as Jinja rendered it, its tokens as they are."""
    if as_json:
        output.json(loaded.workflow.model_dump(by_alias=True, exclude_defaults=True, mode="json"))
    else:
        output.data(loaded.rendered.strip("\n"))


def _show_valid(loaded: LoadedWorkflow, output: Output, *, as_json: bool) -> None:
    groups = loaded.workflow.all_groups()
    if as_json:
        rows = [{"group": group.name, "tasks": [task.name for task in group.tasks]} for group in groups]
        output.json({"workflow": loaded.workflow.name, "groups": rows})
        return
    tasks = sum(len(group.tasks) for group in groups)
    output.note(
        f"{loaded.source}: valid: {loaded.workflow.name}, {count(len(groups), 'group')}, {count(tasks, 'task')}"
    )

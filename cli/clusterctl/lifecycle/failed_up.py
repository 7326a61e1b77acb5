"""An `up` that did not come to its end: what it made is undone, or named with the command that ends it."""

from __future__ import annotations

from typing import NoReturn

from clusterctl_infra.errors import CloudError, ClusterctlError, EngineError, NoCapacity, StillBills

from clusterctl.engine.boundary import RunResult
from clusterctl.engine.lock import locks_named
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import write_config
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.capacity_refusals import quota_help, spot_help
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.failure import full_disk
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.rollback import roll_back
from clusterctl.lifecycle.stopped import stopped_text, what_is_there
from clusterctl.lifecycle.up_runs import UpRunsResult
from clusterctl.system.disk_space import cannot_write
from clusterctl.text.next_commands import edit

NO_CAPACITY = ("InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity")
"""EC2 API, "Error codes for the Amazon EC2 API" (2026-11-22): a lack that may be over in minutes or hours."""
NO_PLUGIN = ("no folder at path", "failed to load plugin")
"""The engine's words where a folder has no plugin (3.250, tried 2026-11-22); those for one that died are different."""


def raise_failed(
    change: Change, ran: UpRunsResult, *, before_text: str, before_state: StackState, intent: Intent, shown: str
) -> NoReturn:
    """Raises the error that a failed `up` means, after undoing what it made.

    `before_text` is the stack's config as it was, `before_state` the state, `shown` the stack as it is typed.
    """
    result = ran.result
    if result.interrupted:
        change.output.note(stopped_text(change, result, shown=shown))
        raise KeyboardInterrupt
    if locks_named(result.stderr):
        raise change.failure(result, doing="pulumi up", more=_beside_another(change, ran, before_text, shown=shown))
    if full_disk(result) is not None:  # undoing it would need room as well, and could lose the state
        raise change.failure(result, doing="pulumi up", more=_with_room(shown))
    if result.killed_by is not None:
        change.clear_up()
    try:
        undone = roll_back(change, before_text=before_text, before_state=before_state, intent=intent, shown=shown)
    except (ClusterctlError, OSError) as e:
        refused = e if isinstance(e, ClusterctlError) else cannot_write(e, environ=change.environ)
        if refused is None:
            raise
        raise change.failure(
            result, doing="pulumi up", more=_not_undone(refused, shown=shown), hint=refused.hint
        ) from e
    hint = plugin_hint(change.stack, result) or f"clusterctl up {shown}"
    is_new = not before_state.instances
    helps = spot_help(result, intent, source=change.stack.source, is_new=is_new)
    helps = helps or quota_help(result, intent, is_rehearsal=change.is_rehearsal)
    if helps is not None:
        undone, hint = f"{helps.sentence} {undone}", helps.hint or hint
    error = change.failure(result, doing="pulumi up", more=undone, hint=hint)
    if isinstance(error, CloudError) and error.code in NO_CAPACITY and nothing_is_left(change, before_state):
        raise NoCapacity(error.message, code=error.code, hint=error.hint)
    raise error


def nothing_is_left(change: Change, before: StackState) -> bool:
    """Whether the state has nothing that was not there before the run. Raises EngineError."""
    after = change.engine.export() or StackState()
    there = {(resource.urn, resource.id) for resource in before.resources}
    return not after.pending and all(
        (resource.urn, resource.id) in there for resource in after.resources if resource.is_custom
    )


def _beside_another(change: Change, ran: UpRunsResult, before_text: str, *, shown: str) -> str:
    """What is left when another command is changing the stack now, whose work must not be undone."""
    if not ran.has_made:
        write_config(change.engine.environment.config_file, before_text)
        change.finish()
        return ""
    try:
        there = what_is_there(change.engine.export() or StackState())
    except EngineError:
        there = "what it made is there, and bills, also places that are reserved and empty"
    return (
        f"The first of two runs had ended before that: {there}. Afterwards clusterctl up {shown} continues, and "
        f"clusterctl down {shown} ends it"
    )


def plugin_hint(stack: Stack, result: RunResult) -> str | None:
    """The command for a plugin that is not where the stack's Pulumi.yaml says: the same `up` would fail again."""
    text = " ".join([result.stderr, *(refusal.text for refusal in result.refusals)])
    if any(words in text for words in NO_PLUGIN) and any(folder in text for folder in stack.plugin_folders):
        return edit(stack.project_file)
    return None


def _with_room(shown: str) -> str:
    return (
        f"What was made is there, and bills: once the disk has room, clusterctl up {shown} goes on with it, and "
        f"clusterctl down {shown} ends it"
    )


def _not_undone(refused: ClusterctlError, *, shown: str) -> str:
    if isinstance(refused, StillBills):  # the state is empty already
        return f"It was undone, and AWS asked again: {refused.message}: {', '.join(map(str.strip, refused.problems))}"
    return (
        f"Undoing it failed too ({refused.message}): what was made is still there, and bills, also places that are "
        f"reserved and empty: clusterctl down {shown} ends it"
    )

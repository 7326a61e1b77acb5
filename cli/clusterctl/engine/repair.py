"""Makes a stack whole before it is changed: what a killed run left is ended, unlocked, deleted, forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from clusterctl_infra.errors import EngineError

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.delete_orphans import Deletion, KnownNow, delete_orphans
from clusterctl.cloud.deletion_attempts import Agreed, nobody_asks, pause_s
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.cloud.look import named
from clusterctl.cloud.resource import Known
from clusterctl.engine.boundary import Engine
from clusterctl.engine.lock import Lock, locks_in, shows_locks
from clusterctl.engine.run_file import RunRecord
from clusterctl.engine.state import INSTANCE_TYPE, StackState
from clusterctl.engine.state_file import put_back, remove_torn_files
from clusterctl.engine.strays import end_orphans_of_folder, end_run
from clusterctl.text.quantities import count

DELETION_S = 600.0
"""A big GPU machine takes minutes to end, and its placement group waits for it."""
Tell = Callable[[str], None]


def repair_state(
    engine: Engine,
    state: StackState,
    *,
    was_cut_off: bool,
    data_since: datetime | None,
    clients: Callable[[], Clients],
    tell: Tell,
    agreed: Agreed = nobody_asks,
    sleep: Callable[[float], None] = time.sleep,
) -> StackState:
    """The state after orphans are ended and pending operations forgotten. Raises EngineError, CloudError."""
    if state.pending:
        tell(f"the last run was cut off while {_pending(state)}")
    if was_cut_off or state.pending or unknown_machines(clients, state):
        # What looks cut off may be a colleague's run in the middle of making machines: on another computer, or begun
        # since the locks were looked at, while a person was asked.
        state = state_at_rest(engine, tell)
    is_to_delete = was_cut_off or bool(state.pending) or bool(unknown_machines(clients, state))
    if is_to_delete and state.cluster_id is not None:
        newest = state

        def known_now() -> Known:
            nonlocal newest
            newest = state_at_rest(engine, tell)
            return newest.physical_ids

        deletion = end_orphans(
            clients(), state, tell=tell, data_since=data_since, agreed=agreed, known_now=known_now, sleep=sleep
        )
        state = newest
        for left in deletion.left:
            tell(f"{left.kind} {left.id} is in no Pulumi state and holds data: it stays, and bills")
        if deletion.not_listed:
            kinds = ", ".join(named(deletion.not_listed))
            tell(f"AWS did not say whether it has: {kinds}. If the last run left any, it may bill")
    if not state.pending:
        return state
    engine.refresh([engine.stack.urn, *_half_deleted(state)], clears_pending=True)
    return engine.export() or StackState()


def end_what_runs(engine: Engine, record: RunRecord | None, tell: Tell) -> bool:
    """Ends what killed runs left: processes, locks and torn files. Returns whether an earlier run failed or was killed.

    It was if anything is left, or if `record` is not None. Raises EngineError naming a run that lives.
    """
    ended = 0
    if record is not None:
        engine = engine.after(record.engines)
        ended = sum(end_run(token) for token in record.tokens) if record.is_of_this_boot else 0
    backend_url = engine.backend_url()
    # Where locks cannot be seen, they are looked for where a run of this computer may have left one.
    may_hold = shows_locks(backend_url) or bool(engine.starts)
    locks = _dead_locks(engine, backend_url) if may_hold else ()
    ended += end_orphans_of_folder(engine.stack.directory)
    if ended:
        tell(f"ended {ended} {'process' if ended == 1 else 'processes'} of a run that was killed")
    torn = remove_torn_files(backend_url, engine.stack)
    if torn:
        tell(f"removed {count(len(torn), 'half-written file')} beside the state")
    _unlock(engine, locks, tell)
    reap = "clusterctl reap --rehearse" if engine.environment.rehearsal else "clusterctl reap"
    restored = put_back(backend_url, engine.stack, reap=reap)
    if restored is not None:
        tell(restored)
    return bool(ended or locks or torn or restored or record is not None)


def end_orphans(
    clients: Clients,
    state: StackState,
    *,
    tell: Tell,
    data_since: datetime | None = None,
    agreed: Agreed = nobody_asks,
    known_now: KnownNow | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Deletion:
    """Ends what carries the cluster's id and is not in the state. Raises CloudError.

    `known_now`: what the state holds at this moment, because it may change in the minutes that this takes; None:
    nobody brings up a cluster of this id any more.
    """
    if state.cluster_id is None:
        return Deletion(ended=(), left=())
    return delete_orphans(
        clients,
        state.cluster_id,
        state.physical_ids,
        data_since=data_since,
        pause=lambda: sleep(pause_s(clients)),
        timeout_s=DELETION_S,
        tell=lambda what: tell(f"ending {what}: it is in no Pulumi state"),
        agreed=agreed,
        known_now=known_now,
    )


def state_at_rest(engine: Engine, tell: Tell) -> StackState:
    """The state as it is now, when nobody is changing it. Raises EngineError while somebody is."""
    backend_url = engine.backend_url()
    locks = _dead_locks(engine, backend_url)
    if not shows_locks(backend_url):
        _unlock(engine, locks, tell)
    return engine.export() or StackState()


def unknown_machines(clients: Callable[[], Clients], state: StackState) -> tuple[InstanceState, ...]:
    """Living instances with the cluster's id that the state does not have. Raises CloudError.

    A run that makes many machines writes its state at its end (lifecycle/up_runs.py): if it was killed on another
    computer, it has left no other trace.
    """
    if state.cluster_id is None:
        return ()
    known = state.physical_ids.get(INSTANCE_TYPE, frozenset())
    seen = instances_of(clients(), state.cluster_id)
    return tuple(instance for instance in seen if instance.is_alive and instance.instance_id not in known)


def _dead_locks(engine: Engine, backend_url: str) -> tuple[Lock, ...]:
    """The locks that a killed run left on the stack. Raises EngineError when somebody is changing it now."""
    locks = locks_in(backend_url, engine.stack) if shows_locks(backend_url) else engine.held_by()
    for lock in locks:
        if not lock.is_dead(engine.starts):
            raise EngineError(lock.message, hint=lock.end_it(cancel=engine.cancel_by_hand))
    return locks


def _unlock(engine: Engine, locks: Sequence[Lock], tell: Tell) -> None:
    if locks:
        tell(f"removed the lock of pid {locks[0].pid}, which is gone")
        engine.cancel()


def _pending(state: StackState) -> str:
    first = state.pending[0]
    more = f" and {len(state.pending) - 1} more" if len(state.pending) > 1 else ""
    return f"{first.kind} {first.urn.rsplit('::', 1)[-1]}{more}"


def _half_deleted(state: StackState) -> list[str]:
    """URNs that the state has and that may be gone: the run was cut off while it deleted them."""
    known = {resource.urn for resource in state.resources}
    return [operation.urn for operation in state.pending if operation.kind == "deleting" and operation.urn in known]

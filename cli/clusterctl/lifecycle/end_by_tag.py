"""Ends a cluster's machines and reservations by the id in their tags, where its state cannot be written.

A disk that is full, read-only or without locks is no reason for machines to go on billing: what costs most is ended
as `reap` ends it, the state stays as it is, and the next `down` makes state and account agree.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.errors import CloudError, ClusterctlError, UsageError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients, refuse_account
from clusterctl.cloud.delete_orphans import GUARDED, Deletion, end_all
from clusterctl.cloud.deletion_attempts import pause_s
from clusterctl.cloud.look import named
from clusterctl.cloud.machine_resources import RESERVATION
from clusterctl.cloud.resource import CloudResource
from clusterctl.cloud.resource_types import KINDS
from clusterctl.cost.sighting_file import note_cancelled
from clusterctl.engine.known_clusters import inventory_here
from clusterctl.engine.region import region_access
from clusterctl.engine.run_file import read_record
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.last_look import bill_of, billing, look_for
from clusterctl.output import Output
from clusterctl.system.disk_space import FULL, NoDiskSpace
from clusterctl.system.processes import is_alive

END_S = 600.0
"""A big GPU machine takes minutes to end."""
WITHOUT_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})
UNWRITABLE = FULL | WITHOUT_LOCKS | {errno.EROFS}


@dataclass(frozen=True, kw_only=True)
class EndByTag:
    """Which cluster is to be ended by its tags, and why."""

    where: Whereabouts
    is_agreed: bool
    again: str
    """The command that continues the `down`, as a person types it."""
    why: NoDiskSpace | OSError


def end_by_tag(end: EndByTag, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Ends the cluster's machines and reservations by their tags, then raises ClusterctlError with what still bills.

    Ends nothing and raises `end.why` if the state can be written in spite of it, if this computer knows no id of this
    stack's cluster, or if a run of the cluster is under way here: that run has the state, and can write it or fail.
    Raises UsageError if nobody agrees.
    """
    where, why = end.where, end.why
    if isinstance(why, OSError) and why.errno not in UNWRITABLE:
        raise why
    is_rehearsal = where.rehearse or where.stack.is_rehearsal_project
    cluster = where.name + REHEARSAL_SUFFIX if is_rehearsal else where.name
    known = inventory_here(home, cluster)
    run = read_record(home.run_file(cluster))
    is_under_way = run is not None and run.is_of_this_boot and is_alive(run.cli_pid, run.cli_ticks)
    if known is None or is_under_way or not is_of_stack(known, where):
        raise why
    reason = unwritable_reason(why)
    output.note(f"{cluster}: {reason}, so its state cannot be changed.")
    output.note(f"  Its machines, then its reservations, will be ended by the id {known.cluster_id} in their tags.")
    if not (is_rehearsal or end.is_agreed or output.confirm("End these?")):
        raise UsageError("not agreed, nothing was changed", hint=f"{end.again} --yes")
    clients = AwsClients.at(region_access(home, environ) if is_rehearsal else None, region=known.region)
    if known.account_id is not None:
        refuse_account(known.account_id, clients.account())
    left = what_is_left(
        known,
        clients,
        home,
        tell=lambda what: output.note(f"  ending {what}"),
        pause=lambda: time.sleep(pause_s(clients)),
    )
    bills = f"; still bills: {', '.join(left)}" if left else "; as far as AWS says, nothing else bills"
    raise ClusterctlError(
        f"{cluster}: its machines were ended by their tags{bills}. The state was left as it is ({reason}); once it "
        f"can be written, the next down ends the rest",
        hint=end.again,
    )


def is_of_stack(known: Inventory, where: Whereabouts) -> bool:
    """Whether the known cluster was made by that stack: a cluster of another stack may have the same name.

    A folder that is gone was moved or renamed: its cluster is known by its name alone.
    """
    if known.stack_dir is None or not Path(known.stack_dir).is_dir():
        return True
    return (known.stack_dir, known.stack_name) == (str(where.stack.directory), where.stack.name)


def unwritable_reason(why: NoDiskSpace | OSError) -> str:
    """Why the state cannot be written, in words that fit into a sentence."""
    if isinstance(why, NoDiskSpace):
        return why.reason
    if why.errno in WITHOUT_LOCKS:
        return f"{why.filename or 'the home'} is on a file system without locks"
    return f"{why.filename or 'the home'} cannot be written ({str(why.strerror).lower()})"


def what_is_left(
    known: Inventory, clients: Clients, home: Home, *, tell: Callable[[str], None], pause: Callable[[], None]
) -> list[str]:
    """Ends all machines, and then all reservations; returns what bills, or may bill, after that.

    In this order, because once a reservation is cancelled, it no longer shows machines that are not listed yet. If AWS
    does not answer about one kind, the other is ended all the same.
    """

    def agreed(ended: CloudResource) -> None:
        if ended.kind == RESERVATION:
            at = datetime.now(UTC).replace(microsecond=0)
            note_cancelled(home.observed_file(known.cluster_id), ended.id, at=at)

    left: list[str] = []
    for guarded in GUARDED:
        try:
            deletion = _ended(known, clients, guarded, tell=tell, pause=pause, agreed=agreed)
        except CloudError as e:
            left.append(f"{guarded}: not known ({e.message})")
            continue
        left += [f"{deletion.named(thing)} (bills {bill_of(thing)})" for thing in deletion.not_ended]
        left += [f"AWS did not say whether it has: {kind}" for kind in named(deletion.not_listed)]
    try:
        seen = look_for(known, clients)
    except CloudError as e:
        return [*left, f"everything else: not known ({e.message})"]
    left += [f"{thing.kind} {thing.id} ({bill_of(thing)})" for thing in billing(seen) if thing.kind not in GUARDED]
    return [*left, *(f"AWS did not say whether it has: {kind}" for kind in named(seen.not_listed))]


def _ended(
    known: Inventory,
    clients: Clients,
    kind: str,
    *,
    tell: Callable[[str], None],
    pause: Callable[[], None],
    agreed: Callable[[CloudResource], None],
) -> Deletion:
    return end_all(
        clients,
        known.cluster_id,
        {},
        spares=lambda resource: False,
        pause=pause,
        timeout_s=END_S,
        tell=tell,
        agreed=agreed,
        kinds=tuple(each for each in KINDS if each.name == kind),
    )

"""File systems that no state knows: a killed run made them, and only `down --all` ends them."""

from __future__ import annotations

from collections.abc import Callable

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, orphans
from clusterctl.cloud.look import look_at_each, named
from clusterctl.cloud.storage_kinds import DATA_KINDS
from clusterctl.engine.state import StackState


def stray_data(clients: Clients, state: StackState, *, tell: Callable[[str], None]) -> tuple[Found, ...]:
    """Those of the cluster, found by the id that the state keeps.

    A right that is missing keeps no machine running: what AWS does not tell of is told here, and named again by the
    last look.
    """
    if state.cluster_id is None:
        return ()
    seen = look_at_each(clients, state.cluster_id, DATA_KINDS)
    if seen.not_asked:
        tell(f"not asked: {', '.join(named(seen.not_asked))}: one that is in no state would be left, and bill")
    return orphans(seen.things, state.physical_ids, DATA_KINDS)

"""The last question of `up`, `extend` and `replace`: would AWS itself end the cluster at the deadline?

It is asked with DryRun, so nothing ends.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from clusterctl_infra.errors import CloudError
from clusterctl_infra.outputs import read_inventory

from clusterctl.cloud.deadline_proof import not_ended
from clusterctl.lifecycle.change import Change
from clusterctl.text.quantities import count

REHEARSAL_PAUSE_S = 0.05
AWS_PAUSE_S = 1.0
ONLY_TIMERS = "Only the nodes' own timers would end them."
GOES_ON_BILLING = "What is named here and is not a node would go on billing until you run clusterctl down."


def try_deadline(change: Change, *, slots: Collection[int] | None = None) -> CloudError | None:
    """The error to raise if AWS would not end the machines, or what else bills by the hour; it is shown at once, too.

    `slots`: those known to have a machine; None: all.
    """
    inventory = read_inventory(change.home.inventory_file(change.cluster))
    nodes = [node for node in inventory.nodes if slots is None or node.slot in slots]
    names = {node.instance_id: node.name for node in nodes if node.instance_id is not None}
    pause_s = REHEARSAL_PAUSE_S if change.is_rehearsal else AWS_PAUSE_S
    try:
        left = not_ended(change.clients, inventory.cluster_id, names, pause=lambda: time.sleep(pause_s))
    except CloudError as e:
        message = f"it is not known whether AWS would end {inventory.name} at its deadline: {e.message}"
        return _warned_error(change, message, ONLY_TIMERS, e.code)
    if not left:
        return None
    machines = [id for id in left if id in names]
    others = [id for id in left if id not in names]
    what = " and ".join(
        [*([count(len(machines), "node")] if machines else []), *([", ".join(others)] if others else [])]
    )
    why = "; ".join(f"{names.get(id, id)}: {refusal}" for id, refusal in left.items())
    then = " ".join([*([ONLY_TIMERS] if machines else []), *([GOES_ON_BILLING] if others else [])])
    return _warned_error(change, f"AWS would not end {what} at the deadline: {why}", then, "NotProven")


def _warned_error(change: Change, message: str, then: str, code: str) -> CloudError:
    change.output.note(f" WARNING: {message}\n  {then}")
    hint = f"clusterctl down --cluster {change.cluster}"
    return CloudError(f"{message}. The nodes run. {then}", code=code, hint=hint)

"""What AWS and the nodes say of a cluster, as far as they answered in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl_infra.ledger import Ledger

from clusterctl.cloud.alarms import Alarm
from clusterctl.cloud.early_end import EarlyEnd
from clusterctl.cloud.instances import InstanceState
from clusterctl.cost.sighting import NOTHING_OBSERVED, Observed
from clusterctl.readiness.node_report import NodeReport
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.half_extend import HalfExtend
from clusterctl.status.unfinished import Unfinished


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that `status` judges by; nothing in it is a guess."""

    now: datetime
    instances: tuple[InstanceState, ...] | None
    """None: the API did not answer, which says nothing about the machines."""
    cloud_trouble: str | None = None
    """Why it did not."""
    is_reserved: bool | None = None
    """Whether places are held for machines; None: not known."""
    reserved_trouble: str | None = None
    """Why not."""
    alarms: tuple[Alarm, ...] | None = None
    """Those that are on; None: not asked, as the deadline has not come, or no answer."""
    answers: Mapping[int, NodeReport | NodeFailure] = field(default_factory=dict)
    """By slot; a slot that was not asked is not in it."""
    ssh_trouble: str | None = None
    """Why no node could be asked, such as a missing key."""
    account: Ledger | None = None
    observed: Observed = NOTHING_OBSERVED
    early_end: EarlyEnd | None = None
    """What ended the cluster before its deadline; looked for where no machine lives."""
    half_extend: HalfExtend | None = None
    unfinished: Unfinished | None = None

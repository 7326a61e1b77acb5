"""What AWS and the nodes of a cluster say, an hour and some minutes after its start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clusterctl.cloud.instances import InstanceState
from clusterctl.ssh.failures import NodeFailure
from clusterctl.status.node_report import NodeReport
from clusterctl_infra.ledger import Span

BEGAN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
NOW = BEGAN + timedelta(hours=1, minutes=12)
READY = NodeReport(phase="ready", generation=3, since=datetime(2026, 11, 21, 10, 2, tzinfo=UTC))
SILENT = NodeFailure("timeout", "no answer from 10.0.8.0:22 within 5 s")


def machine(slot: int = 0, state: str = "running", *, id: str | None = None, age_s: float = 3600) -> InstanceState:
    return InstanceState(
        instance_id=id or f"i-{slot:017x}",
        slot=slot,
        state=state,
        private_ip=f"10.0.8.{slot}",
        public_ip=None,
        reason="Server.SpotInstanceTermination" if state == "terminated" else None,
        launched_at=NOW - timedelta(seconds=age_s),
    )


def span(slot: int, id: str, began: datetime, ended: datetime | None, price: float | None = 50.0) -> Span:
    return Span(slot=slot, instance_id=id, started_at=began, ended_at=ended, price_usd_per_hour=price)

"""What strict mode refuses although AWS accepts it, because it hangs later. The rule is ours, and its error says so."""

from __future__ import annotations

from clusterctl_rehearsal.refusal import StandInRefusal
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE


def check_fabric(store: Store, instance: Record) -> None:
    """Raises StandInRefusal if no group of the EFA interfaces lets everything through to and from itself.

    A CIDR rule is not enough: EFA traffic is not IP (EC2 user guide, "Get started with EFA", 2026-05).
    """
    groups = {group for card in instance.facts["interfaces"] if card["kind"] != "interface" for group in card["groups"]}
    for token, way in ((INGRESS_RULE, "in from"), (EGRESS_RULE, "out to")):
        open_to_itself = {
            row.inputs["securityGroupId"]
            for row in store.live(token)
            if row.inputs.get("ipProtocol") == "-1"
            and row.inputs.get("referencedSecurityGroupId") == row.inputs["securityGroupId"]
        }
        if groups and not groups & open_to_itself:
            raise StandInRefusal(
                f"strict (ours, AWS would accept it and the first collective would hang): {', '.join(sorted(groups))} "
                f"has no rule that lets all traffic {way} the group itself, which EFA needs"
            )

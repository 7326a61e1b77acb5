"""The resources of our own provider, as a Pulumi program sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any  # resource properties

import pulumi

from clusterctl_infra.names import IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE
from clusterctl_infra.version import VERSION


class IdentityResource(pulumi.CustomResource):
    """What the cluster is, decided once; `seed` is a secret of 64 hex digits."""

    cluster_id: pulumi.Output[str]
    started_at: pulumi.Output[str]
    owner: pulumi.Output[str]
    image_id: pulumi.Output[str]
    zone: pulumi.Output[str]
    run: pulumi.Output[int]
    seed: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: str,
        owner: str,
        image_spec: str,
        image_candidate: pulumi.Input[str],
        zone_candidate: pulumi.Input[str],
        run: int,
        launch: Mapping[str, str] | None = None,
        slot_range: str | None = None,
        instance_type: str | None = None,
        layout: int | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "name": name,
            "owner": owner,
            "image_spec": image_spec,
            "image_candidate": image_candidate,
            "zone_candidate": zone_candidate,
            "run": run,
            "launch": launch,
            "slot_range": slot_range,
            "instance_type": instance_type,
            "layout": layout,
        }
        outputs = dict.fromkeys(("cluster_id", "started_at", "image_id", "zone", "seed"))
        super().__init__(
            IDENTITY_TYPE,
            resource_name,
            {**inputs, **outputs},
            _own(opts, secret_outputs=["seed"]),
        )


class InventoryResource(pulumi.CustomResource):
    """The inventory file and the login key on the computer that runs the engine."""

    def __init__(
        self,
        resource_name: str,
        *,
        inventory: pulumi.Input[Mapping[str, Any]],
        login_key: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"inventory": inventory, "login_key": login_key}
        super().__init__(INVENTORY_TYPE, resource_name, inputs, _own(opts))


class MembershipResource(pulumi.CustomResource):
    """Which machine is in which slot, the generation of that membership, and the ledger."""

    generation: pulumi.Output[int]
    members: pulumi.Output[Sequence[Mapping[str, Any]]]
    ledger: pulumi.Output[Sequence[Mapping[str, Any]]]
    deadline: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: pulumi.Input[str],
        cluster_id: pulumi.Input[str],
        run: pulumi.Input[int],
        started_at: pulumi.Input[str],
        deadline: pulumi.Input[str],
        planned_at: str,
        rates: Mapping[str, float | None],
        members: Sequence[Mapping[str, pulumi.Input[Any]]],
        live: str = "",
        ranks: pulumi.Input[Sequence[int]] = (),
        correction: Mapping[str, object] | None = None,
        generation_floor: int | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`rates`: `node_price_usd_per_hour` and the ledger's other prices; None for one that is unknown."""
        inputs = {
            "cluster": cluster,
            "cluster_id": cluster_id,
            "run": run,
            "started_at": started_at,
            "deadline": deadline,
            "planned_at": planned_at,
            **rates,
            "members": members,
            "live": live,
            "ranks": ranks,
            "correction": correction,
            "generation_floor": generation_floor,
        }
        outputs = dict.fromkeys(("generation", "ledger"))
        super().__init__(MEMBERSHIP_TYPE, resource_name, {**inputs, **outputs}, _own(opts))


def _own(opts: pulumi.ResourceOptions | None, *, secret_outputs: Sequence[str] = ()) -> pulumi.ResourceOptions:
    ours = pulumi.ResourceOptions(version=VERSION, additional_secret_outputs=list(secret_outputs))
    return pulumi.ResourceOptions.merge(opts, ours)

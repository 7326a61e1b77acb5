"""What is made from the Identity resource's outputs: the plan, user-data, keys. Pure, run in `apply`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any  # resource outputs before they are read

from clusterctl_bootstrap.node_plan import MountPlan

from clusterctl_infra.catalog.instance import FIRST_LAYOUT
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.components.refusal import PlanRefused, refused
from clusterctl_infra.config.load import later_problems
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import StackSettings
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.identity import Identity, stand_in_identity
from clusterctl_infra.keys import login_key
from clusterctl_infra.outputs import inventory_to_json
from clusterctl_infra.plan.inventory import inventory
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.nodes import user_data
from clusterctl_infra.plan.planner import adopted_capacity, adopted_network, errors_of, plan, refuse_errors
from clusterctl_infra.provider.inventory_file import with_membership

Facts = Mapping[str, Any]
FACTS = ("cluster_id", "started_at", "run", "owner", "image_id", "zone", "seed")


@dataclass(frozen=True, kw_only=True)
class Birth:
    """How this stack's configuration becomes a cluster at the instant `now`."""

    config: ClusterConfig
    catalog: Catalog
    settings: StackSettings
    now: datetime

    def draft(self) -> ClusterPlan:
        """The plan with a stand-in identity; slots, interfaces and addresses are the real ones. Raises PlanRefused."""
        self._refuse_unknown()
        identity = stand_in_identity(
            owner=self.config.owner or "",
            image_id=None,
            zone=self.config.zone or self.settings.zone,
            region=self.config.region,
            now=self.now,
            layout=self._layout,
        )
        return self._plan(identity)

    def plan(self, facts: Facts) -> ClusterPlan:
        """The plan of the cluster with these facts. Raises PlanRefused."""
        return self._plan(replace(identity_from(facts), layout=self._layout))

    @property
    def _layout(self) -> int:
        """The layout of the machines' interfaces; the Identity resource refuses any but the one of its birth."""
        return self.settings.layout or FIRST_LAYOUT

    def user_data_base64(self, facts: Facts, made: ClusterPlan, mounts: Sequence[MountPlan], slot: int) -> str:
        """The user-data of `slot`'s machine, in base64; a secret."""
        return base64.b64encode(user_data(self.config, made, identity_from(facts), slot, mounts=mounts)).decode()

    def inventory_json(self, made: ClusterPlan, account_id: str) -> dict[str, Any]:
        """The inventory before its machines exist, in JSON's own types: lists, no tuples."""
        rows = inventory_to_json(inventory(self.config, made, account_id=account_id))
        plain: dict[str, Any] = json.loads(json.dumps(rows))
        return plain

    def _plan(self, identity: Identity) -> ClusterPlan:
        try:
            made = plan(
                self.config,
                self.catalog,
                identity=identity,
                ledger=self.settings.ledger,
                now=self.now,
                down=self.settings.down,
                kept=self.settings.kept,
                slot_ranks=self.settings.slot_ranks,
                until=self.settings.until,
                adopted=self.settings.adopted,
            )
            if not self.settings.down:
                self._refuse_errors(made)
        except ConfigError as e:
            raise refused(e) from e
        return made

    def _refuse_unknown(self) -> None:
        """Raises PlanRefused if something was not looked up yet: `clusterctl up` does that, and a plain `pulumi up`
        uses what it found.
        """
        config, adopted = self.config, self.settings.adopted
        missing = [config.reservation_id] if adopted_capacity(config, adopted) is None else []
        if config.network.adopt is not None and adopted_network(config, adopted) is None:
            missing.append(config.network.adopt.node_subnet_id)
        if config.block_search is not None:
            missing.append("a capacity block to be found")
        named = [id for id in missing if id is not None]
        if named and not self.settings.down:
            raise PlanRefused(
                f"{' and '.join(named)}: not looked up yet, and plain pulumi up does not: run clusterctl up. Nothing "
                "was changed"
            )
        if config.is_list and not self.settings.down:
            types = ", ".join(config.instance_choice(self.catalog).tried)
            raise PlanRefused(
                f"{types}: AWS has not been asked yet which of them it has room for, and plain pulumi up does not ask: "
                "run clusterctl up. Nothing was changed"
            )

    def _refuse_errors(self, made: ClusterPlan) -> None:
        """Raises ConfigError for a plan with errors; with the lines of the configuration's file, if it has one."""
        file, errors = self.settings.cluster_file, errors_of(made)
        if errors and file is not None:
            raise later_problems(file, errors, overrides=self.settings.overrides, source=str(file))
        refuse_errors(made)


def identity_from(facts: Facts) -> Identity:
    """The identity in the resource's outputs, but for its layout, which is not among `FACTS`."""
    return Identity(
        cluster_id=facts["cluster_id"],
        started_at=datetime.fromisoformat(facts["started_at"]),
        run=int(facts["run"]),
        owner=facts["owner"],
        image_id=facts["image_id"],
        zone=facts["zone"],
        seed=bytes.fromhex(facts["seed"]),
    )


def inventory_with_members(
    planned: dict[str, Any], members: list[dict[str, Any]] | None, generation: float | None, deadline: str
) -> dict[str, Any]:
    """The inventory with its members, or the planned one if the engine was told to leave the machines for later."""
    if members is None or generation is None:
        return planned
    return with_membership(planned, members=members, generation=int(generation), deadline=deadline)


def login_private_key(facts: Facts) -> str:
    """The private key that clusterctl logs in to every node with; a secret."""
    return login_key(bytes.fromhex(facts["seed"])).private_pem


def login_public_key(facts: Facts) -> str:
    """The line for authorized_keys."""
    return login_key(bytes.fromhex(facts["seed"])).public

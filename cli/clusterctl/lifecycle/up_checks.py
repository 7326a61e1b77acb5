"""What keeps an `up` from beginning: each of these raises before anything is made."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import CloudError
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.instances import instances_of, other_ids_alive
from clusterctl.cloud.look import look
from clusterctl.cloud.quotas import address_quota, addresses_wanted, refuse_addresses_beyond, refuse_beyond, vcpu_limit
from clusterctl.cloud.storage_resources import DATA_KINDS
from clusterctl.engine.known_clusters import inventory_here
from clusterctl.engine.region import tell_region
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.drift import lost_parts
from clusterctl.lifecycle.intent import Intent


def refuse_namesake(change: Change, state: StackState) -> None:
    """Raises CloudError when another cluster of this name lives or comes up, here or where this computer knows one.

    Raises RehearsalError when a rehearsal in another home has the name, or the region does not answer.
    """
    if change.is_rehearsal:
        tell_region(change.home, change.environ, change.stack.directory, cluster=change.name)
    if state.instances:
        return
    others = other_ids_alive(change.clients, change.name, own_id=state.cluster_id, now=datetime.now(UTC))
    if others:
        raise CloudError(
            f"another cluster called {change.name} runs or comes up in this account and region (clusterctl:id "
            f"{', '.join(others)}): two clusters of one name could not be told apart. Nothing was made; choose another "
            "name in cluster.yaml, or see what that one is",
            code="NameTaken",
            hint="clusterctl reap --rehearse" if change.is_rehearsal else "clusterctl reap",
        )
    known = inventory_here(change.home, change.cluster)
    if known is None or known.cluster_id == state.cluster_id:
        return
    show = f"clusterctl status --cluster {known.cluster}"
    if is_elsewhere(known, account=change.clients.account(), now=datetime.now(UTC)):
        raise CloudError(taken_elsewhere(known), code="NameTaken", hint=show)
    there = change.clients.elsewhere(known.region)
    keeps_data = known.run_nodes_down and look(there, known.cluster_id, DATA_KINDS)
    if keeps_data or any(instance.is_alive for instance in instances_of(there, known.cluster_id)):
        raise CloudError(taken_elsewhere(known), code="NameTaken", hint=show)


def is_elsewhere(known: Inventory, *, account: str, now: datetime) -> bool:
    """Whether a cluster that this computer knows may live in another account, where these credentials cannot look."""
    is_over = datetime.fromisoformat(known.deadline) <= now and not known.run_nodes_down
    return known.account_id not in (None, account) and not is_over


def taken_elsewhere(known: Inventory) -> str:
    """The sentence that refuses a name because this computer knows another cluster by it."""
    what = "is down, and its data is kept" if known.run_nodes_down else "runs"
    is_somebodys = known.account_id is not None and not known.rehearsal
    where = f"{known.region} of the account {known.account_id}" if is_somebodys else known.region
    return (
        f"this computer knows another cluster called {known.cluster}: it {what} in {where} (clusterctl:id "
        f"{known.cluster_id}), and an up here would overwrite its inventory and login key; choose another name in "
        "cluster.yaml"
    )


def refuse_reaped(change: Change, state: StackState, *, shown: str) -> None:
    """Raises CloudError when AWS no longer has what the cluster stands on: the engine would build on it, and fail."""
    if not state.instances:
        return
    lost = lost_parts(change.clients, state)
    if lost:
        more = f" and {len(lost) - 2} more" if len(lost) > 2 else ""
        named = ", ".join(part.id.rpartition(":")[2] for part in lost[:2])
        raise CloudError(
            f"{change.name} was reaped, or ended by hand: its state has machines and {named}{more}, which AWS no "
            "longer has. Nothing was made; clear the state by a down, and then run up again",
            code="Reaped",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )


def refuse_without_addresses(change: Change, cluster_plan: ClusterPlan, state: StackState) -> None:
    """Raises CloudError when the account's quota of elastic IPs is too low.

    AWS itself would refuse in the middle of the run, with most of the nodes made.
    """
    wanted = addresses_wanted(cluster_plan)
    if not wanted:
        return
    addresses = address_quota(change.clients, own_id=state.cluster_id)
    refuse_addresses_beyond(addresses, wanted, region=cluster_plan.region, is_rehearsal=change.is_rehearsal)


def refuse_without_vcpus(change: Change, intent: Intent, state: StackState, *, anew: int) -> None:
    """Raises CloudError when the account's quota of on-demand vCPUs is too low.

    AWS itself would refuse only minutes later, with network and gateway made. `anew`: how many machines of the state
    are made anew.
    """
    config = intent.config
    row = config.instance_row(intent.catalog)
    if row is None or not adds_on_demand(config, state, anew=anew):
        return
    limit = vcpu_limit(change.clients, row.family)
    refuse_beyond(limit, row, config.nodes, region=config.region, is_rehearsal=change.is_rehearsal)


def adds_on_demand(config: ClusterConfig, state: StackState, *, anew: int) -> bool:
    """Whether on-demand machines are added or made anew: else a quota that has shrunk does not matter."""
    return config.market == "on-demand" and (anew > 0 or config.nodes > len(state.instances))

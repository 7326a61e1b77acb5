"""A capacity block for `capacity_block: {find: …}`: one that was bought already, or the cheapest that AWS offers.

It is bought once: what is about to be bought is written to disk before AWS is asked, and after a request without an
answer nothing else is bought before AWS has shown what became of it (docs/adr/0057).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from clusterctl_infra.adopted import AdoptedCapacity
from clusterctl_infra.config.block_search import BlockSearch
from clusterctl_infra.errors import CloudError, NoCapacity, UsageError
from clusterctl_infra.identity import CLUSTER_ID_LENGTH

from clusterctl.cloud.adopted_network import find_network
from clusterctl.cloud.block_offerings import BlockOffering, BlockRequest, ask_offerings
from clusterctl.cloud.block_purchase import SHOWN_WITHIN, blocks_of, buy, is_refused, purchase_tags
from clusterctl.cloud.purchase_lock import (
    PurchaseLock,
    end_old_locks,
    give_back,
    holds,
    lock_name,
    take_lock,
    under_way,
)
from clusterctl.cloud.refusal import aws_errors
from clusterctl.engine.purchase_file import Purchase, read_purchase, write_purchase
from clusterctl.engine.region import tell_region
from clusterctl.engine.stack_config import read_config, with_values, write_config
from clusterctl.engine.state import StackState, identity_in
from clusterctl.lifecycle.adopt import adopt
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithPlan
from clusterctl.lifecycle.intent import Intent, plan_of, with_changes
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.text.instant import utc_now
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import usd

SHOW = "aws ec2 describe-capacity-reservations --region {region}"
SHOWN_MISFITS = 6
"""An error names at most this many offerings, and AWS lists no more (EC2 User Guide, "Find and purchase Capacity
Blocks"; 2026-11-26)."""


@dataclass(frozen=True, kw_only=True)
class BlockChoice:
    """The result of the search for a block."""

    intent: Intent
    offering: BlockOffering | None = None
    """The block that has to be bought; None: none has to be."""

    @property
    def adopted(self) -> AdoptedCapacity | None:
        """The offering, as if it were bought."""
        found = self.offering
        if found is None:
            return None
        return AdoptedCapacity(
            reservation_id=found.offering_id,
            instance_type=found.instance_type,
            zone=found.zone,
            ends_at=found.ends_at,
            placement_group=None,
        )


def look_for_block(change: Change, intent: Intent, state: StackState, *, now: datetime) -> BlockChoice:
    """The intent with the block that was bought for the cluster, or with the offering that has to be bought.

    Raises NoCapacity where AWS offers none that fits, CloudError where it is not known what became of a purchase.
    """
    search = (intent.written or intent.config).block_search
    if search is None:
        return BlockChoice(intent=with_changes(intent, {"block": None}))
    if change.is_rehearsal:
        tell_region(change.home, change.environ, change.stack.directory, cluster=change.name)
    held = held_block(change, intent, now=now)
    if held is not None:
        return BlockChoice(intent=with_changes(intent, {"block": held}))
    offering = cheapest(change, intent, search, state)
    return BlockChoice(intent=with_changes(intent, {"block": offering.offering_id}), offering=offering)


def held_block(change: Change, intent: Intent, *, now: datetime) -> str | None:
    """The id of the block that was bought for the cluster and has not ended; None: there is none.

    Raises CloudError, ConfigError.
    """
    file = change.home.purchase_file(change.cluster)
    purchase = read_purchase(file)
    if purchase is not None and purchase.ends_at <= now:
        purchase = None
    if purchase is not None:
        refuse_elsewhere(change, purchase)
    known = {intent.settings.block, None if purchase is None else purchase.reservation_id} - {None}
    found = blocks_of(change.clients, change.name, ids={id for id in known if id is not None}, now=now)
    if found:
        id = found[0].reservation_id
        _end_old_locks(change, now=now)
        if purchase is not None and purchase.reservation_id is None:
            write_purchase(file, replace(purchase, reservation_id=id))
        return id
    if purchase is not None and now < purchase.asked_at + SHOWN_WITHIN:
        raise unanswered(purchase)
    file.unlink(missing_ok=True)  # AWS shows nothing of it: it was not bought, or not paid for, or is over
    return None


def _end_old_locks(change: Change, *, now: datetime) -> None:
    with _noting_locks_that_stay(change):
        end_old_locks(change.clients, change.name, now=now)


@contextmanager
def _noting_locks_that_stay(change: Change) -> Iterator[None]:
    """While entered, a lock that AWS does not let us end is only noted: it costs nothing, so the change goes on."""
    try:
        yield
    except CloudError as e:
        change.output.note(f"  block    the placement group {lock_name(change.name)} stays: {e.message}")


def refuse_elsewhere(change: Change, purchase: Purchase) -> None:
    """Raises CloudError where the last purchase, whose block has not ended, was in another region or account."""
    account = change.clients.account()
    if (purchase.region, purchase.account) == (change.clients.region, account):
        return
    raise CloudError(
        f"a capacity block was bought for {change.cluster} in {purchase.region} of the account {purchase.account} "
        f"({purchase.words}), and has not ended: no second one is bought in {change.clients.region} of {account}. Name "
        "a block as capacity_block: cr-…, or make clusterctl forget that one by removing its file",
        code="BoughtElsewhere",
        hint=f"rm {change.home.purchase_file(change.cluster)}",
    )


def unanswered(purchase: Purchase) -> CloudError:
    """The error while AWS has not shown what became of a purchase."""
    until = purchase.asked_at + SHOWN_WITHIN
    return CloudError(
        f"the purchase of {purchase.words} was sent at {purchase.asked_at:%H:%M} UTC, and AWS does not show the "
        f"result yet: the block may be bought. Nothing else is bought before {until:%H:%M} UTC; run it again then",
        code="PurchaseUnknown",
        hint=SHOW.format(region=purchase.region),
    )


def cheapest(change: Change, intent: Intent, search: BlockSearch, state: StackState) -> BlockOffering:
    """The cheapest offering that fits. Raises NoCapacity, which says of each offering why it does not fit."""
    config = intent.config
    asked = BlockRequest(
        instance_types=(config.instance_type_name(intent.catalog),),
        instances=search.nodes or config.nodes,
        hours=search.hours,
        starts_from=search.starts_from,
    )
    offerings = ask_offerings(change.clients, asked)
    zone = zone_of(change, intent, state)
    why = {offering: misfit(offering, asked, zone=zone, max_usd=search.max_usd) for offering in offerings}
    fitting = next((offering for offering in offerings if why[offering] is None), None)
    if fitting is not None:
        return fitting
    what = f"{asked.instances} × {asked.instance_types[0]} for {asked.hours} h"
    raise NoCapacity(
        f"AWS offers no capacity block of {what} in {config.region} that fits{misfits_text(why)}. Nothing was bought; "
        "try fewer nodes, other hours or another start",
        code="NoCapacityBlock",
        hint=edit(change.stack.source),
    )


def zone_of(change: Change, intent: Intent, state: StackState) -> str | None:
    """The zone that the cluster has to be in; None: any zone of the region. Raises CloudError."""
    config, adopt_config = intent.config, intent.config.network.adopt
    identity = identity_in(state, region=config.region)
    if identity is not None and identity.zone is not None:
        return identity.zone
    if adopt_config is not None:
        ids = {"vpc_id": adopt_config.vpc_id, "subnet_id": adopt_config.node_subnet_id}
        return find_network(change.clients, **ids, own_id=state.cluster_id).zone
    return config.zone


def misfit(offering: BlockOffering, asked: BlockRequest, *, zone: str | None, max_usd: float | None) -> str | None:
    """Why the offering does not fit the search; None: it does. Pure.

    AWS also offers blocks a little shorter than asked: every block ends at 11:30 UTC (EC2 User Guide, "Find and
    purchase Capacity Blocks"; 2026-11-26).
    """
    hours = (offering.ends_at - offering.starts_at).total_seconds() / 3600
    if zone is not None and offering.zone != zone:
        return f"is in {offering.zone}, and the cluster in {zone}"
    if offering.instances < asked.instances:
        return f"holds {offering.instances}"
    if offering.segments > 1:
        return f"is {offering.segments} reservations, one after the other"
    if hours < asked.hours:
        return f"lasts {hours:.1f} h"
    if asked.starts_from is not None and offering.starts_at < asked.starts_from:
        return f"begins at {offering.starts_at:%Y-%m-%d %H:%M} UTC"
    if offering.fee_usd is None:
        return "has no price in US dollars"
    if max_usd is not None and offering.fee_usd > max_usd:
        return f"costs {usd(offering.fee_usd)}, more than max_usd: {usd(max_usd)}"
    return None


def misfits_text(why: dict[BlockOffering, str | None]) -> str:
    """` (cb-0a1b… is in us-west-2a, and the cluster in us-west-2b; …)`; empty where there is no offering."""
    reasons = [f"{offering.offering_id} {reason}" for offering, reason in why.items()]
    more = f"; and {len(reasons) - SHOWN_MISFITS} more" if len(reasons) > SHOWN_MISFITS else ""
    return f" ({'; '.join(reasons[:SHOWN_MISFITS])}{more})" if reasons else ""


def plan_time(offering: BlockOffering | None, now: datetime) -> datetime:
    """When the cluster can begin: with a block that has to be bought, not before that begins."""
    return now if offering is None else max(now, offering.starts_at)


def bought(change: Change, planned: WithPlan, request: UpRequest) -> WithPlan:
    """Buys the block that the plan needs, and returns the plan in that block; unchanged if none has to be bought.

    Raises UsageError when nobody agrees, NotBegun when the block begins later, CloudError.
    """
    offering = planned.offering
    if offering is None:
        return planned
    agree_to_purchase(change, planned, request, offering)
    id = purchase_once(change, offering, planned)
    config_file = change.engine.environment.config_file
    write_config(config_file, with_values(read_config(config_file), {"block": id}))
    now = utc_now()
    intent = adopt(change, with_changes(planned.intent, {"block": id}), planned.state, now=now)
    return replace(planned, now=now, intent=intent, plan=plan_of(intent, planned.state, now=now), offering=None)


def words_of(offering: BlockOffering) -> str:
    """`4 × p5.48xlarge in us-west-2b from 2026-12-01 11:30 to 2026-12-02 11:30 UTC for $5283.84`."""
    return (
        f"{offering.instances} × {offering.instance_type} in {offering.zone} from "
        f"{offering.starts_at:%Y-%m-%d %H:%M} to {offering.ends_at:%Y-%m-%d %H:%M} UTC for {usd(offering.fee_usd)}"
    )


def agree_to_purchase(change: Change, planned: WithPlan, request: UpRequest, offering: BlockOffering) -> None:
    """Returns once the person has typed the cluster's name, or if they gave --buy: --yes alone buys nothing.

    A rehearsal asks only when told to. Raises UsageError.
    """
    if request.buys or (change.is_rehearsal and not request.asks_in_rehearsal):
        return
    words, name = words_of(offering), planned.plan.name
    hint = f"clusterctl up {planned.shown}{' --yes' if request.is_agreed else ''} --buy"
    if request.as_json or not change.output.can_ask:
        why = "--json never asks" if request.as_json else "there is no terminal to ask at"
        raise UsageError(
            f"not agreed, since {why}; nothing was bought or made. The capacity block {offering.offering_id} is "
            f"{words}, paid at once and not refunded. --buy agrees to that, --yes does not; max_usd in "
            f"{planned.source} bounds the sum",
            hint=hint,
        )
    question = (
        f"Buy the capacity block {offering.offering_id}: {words}? The sum is paid at once and not refunded, whether "
        f"nodes run or not. Type the cluster's name, {name}, to buy it:"
    )
    if not change.output.confirm_word(question, name):
        raise UsageError("not agreed, nothing was bought or made", hint=hint)


def purchase_once(change: Change, offering: BlockOffering, planned: WithPlan) -> str:
    """Buys the offering and returns the id of the block. Raises CloudError.

    If another process has bought a block while the person thought about the question, that block's id is returned and
    nothing is bought; if another is buying one now, CloudError is raised.
    """
    clients, now = change.clients, utc_now()
    purchase = Purchase(
        purchase_id=secrets.token_hex(CLUSTER_ID_LENGTH // 2),
        offering_id=offering.offering_id,
        region=clients.region,
        account=clients.account(),
        words=words_of(offering),
        ends_at=offering.ends_at,
        asked_at=now,
        reservation_id=None,
    )
    owner = planned.plan.owner
    lock = PurchaseLock(cluster=change.name, purchase_id=purchase.purchase_id, owner=owner, asked_at=now)
    lock = take_lock(clients, lock, own_tags=planned.intent.config.tags)
    try:
        meanwhile = blocks_of(clients, change.name, ids=(), now=now)
        is_held = bool(meanwhile) or holds(clients, lock, now=utc_now())
    except (CloudError, KeyboardInterrupt):
        with _noting_locks_that_stay(change):
            give_back(clients, lock)
        raise
    if meanwhile:
        id = meanwhile[0].reservation_id
        with _noting_locks_that_stay(change):
            give_back(clients, lock)
        change.output.note(f"  block    {id} was bought in the meantime: it is used, and nothing more is bought")
        return id
    if not is_held:
        raise under_way(clients, change.name, None)
    id = _bought(change, offering, planned, purchase, lock)
    paid = "rehearsed, nothing is paid" if change.is_rehearsal else "clusterctl never cancels it"
    change.output.note(f"  bought   {id}: {words_of(offering)}; {paid}")
    return id


def _bought(change: Change, offering: BlockOffering, planned: WithPlan, purchase: Purchase, lock: PurchaseLock) -> str:
    """Buys the offering, writes the block's id to disk and returns it; the lock stays, unless AWS refused."""
    clients, file = change.clients, change.home.purchase_file(change.cluster)
    own_tags = planned.intent.config.tags
    tags = purchase_tags(own_tags, purchase_id=purchase.purchase_id, cluster=change.name, owner=planned.plan.owner)
    write_purchase(file, purchase)
    try:
        with aws_errors(f"buying the capacity block {offering.offering_id}"):
            id = buy(clients, offering.offering_id, tags)
    except CloudError as e:
        if not is_refused(e.__cause__):
            raise unanswered(purchase) from e
        file.unlink(missing_ok=True)
        with _noting_locks_that_stay(change):
            give_back(clients, lock)
        raise
    write_purchase(file, replace(purchase, reservation_id=id))
    return id

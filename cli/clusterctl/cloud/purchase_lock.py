"""Who may buy a capacity block for a cluster: one computer at a time, by a placement group that only one can make.

AWS has no lock, and takes no token with a purchase. A placement group's name is unique in an account's region, and goes
to whoever asks first (EC2 API, CreatePlacementGroup; error code InvalidPlacementGroup.Duplicate; 2026-11-26); an empty
group costs nothing. It stays for a while after the purchase: lists may not show a new block at once. Whoever takes the
place of a lock that is too old does not end it, since the request could arrive when somebody else holds that name:
instead, a lock with the next number is made beside it, and again only one computer can make that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG, OWNER_TAG, PURCHASE_TAG, PURCHASED_AT_TAG, PURCHASED_FOR_TAG

from clusterctl.cloud.block_purchase import SHOWN_WITHIN
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.refusal import aws_errors, code_of

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import TagSpecificationTypeDef

TAKEN = "InvalidPlacementGroup.Duplicate"
GONE = "InvalidPlacementGroup.Unknown"
TRIES = 3
"""How often the lock is asked for: another one may end between the attempt to make it and the look at who has it."""
MOST_LOCKS = 20
"""Each but the first is made after a purchase that was cut off, and all are ended once a block is bought."""


@dataclass(frozen=True, kw_only=True)
class PurchaseLock:
    """One purchase that is under way, or was a moment ago."""

    cluster: str
    purchase_id: str
    owner: str
    asked_at: datetime
    number: int = 0
    """0 for the first lock; one more than the number of the lock that it supersedes."""

    @property
    def name(self) -> str:
        """The name of the placement group."""
        return lock_name(self.cluster, self.number)


def lock_name(cluster: str, number: int = 0) -> str:
    """The name of the placement group that stands for a purchase for the cluster; no cluster's name has a dot."""
    return f"clusterctl-buys-{cluster}" + (f".{number}" if number else "")


def take_lock(clients: Clients, lock: PurchaseLock, *, own_tags: Mapping[str, str]) -> PurchaseLock:
    """Makes the lock, and returns it with its number. Raises CloudError, also if another purchase is under way.

    A lock that is too old for a purchase under way stays beside it. `own_tags`: a person's own, from cluster.yaml: an
    account may refuse resources without them.
    """
    with aws_errors(f"keeping others from buying a capacity block for {lock.cluster} at the same time"):
        for _ in range(TRIES):
            if _is_made(clients, lock, own_tags):
                return lock
            held = _newest(clients, lock.cluster)
            if held is not None and held.purchase_id == lock.purchase_id:
                return held  # the answer was lost, and botocore asked again
            if held is not None and not _is_old(held, lock.asked_at):
                break
            if held is not None:
                lock = replace(lock, number=held.number + 1)
    raise under_way(clients, lock.cluster, held)


def holds(clients: Clients, lock: PurchaseLock, *, now: datetime) -> bool:
    """Whether the newest lock is this purchase's, and will not soon be taken for an old one. Raises CloudError.

    Half of the time after which it is old is left for the purchase itself.
    """
    with aws_errors(f"looking who is buying a capacity block for {lock.cluster}"):
        held = _newest(clients, lock.cluster)
    return held is not None and held.purchase_id == lock.purchase_id and now - held.asked_at < SHOWN_WITHIN / 2


def give_back(clients: Clients, lock: PurchaseLock) -> None:
    """Ends the lock, if it is still this purchase's: nothing was bought. Raises CloudError."""
    with aws_errors(f"letting others buy a capacity block for {lock.cluster}"):
        if any(held.purchase_id == lock.purchase_id for held in _found(clients, lock.cluster)):
            _end(clients, lock)


def end_old_locks(clients: Clients, cluster: str, *, now: datetime) -> None:
    """Ends the cluster's locks if all are too old for a purchase under way. Raises CloudError.

    By then, AWS shows a block that was bought.
    """
    with aws_errors(f"looking who is buying a capacity block for {cluster}"):
        found = _found(clients, cluster)
        if all(_is_old(held, now) for held in found):
            for held in reversed(found):  # the first one last: whoever makes that one does not look at the others
                _end(clients, held)


def under_way(clients: Clients, cluster: str, held: PurchaseLock | None) -> CloudError:
    """The error for a computer that finds another one buying."""
    who = "somebody" if held is None else f"{held.owner or 'somebody'} (since {held.asked_at:%H:%M} UTC)"
    name = lock_name(cluster, 0 if held is None else held.number)
    until = "" if held is None else f" Nothing else is bought before {held.asked_at + SHOWN_WITHIN:%H:%M} UTC."
    return CloudError(
        f"{who} is buying a capacity block for {cluster}, perhaps on another computer, so none is bought here.{until} "
        "Run the same command again: it uses the block as soon as AWS shows it",
        code="PurchaseUnderWay",
        hint=f"aws ec2 describe-placement-groups --region {clients.region} --group-names {name}",
    )


def _is_made(clients: Clients, lock: PurchaseLock, own_tags: Mapping[str, str]) -> bool:
    try:
        clients.ec2.create_placement_group(
            GroupName=lock.name, Strategy="spread", TagSpecifications=_tagged(lock, own_tags)
        )
    except ClientError as e:
        if code_of(e) != TAKEN:
            raise
        return False
    return True


def _tagged(lock: PurchaseLock, own_tags: Mapping[str, str]) -> list[TagSpecificationTypeDef]:
    """The lock's tags, without a cluster's id: what ends clusters must not end it in the middle of a purchase."""
    own = {key: value for key, value in own_tags.items() if key != ID_TAG}
    purchase = {PURCHASE_TAG: lock.purchase_id, PURCHASED_FOR_TAG: lock.cluster, OWNER_TAG: lock.owner}
    tags = {**own, **purchase, PURCHASED_AT_TAG: lock.asked_at.isoformat(timespec="seconds")}
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": "placement-group", "Tags": rows}]  # type: ignore[typeddict-item]


def _newest(clients: Clients, cluster: str) -> PurchaseLock | None:
    return next(iter(reversed(_found(clients, cluster))), None)


def _is_old(held: PurchaseLock, now: datetime) -> bool:
    return now - held.asked_at >= SHOWN_WITHIN


def _found(clients: Clients, cluster: str) -> list[PurchaseLock]:
    """The locks there are, by number. Raises CloudError for a placement group with such a name that is not a lock."""
    names = {lock_name(cluster, number): number for number in range(MOST_LOCKS)}
    answer = clients.ec2.describe_placement_groups(Filters=[{"Name": "group-name", "Values": list(names)}])
    rows = {row["GroupName"]: row for row in answer["PlacementGroups"] if row.get("State") != "deleted"}
    return [
        _lock_of(clients, cluster, number, tags_of(rows[name].get("Tags")))
        for name, number in names.items()
        if name in rows
    ]


def _lock_of(clients: Clients, cluster: str, number: int, tags: Mapping[str, str]) -> PurchaseLock:
    try:
        asked_at = datetime.fromisoformat(tags[PURCHASED_AT_TAG])
        purchase_id = tags[PURCHASE_TAG]
    except (KeyError, ValueError) as e:
        name = lock_name(cluster, number)
        raise CloudError(
            f"the placement group {name} does not have the tags of a purchase for {cluster}: whoever made it, no "
            "capacity block is bought while it is there",
            code="NoPurchaseLock",
            hint=f"aws ec2 delete-placement-group --region {clients.region} --group-name {name}",
        ) from e
    asked_at = asked_at if asked_at.tzinfo is not None else asked_at.replace(tzinfo=UTC)  # a person wrote the tag
    owner = tags.get(OWNER_TAG, "")
    return PurchaseLock(cluster=cluster, purchase_id=purchase_id, owner=owner, asked_at=asked_at, number=number)


def _end(clients: Clients, lock: PurchaseLock) -> None:
    try:
        clients.ec2.delete_placement_group(GroupName=lock.name)
    except ClientError as e:
        if code_of(e) != GONE:
            raise

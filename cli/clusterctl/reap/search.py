"""Looks through regions for what clusters left in an account.

botocore's calls have deadlines, but the program that gives a person's credentials (`credential_process`) has none: so
it is run by `in_time`, which raises an error if no answer comes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from clusterctl_infra.errors import CloudError, UsageError

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.look import Look, NotListed, look_at_each, named
from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.resource import ResourceType
from clusterctl.cloud.resource_types import KINDS
from clusterctl.reap.remains import Remains, remains_of
from clusterctl.text.quantities import count

PARALLEL_REGIONS = 6
MAKING_S = 60.0
"""How long making a region's clients may take; far more than it needs, as each call has a deadline of its own."""
FIRST_REGION = "us-east-1"
"""The region that is asked which others there are: every account has it."""
NO_REGION = "no region"
"""Stands for the region of what is in none, such as roles."""
REGIONAL_KINDS = tuple(kind for kind in KINDS if not kind.is_global)
GLOBAL_KINDS = tuple(kind for kind in KINDS if kind.is_global)
ClientsOf = Callable[[str], Clients]
Looks = Callable[[Clients, Sequence[ResourceType]], Look]


@dataclass(frozen=True, kw_only=True)
class Search:
    """The regions that were looked through, and what was found in them."""

    regions: tuple[str, ...]
    all_regions: bool
    """Whether all regions were asked for."""
    remains: tuple[Remains, ...]
    unseen: Mapping[str, CloudError] = field(default_factory=dict)
    """Region → why it could not be looked through: organizations forbid some to everybody."""
    gaps: Mapping[str, NotListed] = field(default_factory=dict)
    """Region → kinds that AWS did not list there: a right is missing, or the service."""

    @property
    def is_whole(self) -> bool:
        """Whether AWS answered everything that it was asked."""
        return not self.unseen and not self.gaps

    @property
    def is_everywhere(self) -> bool:
        """Whether all was looked through, so that nothing of a cluster can be elsewhere."""
        return self.all_regions and self.is_whole

    def not_listed_in(self, region: str | None) -> frozenset[str]:
        """Kinds of which a cluster there may have things that nobody saw."""
        return frozenset(kind for place in (region, NO_REGION) for kind in self.gaps.get(place or NO_REGION, ()))

    @property
    def gap_texts(self) -> list[str]:
        """`FSx file system (AccessDeniedException) in eu-west-1` for each."""
        return [f"{kind} in {region}" for region, kinds in self.gaps.items() for kind in named(kinds)]


def anything(clients: Clients, kinds: Sequence[ResourceType]) -> Look:
    """What there is of these kinds, whichever cluster's. Raises CloudError when AWS lists none of them."""
    return look_at_each(clients, None, kinds).raise_if_blind()


def search(
    clients_of: ClientsOf,
    regions: tuple[str, ...],
    *,
    all_regions: bool,
    looks: Looks = anything,
    tell: Callable[[str], None] = lambda text: None,
) -> Search:
    """Everything of any cluster in these regions, or in every region of the account.

    A region that does not answer hides none of the others, and a service that refuses none of the other services of
    its region. Raises CloudError when no region answers.
    """
    tell("getting credentials")
    first = clients_of(regions[0] if regions else FIRST_REGION)
    made_in_time(first)
    if all_regions:
        regions = enabled_regions(first)
    by_region: dict[str, Look | CloudError] = {}
    with ThreadPoolExecutor(max_workers=PARALLEL_REGIONS) as pool:
        answers = pool.map(lambda region: _look(clients_of(region), REGIONAL_KINDS, looks), regions)
        for region in regions:
            tell(f"{len(by_region)} of {count(len(regions), 'region')} looked through")
            by_region[region] = next(answers)
    by_region[NO_REGION] = _look(clients_of(regions[0]), GLOBAL_KINDS, looks)
    found = {name: answer for name, answer in by_region.items() if not isinstance(answer, CloudError)}
    unseen = {name: answer for name, answer in by_region.items() if isinstance(answer, CloudError)}
    if not found.keys() - {NO_REGION}:
        raise next(iter(unseen.values()))
    return Search(
        regions=tuple(region for region in regions if region in found),
        all_regions=all_regions,
        remains=remains_of({name: seen.things for name, seen in found.items()}),
        unseen=unseen,
        gaps={name: seen.not_listed for name, seen in found.items() if seen.not_listed},
    )


def enabled_regions(clients: Clients) -> tuple[str, ...]:
    """The regions that the account uses, sorted. Raises CloudError."""
    with aws_errors("asking which regions the account has"):
        return tuple(sorted(row["RegionName"] for row in clients.ec2.describe_regions()["Regions"]))


def regions_asked(region: str | None, known: Iterable[str], configured: str | None, *, all_regions: bool) -> list[str]:
    """Where to look: the region named, else where this computer's clusters are and its AWS settings point.

    Raises UsageError when that is nowhere.
    """
    if region is not None:
        if all_regions:
            raise UsageError(f"--region {region} and --all-regions: give only one of them")
        return [region]
    found = sorted({*known, *([] if configured is None else [configured])})
    if not found and not all_regions:
        raise UsageError(
            "which region? No cluster on AWS is known on this computer, and its AWS settings name no region",
            hint="clusterctl reap --all-regions",
        )
    return found


def made_in_time(clients: Clients, timeout_s: float = MAKING_S) -> None:
    """Makes the region's clients, which needs a person's credentials; a program may have to run to get these.

    Raises CloudError.
    """

    def make() -> None:
        with aws_errors(f"getting credentials for {clients.region}"):
            clients.warm_up()

    in_time(make, timeout_s=timeout_s, doing=f"getting credentials for {clients.region}")


def _look(clients: Clients, kinds: Sequence[ResourceType], looks: Looks) -> Look | CloudError:
    """What is there, or why AWS does not say."""
    try:
        return looks(clients, kinds)
    except CloudError as refusal:
        return refusal


T = TypeVar("T")
NO_ANSWER = "NoAnswer"
"""The code of the error for what did not answer in time."""


def in_time(ask: Callable[[], T], *, timeout_s: float, doing: str) -> T:
    """What `ask` gives or raises, in a thread that no exit waits for. Raises CloudError when the time is over."""
    answers: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()
    threading.Thread(target=_answer, args=(ask, answers), daemon=True, name=doing).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except queue.Empty:
        raise CloudError(f"{doing}: no answer in {timeout_s:.0f} s", code=NO_ANSWER) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]


def _answer(ask: Callable[[], T], answers: queue.SimpleQueue[tuple[T] | BaseException]) -> None:
    try:
        answers.put((ask(),))
    except BaseException as e:  # noqa: BLE001  # `in_time` raises it again
        answers.put(e)

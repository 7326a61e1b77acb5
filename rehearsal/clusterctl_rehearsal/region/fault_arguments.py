"""What a person typed after a fault's verb, checked before the region is asked for anything. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import NoReturn

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.nearest import did_you_mean

from clusterctl_rehearsal.region.scheduled_events import DESCRIPTIONS
from clusterctl_rehearsal.region.settings import QUOTAS, capacity_problem, unknown_quota
from clusterctl_rehearsal.region.spot_notices import NOTICE_S

OFF = ("off", "none", "all")
"""Words that end a lasting fault."""
EVENT_IN_S = 14 * 86400
"""From the announcement of an event to its time. The number is ours; AWS promises none."""
_NODE = re.compile(r"[a-z][a-z0-9-]*-\d+")


class FaultError(Exception):
    """A fault cannot be done; the message says why."""


class NoSuchNode(FaultError):
    """The node that the fault names does not run."""


def parse_count(text: str) -> int:
    """The whole number. Raises FaultError."""
    if not (text.isascii() and text.isdigit()):
        raise FaultError(f"{text!r} is not a count")
    return int(text)


def parse_named_count(args: Sequence[str]) -> tuple[str, int | None]:
    """The name and count of `NAME=COUNT` or `NAME COUNT`; None for `off`. Raises FaultError."""
    name, *typed = [*args[0].split("=", 1), *args[1:]]
    if len(typed) != 1:
        raise FaultError(f"{' '.join(args)}: write {name}=COUNT, or {name}=off")
    return name, None if typed[0] in OFF else parse_count(typed[0])


def check_capacity(args: Sequence[str], catalog: Catalog) -> None:
    """Raises FaultError unless `args` are an instance type of the catalog, or a type in a zone, and a count."""
    name, _ = parse_named_count(args)
    problem = capacity_problem(name, catalog.names())
    if problem is not None:
        raise FaultError(problem)


def check_quota(args: Sequence[str], _: Catalog) -> None:
    """Raises FaultError unless `args` are a quota and a count."""
    name, _count = parse_named_count(args)
    if name not in QUOTAS:
        raise FaultError(unknown_quota(name))


def parse_off(args: Sequence[str], _: Catalog) -> bool:
    """Whether the fault is to end: yes for `off`, no without an argument. Raises FaultError."""
    if args and args[0] not in OFF:
        raise FaultError(f"{args[0]!r}: write off, or nothing")
    return bool(args)


def parse_milliseconds(args: Sequence[str], _: Catalog) -> int | None:
    """By how much each answer is to be delayed; None for `off`. Raises FaultError."""
    return None if args[0] in OFF else parse_count(args[0].removesuffix("ms"))


def parse_date(args: Sequence[str], _: Catalog) -> str | None:
    """The date that was typed, None for `off`. Raises FaultError."""
    if args[0] in OFF:
        return None
    try:
        return date.fromisoformat(args[0]).isoformat()
    except ValueError as e:
        raise FaultError(f"{args[0]!r} is not a date, such as 2027-01-31") from e


def parse_rate(args: Sequence[str], _: Catalog) -> int:
    """Mbit/s of a slow link. Raises FaultError."""
    rate_mbit = parse_count(args[1]) if len(args) > 1 else 10
    if rate_mbit == 0:
        raise FaultError("0 Mbit/s is no link: unplug takes a node off the network")
    return rate_mbit


def parse_notice(args: Sequence[str], _: Catalog) -> int | None:
    """Seconds from a spot machine's notice to its end; None for `off`. Raises FaultError."""
    if len(args) < 2:
        return NOTICE_S
    notice_s = None if args[1] in OFF else parse_count(args[1].removesuffix("s"))
    if notice_s is not None and notice_s > NOTICE_S:
        raise FaultError(f"{notice_s} s: AWS gives {NOTICE_S} s at most")
    return notice_s


def parse_event(args: Sequence[str], _: Catalog) -> tuple[str, int | None]:
    """An event's code, and in how many seconds it is to come; None for `off`. Raises FaultError."""
    code, typed = args[1], args[2] if len(args) > 2 else None
    if code not in DESCRIPTIONS:
        there = f"; there are {', '.join(DESCRIPTIONS)}"
        raise FaultError(f"AWS has no event {code!r}{did_you_mean(code, DESCRIPTIONS) or there}")
    if typed is None:
        return code, EVENT_IN_S
    return code, None if typed in OFF else parse_count(typed.removesuffix("s"))


def check_node_name(args: Sequence[str], _: Catalog) -> None:
    """Raises FaultError unless the first argument could be a node's name; the node need not exist yet."""
    if _NODE.fullmatch(args[0]) is None:
        raise FaultError(f"{args[0]!r} is no node's name: a cluster's name and a slot, such as train-2")


def refuse_node(name: str, running: Sequence[str]) -> NoReturn:
    """Raises NoSuchNode with the nearest name, or with all nodes that run."""
    there = f"; there are {', '.join(running)}" if running else "; nothing runs"
    raise NoSuchNode(f"no node {name}{did_you_mean(name, running) or there}")

"""The settings of rehearsal.yaml: how the region behaves; and what is wrong with such a file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any  # YAML and JSON values before they are checked

from clusterctl_infra.nearest import did_you_mean

QUOTAS = ("vcpus", "spot_vcpus", "addresses", "vpcs")
"""The limits of on-demand machines and of spot machines in vCPUs, of elastic IPs, and of VPCs."""
IN_ZONE = "@"
"""Separates instance type and zone in the key of a capacity limit."""
_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")
MACHINE_KINDS = ("auto", "nspawn", "process", "none")


class SettingsError(ValueError):
    """rehearsal.yaml has unknown keys or bad values; the message has all problems."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the region behaves. A default is AWS's own number where AWS has one for everybody."""

    machines: str = "auto"
    """What boots behind an instance: auto, nspawn, process, none."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """Instance type, or type and zone (`p5.48xlarge@us-west-2a`) → how many there are; other types are not limited."""
    quotas: Mapping[str, int] = field(default_factory=lambda: {"addresses": 5, "vpcs": 5})
    """By the names in QUOTAS; the two here are new accounts' defaults."""
    zones: tuple[str, ...] = ("a", "b", "c")
    """Letters of the zones in every region; each instance type is offered in all of them."""
    storage_s: int = 0
    """Seconds until a file system is available; on AWS it takes five to ten minutes."""
    buckets: tuple[str, ...] = ()
    """The buckets that exist; empty: every name is a bucket."""
    missing_packages: tuple[str, ...] = ()
    """Packages that nodes' sources do not have."""
    schedule_late_s: int = 60
    """How long after its time a schedule fires; AWS promises the minute (EventBridge Scheduler user guide, 2026-11)."""
    clock_ahead_s: int = 0
    """By how much the clock in AWS's answers is ahead of this computer's; negative: behind."""
    latency_ms: int = 0
    """Delay of every answer."""
    requests_per_s: int = 0
    """Requests beyond this rate are refused with RequestLimitExceeded; 0: no limit."""
    shares: Mapping[str, str] = field(default_factory=dict)
    """Folder of this computer → where machines see it, read-only; one that is not there is left out."""
    racks: int = 2
    """The number of racks among which DescribeInstanceTopology spreads machines."""
    images_dated: str = ""
    """A changed text simulates newer images."""
    existing: Mapping[str, Any] = field(default_factory=dict)
    """`networks` and `reservations` that the account has before any cluster; docs/rehearsal.md has an example."""
    blocks_begin_in_s: int = 0
    """How many seconds from now the first capacity block on offer begins; 0: at 11:30 UTC tomorrow."""
    strict: bool = False
    """Also refuses what AWS accepts although it hangs later; this rule is ours, not AWS's."""


def settings_from_rows(rows: Mapping[str, Any], *, source: str) -> Settings:
    """The settings in a mapping. Raises SettingsError with every problem."""
    known = {item.name: item for item in dataclasses.fields(Settings)}
    problems = [_unknown(key, tuple(known)) for key in rows if key not in known]
    values: dict[str, Any] = {}
    for key, value in rows.items():
        problem = _problem(key, value) if key in known else None
        if problem is not None:
            problems.append(problem)
        elif key in known:
            values[key] = value
    if problems:
        raise SettingsError(f"{source}: " + "; ".join(problems))
    if "quotas" in values:
        values["quotas"] = {**Settings().quotas, **values["quotas"]}
    for key in ("zones", "buckets", "missing_packages"):
        if key in values:
            values[key] = tuple(values[key])
    return Settings(**values)


def unknown_quota(name: str) -> str:
    """`addreses: there is no such quota (did you mean addresses?)`."""
    there = f" (there are {', '.join(QUOTAS)})"
    return f"{name}: there is no such quota" + (did_you_mean(name, QUOTAS) or there)


def unknown_type(name: str, types: Iterable[str]) -> str:
    """`p5.48xlage: there is no such instance type (did you mean p5.48xlarge?)`."""
    known = "; clusterctl prices lists those that are known"
    return f"{name}: there is no such instance type" + (did_you_mean(name, types) or known)


def capacity_problem(name: str, types: Collection[str]) -> str | None:
    """What is wrong with the name of a limit, which is a type, or a type in a zone; None: nothing."""
    kind, at, zone = name.partition(IN_ZONE)
    if kind not in types:
        return unknown_type(kind, types)
    is_zone = _ZONE.fullmatch(zone) is not None
    return f"{name}: {zone!r} is no zone, such as us-west-2a" if at and not is_zone else None


def _unknown(key: str, known: tuple[str, ...]) -> str:
    return f"{key}: unknown key" + (did_you_mean(key, known) or f" (there are {', '.join(known)})")


def _problem(key: str, value: Any) -> str | None:
    if key == "machines":
        return None if value in MACHINE_KINDS else f"machines: {value!r} is not one of {', '.join(MACHINE_KINDS)}"
    if key in ("capacity", "quotas"):
        fits = isinstance(value, Mapping) and all(_is_count(count) for count in value.values())
        if not fits:
            return f"{key}: {value!r} is not a mapping of names to counts"
        unknown = next((name for name in value if key == "quotas" and name not in QUOTAS), None)
        return None if unknown is None else f"quotas.{unknown_quota(str(unknown))}"
    if key == "existing":
        return None if isinstance(value, Mapping) else f"existing: {value!r} is not a mapping"
    if key == "racks":
        return None if _is_count(value) and value > 0 else f"racks: {value!r} is not a count from 1"
    if key in ("latency_ms", "requests_per_s", "storage_s", "schedule_late_s", "blocks_begin_in_s"):
        return None if _is_count(value) else f"{key}: {value!r} is not a count"
    if key == "clock_ahead_s":
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return None if is_whole else f"clock_ahead_s: {value!r} is not a whole number of seconds"
    if key == "shares":
        fits = isinstance(value, Mapping) and all(isinstance(path, str) for pair in value.items() for path in pair)
        return None if fits else f"shares: {value!r} is not a mapping of folders to folders"
    if key == "zones":
        fits = isinstance(value, (list, tuple)) and len(value) > 0 and all(_is_letter(item) for item in value)
        return None if fits else f"zones: {value!r} is not a list of letters, such as [a, b, c]"
    if key in ("buckets", "missing_packages"):
        fits = isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
        return None if fits else f"{key}: {value!r} is not a list of names"
    if key == "strict":
        return None if isinstance(value, bool) else f"strict: {value!r} is not true or false"
    return None if isinstance(value, str) else f"{key}: {value!r} is not a text"


def _is_letter(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value in ascii_lowercase


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

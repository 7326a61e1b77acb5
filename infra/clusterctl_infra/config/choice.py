"""Chooses one instance type of the catalog by `gpus:` or `instance_type:`.

Every refusal is a ValueError whose sentence follows "gpus: 'h100:9': " in the report.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from clusterctl_infra.catalog.gpus import EXAMPLES, GpuSpec, GpuSpecUnreadable, counts_of, gpu_keys, parse_gpus
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.nearest import did_you_mean

SIBLINGS_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class InstanceChoice:
    """The chosen type, and if several would do, the others and the rule by which it was chosen."""

    name: str
    others: tuple[str, ...] = ()
    note: str | None = None
    tried: tuple[str, ...] = ()
    """With a list: its types in the order in which `clusterctl up` asks for them; `name` is the most expensive."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What `clusterctl up` found room for; kept in the stack's config, so that every later run means the same."""

    instance_type: str | None
    """None: cluster.yaml names one type, and no list."""
    zone: str


def choose_instance(
    catalog: Catalog,
    *,
    region: str,
    gpus: str | Sequence[str] | None,
    instance_type: str | Sequence[str] | None,
    fabric: str,
) -> InstanceChoice:
    """The chosen instance type. Raises ValueError."""
    if (gpus is None) == (instance_type is None):
        raise ValueError("name exactly one of gpus and instance_type")
    if gpus is not None:
        by_gpus = partial(choose_by_gpus, catalog, region=region, fabric=fabric)
        return by_gpus(gpus) if isinstance(gpus, str) else _dearest(catalog, map(by_gpus, gpus), region=region)
    assert instance_type is not None
    if isinstance(instance_type, str):
        return _named(catalog, instance_type, region=region)
    return _dearest(catalog, (_named(catalog, name, region=region) for name in instance_type), region=region)


def _named(catalog: Catalog, name: str, *, region: str) -> InstanceChoice:
    return InstanceChoice(name=check_instance_type(catalog, name, region=region).name)


def _dearest(catalog: Catalog, choices: Iterable[InstanceChoice], *, region: str) -> InstanceChoice:
    """The most expensive type of a list, so that no type that AWS has capacity for costs more than was agreed to."""
    tried = tuple(dict.fromkeys(choice.name for choice in choices))
    prices = {name: catalog.price_usd_per_hour(name, region) for name in tried}
    name = max(tried, key=lambda name: math.inf if prices[name] is None else float(prices[name] or 0.0))
    note = f"{', '.join(tried)} are tried in this order; {name} is the most expensive" if len(tried) > 1 else None
    return InstanceChoice(name=name, others=tuple(each for each in tried if each != name), note=note, tried=tried)


def chosen_to_json(chosen: Chosen) -> str:
    """One line of JSON."""
    return json.dumps(asdict(chosen), separators=(",", ":"))


def chosen_from_json(text: str) -> Chosen:
    """What `chosen_to_json` wrote. Raises KeyError, TypeError, ValueError."""
    row = json.loads(text)
    name, zone = row["instance_type"], row["zone"]
    if not isinstance(zone, str) or not isinstance(name, str | None):
        raise TypeError("not texts")
    return Chosen(instance_type=name, zone=zone)


def check_instance_type(catalog: Catalog, name: str, *, region: str | None) -> InstanceType:
    """The row of that name, offered in the region. Raises ValueError."""
    found = catalog.instance_type(name)
    if found is None:
        reason = catalog.refused_types.get(name)
        if reason is not None:
            raise ValueError(f"not built yet: {reason}")
        raise ValueError(f"AWS has no such instance type, or it is not in the catalog{_near_type(catalog, name)}")
    if region is not None and not catalog.is_offered(name, region):
        raise ValueError(f"not offered in {region} (prices of {catalog.prices_dated}); {_offered(catalog, name)}")
    return found


def choose_by_gpus(catalog: Catalog, spec: str, *, region: str | None, fabric: str = "auto") -> InstanceChoice:
    """The cheapest fitting type. Raises ValueError."""
    try:
        wanted = parse_gpus(spec)
    except GpuSpecUnreadable as e:
        raise ValueError(str(e)) from e
    fitting = catalog.for_gpus(spec, region)
    if not fitting:
        raise ValueError(_no_such_gpus(catalog, spec, wanted))
    offered = [row for row in fitting if region is None or catalog.is_offered(row.name, region)]
    if not offered:
        where = "; ".join(f"{row.name}: {', '.join(catalog.regions_with_price(row.name))}" for row in fitting)
        raise ValueError(f"not offered in {region} (prices of {catalog.prices_dated}); {where}")
    usable = [row for row in offered if row.has_efa or fabric != "required"]
    if not usable:
        names = ", ".join(row.name for row in offered)
        raise ValueError(f"fabric: required, but {names} {'has' if len(offered) == 1 else 'have'} no EFA")
    return _first_of(catalog, spec, region, [row.name for row in usable])


def _first_of(catalog: Catalog, spec: str, region: str | None, names: list[str]) -> InstanceChoice:
    """The first, with the rule that put it there when there are others."""
    first, *rest = names
    if not rest:
        return InstanceChoice(name=first)
    if region is not None and catalog.price_usd_per_hour(first, region) is None:
        rule = "the first by name, since no price is known"
    else:
        rule = f"the cheapest known in {region}" if region is not None else "the cheapest known"
    note = f"{spec} is {first}: {rule}; instance_type chooses another ({', '.join(rest)})"
    return InstanceChoice(name=first, others=tuple(rest), note=note)


def _no_such_gpus(catalog: Catalog, spec: str, wanted: GpuSpec) -> str:
    same = catalog.with_gpu(spec)
    if not same:
        keys = sorted({key for row in catalog.types.values() for key in gpu_keys(row)})
        known = sorted({row.gpu_name for row in catalog.types.values() if gpu_keys(row) and row.gpu_name is not None})
        sizes = sorted({row.gpu_name or "" for row in catalog.types.values() if wanted.key in gpu_keys(row)})
        if sizes:
            return f"AWS has {' and '.join(sizes)} only"
        return f"no such GPU{did_you_mean(wanted.key, keys)}; known are {', '.join(known)}; written as {EXAMPLES}"
    counts = counts_of(same)
    label = (same[0].gpu_name or "").rpartition(" ")[0]
    if wanted.count > max(counts):
        return f"a node has at most {max(counts)} × {label} ({', '.join(counts[max(counts)])})"
    options = " or ".join(f"{count} ({' '.join(names)})" for count, names in counts.items())
    return f"a node with {label} has {options} of them"


def _near_type(catalog: Catalog, name: str) -> str:
    family = name.partition(".")[0]
    siblings = [each for each in catalog.names() if each.partition(".")[0] == family]
    if 0 < len(siblings) <= SIBLINGS_SHOWN:
        return f" (did you mean {' or '.join(siblings)}?)"
    return did_you_mean(name, siblings or catalog.names())


def _offered(catalog: Catalog, name: str) -> str:
    return f"it is in {', '.join(catalog.regions_with_price(name))}"

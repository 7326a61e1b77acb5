"""What functions need of their app's own cluster, as their arguments say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any  # what people write as a volume

from clusterctl_infra.catalog.gpus import EXAMPLES, GpuSpec, GpuSpecUnreadable, parse_gpus
from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

HINT = "docs/python.md has what App and function take"
FILE, BLOCK = "file", "block"
VOLUME_KEYS = ("name", "size_gb", "interface")
BUCKET = re.compile(r"s3://([^/]+)(?:/(.*))?")
FABRICS: Mapping[str, str] = {"infiniband": "required", "efa": "required", "ethernet": "none", "tcp": "none"}
"""A word for the network between nodes → the value of `fabric` in cluster.yaml."""
LINKS = ("sxm", "sxm4", "sxm5", "nvlink", "pcie")
PRIORITIES = ("med", "high")
"""Both mean on-demand machines: AWS sells no priority."""


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A file system that all nodes see, and the name that a person gave it."""

    path: str
    name: str
    size_gb: int


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A bucket, or the part of it below a prefix, that all nodes may read."""

    path: str
    bucket: str
    prefix: str
    """Empty, or with a slash at its end."""


@dataclass(frozen=True, kw_only=True)
class ClusterNeeds:
    """What a function, or all functions of an app, ask of the app's own cluster; None: nothing was asked."""

    num_instances: int = 1
    gpu: str | None = None
    instance_type: str | None = None
    image: str | None = None
    """A name from the catalog, or an AMI's id."""
    left_out_image: str | None = None
    """A container's image that was asked for and is not used, because functions run on the nodes themselves."""
    fabric: str | None = None
    fabric_word: str | None = None
    """The word with which the fabric was asked for."""
    link: str | None = None
    """The link that is asked for between the GPUs of a node, in lower case."""
    priority: str | None = None
    max_price_per_hour: float | None = None
    """US dollars for one node."""
    max_run_time_hours: float | None = None
    budget_usd: float | None = None
    volumes: tuple[Volume, ...] = ()
    mounts: tuple[Mount, ...] = ()


MOST_WINS = ("num_instances", "max_run_time_hours")
COLLECTED = ("volumes", "mounts")
WORDS = ("fabric_word", "left_out_image")
"""Only shown to people, so the first function's value is enough."""
ARGUMENT = {"fabric": "internode_interconnect", "link": "intranode_interconnect"}


def merged(needs: Mapping[str, ClusterNeeds]) -> ClusterNeeds:
    """What the cluster of all these functions needs. `needs`: function's name → what it needs.

    Raises UsageError where two of them contradict each other.
    """
    total: dict[str, Any] = {}  # as the fields are
    set_by: dict[str, str] = {}
    for function, asked in needs.items():
        for field in fields(ClusterNeeds):
            mine, others = getattr(asked, field.name), total.get(field.name)
            if mine is None or others is None:
                total[field.name] = others if mine is None else mine
            elif field.name in COLLECTED:
                total[field.name] = _joined(others, mine, function)
            elif field.name in MOST_WINS:
                total[field.name] = max(mine, others)
            elif field.name not in WORDS and not _means_the_same(field.name, mine, others):
                argument = ARGUMENT.get(field.name, field.name)
                raise UsageError(
                    f"{set_by[field.name]} has {argument}={others!r} and {function} {mine!r}, and one app has one "
                    "cluster: give one of them an App of its own",
                    hint=HINT,
                )
            if mine is not None:
                set_by.setdefault(field.name, function)
    found = ClusterNeeds(**total)
    if found.gpu is not None and found.instance_type is not None:
        raise UsageError("gpu= and instance_type=: give only one of them, since the type has its GPUs", hint=HINT)
    return found


def _means_the_same(field: str, mine: Any, others: Any) -> bool:
    return bool(gpu_spec(mine) == gpu_spec(others) if field == "gpu" else mine == others)


def _joined(others: tuple[Any, ...], mine: tuple[Any, ...], function: str) -> tuple[Any, ...]:
    """The volumes or mounts of both, each path once. Raises UsageError if they use a path for different things."""
    found = {each.path: each for each in others}
    for each in mine:
        if found.setdefault(each.path, each) != each:
            message = f"{function} has {each.path} as {each}, and another function of the app as {found[each.path]}"
            raise UsageError(message, hint=HINT)
    return tuple(found.values())


def gpu_spec(text: str) -> GpuSpec:
    """The GPUs of a node that a text such as `h100:8` means. Raises UsageError."""
    try:
        return parse_gpus(text)
    except GpuSpecUnreadable as e:
        raise UsageError(f"gpu={text!r}: write it as {EXAMPLES}", hint=HINT) from e


def volumes_of(volumes: Mapping[str, Mapping[str, Any]], *, num_instances: int) -> tuple[Volume, ...]:
    """The volumes of `volumes=`. Raises UsageError for what is unknown, not built yet, or impossible."""
    return tuple(_volume(str(path), words, num_instances=num_instances) for path, words in volumes.items())


def _volume(path: str, words: Mapping[str, Any], *, num_instances: int) -> Volume:
    where = f"volumes[{path!r}]"
    if not isinstance(words, Mapping):
        raise UsageError(f"{where} is {words!r}: write {{'name': …, 'size_gb': …, 'interface': 'file'}}", hint=HINT)
    for key in words:
        if key not in VOLUME_KEYS:
            raise UsageError(f"{where} has the unknown key {key!r}{did_you_mean(str(key), VOLUME_KEYS)}", hint=HINT)
    interface = words.get("interface", FILE)
    if interface == BLOCK:
        if num_instances > 1:
            message = f"a disk belongs to one machine, and there are {num_instances}: interface='file' is shared by all"
            raise UsageError(f"{where}: interface='block': {message}", hint=HINT)
        raise UsageError(f"{where}: interface='block' is not built yet: 'file' works on one node, too", hint=HINT)
    if interface != FILE:
        raise UsageError(f"{where}: interface={interface!r}: 'file' or 'block'", hint=HINT)
    name, size_gb = words.get("name"), words.get("size_gb")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}: name={name!r}: write a name, by which it is used again", hint=HINT)
    if isinstance(size_gb, bool) or not isinstance(size_gb, int) or size_gb < 1:
        raise UsageError(f"{where}: size_gb={size_gb!r}: whole gigabytes, from 1", hint=HINT)
    return Volume(path=path, name=name, size_gb=size_gb)


def mounts_of(mounts: Mapping[str, str]) -> tuple[Mount, ...]:
    """The buckets of `mounts=`. Raises UsageError for anything that is not an S3 URL."""
    found = []
    for path, source in mounts.items():
        match = BUCKET.fullmatch(source) if isinstance(source, str) else None
        if match is None:
            raise UsageError(f"mounts[{path!r}] is {source!r}: write s3://bucket or s3://bucket/prefix", hint=HINT)
        prefix = (match[2] or "").strip("/")
        found.append(Mount(path=str(path), bucket=match[1], prefix=f"{prefix}/" if prefix else ""))
    return tuple(found)


def fabric_of(word: str) -> str:
    """The value of `fabric` in cluster.yaml for a word such as `efa`. Raises UsageError."""
    fabric = FABRICS.get(word.lower())
    if fabric is None:
        raise UsageError(f"internode_interconnect={word!r}: EFA, InfiniBand (on AWS: EFA), or Ethernet", hint=HINT)
    return fabric


def link_of(word: str) -> str:
    """The link between a node's GPUs, such as `nvlink`, in lower case. Raises UsageError."""
    if word.lower() not in LINKS:
        raise UsageError(f"intranode_interconnect={word!r}: SXM4, SXM5, NVLink or PCIe", hint=HINT)
    return word.lower()


def refuse_priority(word: str) -> None:
    """Raises UsageError for a priority that does not exist or is not built yet."""
    if word == "low":
        message = "priority='low' is not built yet: spot machines are `capacity: spot` of a cluster.yaml"
        raise UsageError(f"{message}; functions run there with cluster=", hint=HINT)
    if word not in PRIORITIES:
        raise UsageError(f"priority={word!r}: 'med' or 'high'", hint=HINT)

"""What this computer keeps of a cluster of hosts, besides its inventory: its identity, and its nodes' machines.

There is no Pulumi state, since nothing is made that a provider could make. The seed is a secret, so only its owner can
read the file. Without the file, hosts can only be cleaned by hand (docs/hosts.md).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.file_lock import try_lock
from clusterctl_infra.host_and_port import HIGHEST_PORT, SSH_PORT, place
from clusterctl_infra.names import HOSTS_SUFFIX
from clusterctl_infra.outputs import Inventory, inventory_to_json
from clusterctl_infra.private_home import make_private_folder, private_opener
from clusterctl_infra.put_in_place import put_in_place
from clusterctl_infra.ranks import is_rank_order, kept_ranks
from clusterctl_infra.strict_json import Fields, NotAsExpected, parsed_object, shortened

from clusterctl.home import Home

VERSION = 1
"""The version of the file's format; any other is refused."""


@dataclass(frozen=True, kw_only=True)
class RecordedHost:
    """One slot's machine, as it was when it became a node."""

    address: str
    private_ip: str
    host_key: str
    port: int = SSH_PORT
    """The port of its SSH server, for this computer."""
    private_port: int = SSH_PORT
    """The port of its SSH server, for the other hosts."""

    @property
    def place(self) -> str:
        """`10.1.0.5`, or `10.1.0.5:2222` if its port is not the usual one."""
        return place(self.address, self.port)


@dataclass(frozen=True, kw_only=True)
class HostsRecord:
    """A cluster of hosts from its first `up` to its `down`."""

    name: str
    cluster_id: str
    seed: str
    """64 hex digits; the nodes' key and the barrier's secret derive from it."""
    started_at: str
    generation: int
    """The generation of the membership that nodes were told last; 0 before the first."""
    content: str
    """A hash of what that membership says, without its generation: if it stays the same, no new one is needed."""
    hosts: tuple[RecordedHost, ...]
    """By slot: the machines that are nodes, or on which something of this cluster may still be."""
    leaving: tuple[RecordedHost, ...] = ()
    """Machines that were taken out of the list and have not been cleaned yet."""
    ranks: tuple[int, ...] = ()
    """By slot, as they were ordered by switch; empty where they were not: then a rank is its slot."""
    work: str = ""
    """A hash of the mounts, packages and scripts that were agreed to; empty if there are none."""

    @property
    def cluster(self) -> str:
        """`lab@hosts`."""
        return self.name + HOSTS_SUFFIX

    @property
    def slot_ranks(self) -> tuple[int, ...]:
        """The rank of each slot that exists now."""
        return kept_ranks(self.ranks, nodes=len(self.hosts))

    def __repr__(self) -> str:
        return f"HostsRecord({self.cluster}, {self.cluster_id}, {len(self.hosts)} hosts)"


def new_record(config: HostsConfig, *, now: datetime) -> HostsRecord:
    """The record of a new cluster without hosts, with an id and a seed of its own."""
    return HostsRecord(
        name=config.name,
        cluster_id=secrets.token_hex(6),
        seed=secrets.token_hex(32),
        started_at=now.astimezone(UTC).isoformat(timespec="seconds"),
        generation=0,
        content="",
        hosts=(),
    )


def recorded_host(config: HostsConfig, slot: int) -> RecordedHost:
    """The machine that the configuration has for the slot; its host key is declared by now."""
    host = config.hosts[slot]
    return RecordedHost(
        address=host.address,
        private_ip=config.private_ips[slot],
        host_key=" ".join((host.host_key or "").split()[:2]),
        port=host.port,
        private_port=host.port if host.private_port is None else host.private_port,
    )


def wanted_record(config: HostsConfig, before: HostsRecord) -> HostsRecord:
    """The record with the hosts that cluster.yaml has now; those that are in it no longer become `leaving`."""
    hosts = tuple(recorded_host(config, slot) for slot in range(len(config.hosts)))
    left = {host.host_key: host for host in (*before.leaving, *before.hosts)}
    for host in hosts:
        left.pop(host.host_key, None)
    ranks = before.ranks and kept_ranks(before.ranks, nodes=len(hosts)) if config.ranks == "topology" else ()
    return replace(before, hosts=hosts, leaving=tuple(left.values()), ranks=ranks, work=_work_of(config))


def new_slots(before: HostsRecord | None, after: HostsRecord) -> tuple[int, ...]:
    """The slots whose hosts were not nodes before. A host is known by its host key, so it may get a new address."""
    known = set() if before is None else {host.host_key for host in before.hosts}
    return tuple(slot for slot, host in enumerate(after.hosts) if host.host_key not in known)


def read_record(name: str, home: Home) -> HostsRecord | None:
    """The record of the cluster with this name; None without one. Raises ClusterctlError if it cannot be read."""
    path = _file(name, home)
    try:
        row = parsed_object(path.read_bytes())
        if (version := row.whole("version")) != VERSION:
            raise NotAsExpected(f"version {version}; this clusterctl reads version {VERSION}")
        return HostsRecord(
            **{key: row.text(key) for key in ("name", "cluster_id", "seed", "started_at", "content")},
            generation=row.whole("generation", high=2**53),
            hosts=_hosts_in(row.objects("hosts", most=10_000)),
            leaving=_hosts_in(row.objects("leaving", most=10_000)),
            ranks=_ranks_in(row),
            work=row.text("work") if row.has("work") else "",
        )
    except FileNotFoundError:
        return None
    except (OSError, NotAsExpected) as e:
        raise ClusterctlError(
            f"{path}: cannot be read ({e}); it is all that is known of {name}{HOSTS_SUFFIX} here", hint=f"ls -l {path}"
        ) from e


def write_record(record: HostsRecord, home: Home) -> None:
    """Writes the record; it is safely on the disk when this returns."""
    path = _file(record.name, home)
    make_private_folder(path.parent)
    put_in_place(path, json.dumps({"version": VERSION, **dataclasses.asdict(record)}, indent=1) + "\n")


def keep_inventory(inventory: Inventory, home: Home) -> None:
    """Writes the inventory, which every verb reads."""
    make_private_folder(home.inventory_dir)
    text = json.dumps(inventory_to_json(inventory), indent=1) + "\n"
    put_in_place(home.inventory_file(inventory.cluster), text)


def forget_record(name: str, home: Home) -> None:
    """Removes the record, inventory and known_hosts file of a cluster that has ended."""
    cluster = name + HOSTS_SUFFIX
    for path in (home.inventory_file(cluster), home.keys_dir / cluster / "known_hosts", _file(name, home)):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # another file is in it
        (home.keys_dir / cluster).rmdir()


@contextlib.contextmanager
def held(name: str, home: Home, *, verb: str) -> Iterator[None]:
    """Holds the cluster's lock, so that no other command on this computer changes it within the block.

    Raises UsageError if another command holds it.
    """
    path = _file(name, home).with_suffix(".lock")
    make_private_folder(path.parent)
    with open(path, "a", opener=private_opener, encoding="utf-8") as lock:
        try:
            try_lock(lock.fileno())
        except BlockingIOError as e:
            message = f"another clusterctl changes {name}{HOSTS_SUFFIX} now; {verb} was not begun"
            raise UsageError(message, hint=f"clusterctl status --cluster {name}{HOSTS_SUFFIX}") from e
        yield


def _work_of(config: HostsConfig) -> str:
    scripts = [[script.model_dump(), script.content] for script in config.scripts]
    work = [[row.model_dump() for row in config.storage], list(config.packages), scripts]
    return hashlib.sha256(json.dumps(work).encode()).hexdigest() if any(work) else ""


def _file(name: str, home: Home) -> Path:
    return home.path / "hosts" / f"{name}.json"


def _hosts_in(rows: Iterable[Fields]) -> tuple[RecordedHost, ...]:
    return tuple(
        RecordedHost(
            address=row.text("address"),
            private_ip=row.text("private_ip"),
            host_key=row.text("host_key"),
            port=_port_in(row, "port"),
            private_port=_port_in(row, "private_port"),
        )
        for row in rows
    )


def _port_in(row: Fields, key: str) -> int:
    """The port in a row of the record; SSH's usual one if the record is from before ports could be chosen."""
    return row.whole(key, low=1, high=HIGHEST_PORT) if row.has(key) else SSH_PORT


def _ranks_in(row: Fields) -> tuple[int, ...]:
    """The ranks in the record; empty if it is from before ranks could be ordered. Raises NotAsExpected."""
    found = row.row.get("ranks") or []
    if not isinstance(found, list) or not is_rank_order(found):
        raise NotAsExpected(f"ranks is {shortened(found)}, which is not one rank for each slot, 0 for slot 0")
    return tuple(found)

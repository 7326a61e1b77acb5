"""The machines behind instances: their drivers, what they boot with, their networks' metadata services."""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from clusterctl_infra.names import MACHINES_NOTE

from clusterctl_rehearsal.home import clean_command
from clusterctl_rehearsal.machines.auto import Choice, MachineKind
from clusterctl_rehearsal.machines.driver import MachineDriver, MachineError, MachineFile, MachineSpec, MachineState
from clusterctl_rehearsal.machines.owners import network_elsewhere, root_elsewhere
from clusterctl_rehearsal.region.metadata import MetadataService
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.subnets import router_address
from clusterctl_rehearsal.region.types.network import INSTANCE, SUBNET
from clusterctl_rehearsal.storage import bucket_service
from clusterctl_rehearsal.storage.bucket_service import BucketService

FilesFor = Callable[[Record], Mapping[str, MachineFile]]
METADATA_ADDRESS = "169.254.169.254"


class MachineRoom:
    """Knows the driver of every instance and asks it."""

    def __init__(
        self,
        *,
        folder: Path,
        choose: Callable[[MachineKind], Choice],
        store: Store,
        files: FilesFor,
        shares: Callable[[], Mapping[str, str]],
        binds: Callable[[], Mapping[str, str]],
        metadata: MetadataService,
        buckets: BucketService,
    ) -> None:
        self._folder = folder
        self._choose = choose
        self._store = store
        self._files = files
        self._shares = shares
        self._binds = binds
        self._metadata = metadata
        self._buckets = buckets
        self._choices: dict[str, Choice] = {}
        self._drivers: dict[str, MachineDriver] = {}
        self._networks: set[str] = set()
        self._lock = threading.Lock()

    def driver(self, kind: str) -> MachineDriver:
        """The driver of that kind; for `auto` the best that works. Raises MachineError."""
        return self.choice(kind).driver

    def choice(self, kind: str) -> Choice:
        """The driver of that kind and why it was chosen; kinds with the same driver share it. Raises MachineError."""
        with self._lock:
            if kind not in self._choices:
                chosen = self._choose(cast(MachineKind, kind))
                driver = self._drivers.setdefault(chosen.driver.name, chosen.driver)
                self._choices[kind] = dataclasses.replace(chosen, driver=driver)
            return self._choices[kind]

    def boot(self, record: Record, progress: Callable[[str], None]) -> str:
        """Starts the instance's machine; returns the name of the driver that did."""
        choice = self.choice(record.facts["machines"])
        progress(f"{MACHINES_NOTE}{choice.sentence}")
        driver = choice.driver
        driver.prepare(progress)
        self._ready_network(driver, record)
        driver.boot(self._spec(record, driver.name))
        return driver.name

    def adopt(self, record: Record) -> bool:
        """Takes the instance's machine over after a restart of the region; false if it is gone or another home's."""
        driver = self.driver(record.facts["machines"])
        if driver.name == "none":  # a machine that is only written down, anew now
            driver.boot(self._spec(record, driver.name))
            return True
        if self._belongs_to_another_home(driver, record) or driver.state(*_names(record)) is MachineState.GONE:
            return False
        self._ready_network(driver, record)
        return True

    def state(self, record: Record) -> MachineState:
        return self.driver(record.facts["machines"]).state(*_names(record))

    def kill(self, record: Record) -> None:
        """Ends the machine at once; nothing happens if it is gone, or if another home's has its name now."""
        driver = self.driver(record.facts["machines"])
        if not self._belongs_to_another_home(driver, record):
            driver.kill(*_names(record))

    def delete_network(self, network: str) -> None:
        """Removes a VPC's network, with its metadata service."""
        self._metadata.close(network)
        self._buckets.close(network)
        with self._lock:
            self._networks.discard(network)
            drivers = list(self._drivers.values())
        for driver in drivers:
            driver.delete_network(network)

    def _ready_network(self, driver: MachineDriver, record: Record) -> None:
        network = str(record.facts["network"])
        with self._lock:
            if network in self._networks or driver.name == "none":
                return
            self._refuse_another_home(driver, network)
            subnet = self._subnet(record)
            driver.create_network(network, str(subnet.inputs["cidrBlock"]), router_address(subnet))
            self._metadata.serve(network, driver.listen(network, METADATA_ADDRESS, 80))
            if driver.name == "nspawn":
                self._buckets.serve(network, driver.listen(network, bucket_service.ADDRESS, bucket_service.PORT))
            self._networks.add(network)

    def check_name(self, kind: str, network: str) -> None:
        """Raises MachineError when machines of another home have the cluster's name on this computer."""
        self._refuse_another_home(self.driver(kind), network)

    def _belongs_to_another_home(self, driver: MachineDriver, record: Record) -> bool:
        """Whether another home has living machines of this cluster's name: then this record's machine is dead."""
        return driver.name != "none" and root_elsewhere(self._folder, str(record.facts["network"])) is not None

    def _refuse_another_home(self, driver: MachineDriver, network: str) -> None:
        if driver.name == "none":
            return
        ours = {row.facts["node"] for row in self._store.live(INSTANCE) if row.facts["network"] == network}
        others = sorted(node for cluster, node in driver.found() if cluster == network and node not in ours)
        if others:
            raise another_home(network, others, root_elsewhere(self._folder, network))
        if (folder := root_elsewhere(self._folder, network)) is not None:  # of another kind, or of another user
            raise another_home(network, [], folder)
        if (folder := network_elsewhere(self._folder, network)) is not None:
            raise another_home(network, ["its network only"], folder)

    def _spec(self, record: Record, driver: str) -> MachineSpec:
        facts, subnet = record.facts, self._subnet(record)
        primary = facts["interfaces"][0]
        return MachineSpec(
            cluster=facts["network"],
            node=facts["node"],
            instance_id=record.id,
            private_ip=primary["ip"],
            prefix_length=ipaddress.IPv4Network(subnet.inputs["cidrBlock"]).prefixlen,
            gateway_ip=router_address(subnet),
            mac=primary["mac"],
            user_data=base64.b64decode(facts["user_data"]),
            files=self._files(record),
            shares=self._binds() if driver == "nspawn" else {},  # the others mount nothing
            read_only_shares=self._shares(),
        )

    def _subnet(self, record: Record) -> Record:
        found = self._store.get(SUBNET, record.facts["interfaces"][0]["subnet"])
        assert found is not None  # a subnet with an instance in it cannot be deleted
        return found


def another_home(network: str, nodes: Sequence[str], folder: Path | None) -> MachineError:
    """The refusal that names the home whose machines these are, as far as it is known."""
    known = [*nodes, *([] if folder is None else [f"in the home {folder.parent.parent}"])]
    message = (
        f"machines of another home already use the name {network} on this computer ({', '.join(known)}): choose "
        "another name in cluster.yaml, or end those"
    )
    return MachineError(message, clean_command(network, folder))


def _names(record: Record) -> tuple[str, str]:
    return str(record.facts["network"]), str(record.facts["node"])

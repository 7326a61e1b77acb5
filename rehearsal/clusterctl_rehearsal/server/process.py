"""The region's server process: starts on demand, ends when it has no resource and no requests."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import TextIO

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.names import CHECKS_SIGNATURES, IS_ENDING
from clusterctl_infra.private_home import private_opener
from clusterctl_infra.region_keys import own_keys

from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.api.node_calls import NodeCalls
from clusterctl_rehearsal.api.state_machine_calls import ec2_calls
from clusterctl_rehearsal.full_disk import log_traceback
from clusterctl_rehearsal.gpu.files import machine_files
from clusterctl_rehearsal.home import RehearsalHome, cache_folder, current_home
from clusterctl_rehearsal.machines.auto import choose
from clusterctl_rehearsal.machines.driver import MachineFile
from clusterctl_rehearsal.packages.files import package_files
from clusterctl_rehearsal.put_in_place import put_in_place
from clusterctl_rehearsal.region.behaviour import Behaviour
from clusterctl_rehearsal.region.existing import is_existing
from clusterctl_rehearsal.region.failure_alarms import turn_on
from clusterctl_rehearsal.region.faults import Faults
from clusterctl_rehearsal.region.instances import Instances
from clusterctl_rehearsal.region.machine_room import METADATA_ADDRESS, MachineRoom
from clusterctl_rehearsal.region.metadata import MetadataService
from clusterctl_rehearsal.region.node_role import role_of
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.region import Region
from clusterctl_rehearsal.region.schedules import Schedules
from clusterctl_rehearsal.region.shares import Shares
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.torch_share import torch_files, torch_share
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.server.ending import Ending
from clusterctl_rehearsal.server.http import RegionServer
from clusterctl_rehearsal.server.private_requests import PrivateRequests
from clusterctl_rehearsal.server.throttle import Throttle
from clusterctl_rehearsal.states.executions import Executions
from clusterctl_rehearsal.storage.bucket_service import BucketService
from clusterctl_rehearsal.storage.files import storage_binds, storage_files

AWS_ENDPOINT = "/etc/clusterctl-rehearsal/aws-endpoint"
"""The file that tells a node where its AWS is: machines reach no real one."""
WATCH_S = 0.25
LOCK_TIMEOUT_S = 2.0


def main() -> int:
    """Serves the home's region until it has no resource and no requests, or is told to stop."""
    home = current_home()
    with open(home.lock_file, "w", opener=private_opener) as lock:
        if _locked(lock):  # else another process serves
            _Process(home).run()
    return 0


def _locked(lock: TextIO) -> bool:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):  # another process tests the lock, or the predecessor is ending
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


class _Process:
    def __init__(self, home: RehearsalHome) -> None:
        self._home = home
        self._stopped = threading.Event()
        self._started_at = time.time()
        self.store = Store(home.store)
        self._behaviour = Behaviour(home.root)
        self._catalog = load_catalog()
        room = MachineRoom(
            folder=home.machines,
            choose=partial(choose, root=home.machines, cache=cache_folder()),
            store=self.store,
            files=self._files,
            shares=lambda: {**torch_share(cache_folder()), **self._behaviour.settings().shares},
            binds=lambda: storage_binds(home.shares),
            metadata=MetadataService(self._asker, role_of=self._role_of, ask=self._ask),
            buckets=BucketService(home.buckets),
        )
        self._instances = Instances(store=self.store, room=room)
        region = self._region = Region(
            store=self.store,
            catalog=self._catalog,
            settings=self._behaviour.settings,
            instances=self._instances,
            shares=Shares(home.shares),
        )
        faults = Faults(
            instances=self._instances, behaviour=self._behaviour, catalog=self._catalog, stop=self._stopped.set
        )
        self._requests = PrivateRequests(region=region, behaviour=self._behaviour, faults=faults, throttle=Throttle())
        self._keys = own_keys(home.keys_file)
        executions = Executions(
            file=home.executions_file,
            calls=lambda name: ec2_calls(self._server.api, name),
            after=partial(turn_on, region),
        )
        self._schedules = Schedules(region=region, executions=executions)
        as_aws = self._requests.as_aws
        api = Api(region=region, before=as_aws, executions=executions, buckets=home.buckets)
        self._node_calls = NodeCalls(api=api, store=self.store)
        self._server = self._listen(api)

    def run(self) -> None:
        """Takes over what a predecessor left, announces where it listens, serves."""
        self._instances.adopt()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        self._announce(False)
        threading.Thread(target=self._server.api.warm_up, daemon=True).start()
        ending = Ending(activity=self._server.activity, announce=self._announce, is_empty=self._is_empty)
        while not self._stopped.wait(WATCH_S):
            try:
                self._instances.watch()
                self._region.expire()
                self._schedules.fire_due()
            except Exception:  # noqa: BLE001 — one failed round must not end the region
                log_traceback()
            if not self._is_ours() or ending.has_come():
                break
        time.sleep(0.05)  # the answer to stop-region is on its way
        self._server.shutdown()
        self._server.server_close()  # before the lock is free: the next region takes the same port

    def _is_empty(self) -> bool:
        return all(is_existing(row) for row in self.store.live())

    def _is_ours(self) -> bool:
        """Whether the home still names this process; not if it was removed, or another server has announced itself."""
        try:
            return bool(json.loads(self._home.endpoint_file.read_bytes())["pid"] == os.getpid())
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
            return False
        except OSError:  # unreadable now, as with too many open files: the next round tries again
            return True

    def _listen(self, api: Api) -> RegionServer:
        token = secrets.token_hex(16)
        put_in_place(self._home.token_file, token)

        def server(port: int) -> RegionServer:
            return RegionServer(port, requests=self._requests, api=api, token=token, keys=self._keys)

        try:  # the previous port: a client that knows the endpoint finds the region again
            return server(int(json.loads(self._home.endpoint_file.read_bytes())["endpoint"].rpartition(":")[2]))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, OSError):
            return server(0)

    def _announce(self, is_ending: bool) -> None:
        row = {"endpoint": self._endpoint(), "pid": os.getpid(), "started_at": self._started_at}
        row |= {CHECKS_SIGNATURES: True, IS_ENDING: is_ending}
        put_in_place(self._home.endpoint_file, json.dumps(row))

    def _endpoint(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def _asker(self, network: str, address: str) -> Record | None:
        for row in self.store.live(INSTANCE):
            if row.facts["network"] == network and any(card["ip"] == address for card in row.facts["interfaces"]):
                return row
        return None

    def _role_of(self, record: Record) -> str | None:
        role = role_of(self.store, record)
        return None if role is None else role.id

    def _ask(self, record: Record, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        reply = self._node_calls.answer(record, headers, body)
        return reply.status, reply.body

    def _files(self, record: Record) -> dict[str, MachineFile]:
        kind = self._catalog.instance_type(record.facts["instance_type"])
        failures = self._behaviour.faults().get("fail_bootstrap", {})
        failure = failures.get(record.facts["node"])
        files = {} if kind is None else {**machine_files(kind, record.id), **storage_files(kind)}
        files.update(package_files(self._catalog.mount_clients, self._behaviour.settings().missing_packages))
        files.update(simulated_efa(record))
        files.update(torch_files(cache_folder()))
        files[AWS_ENDPOINT] = MachineFile(content=f"http://{METADATA_ADDRESS}/\n".encode())
        if failure is not None:
            files["/var/lib/clusterctl/simulated-failure"] = MachineFile(content=f"{failure}\n".encode())
        return files


def simulated_efa(record: Record) -> dict[str, MachineFile]:
    """The file with the number of EFA interfaces that the machine was launched with; none without EFA.

    There is no such device here: the node reads the number, and reports simulated ones.
    """
    count = sum(card["kind"] != "interface" for card in record.facts["interfaces"])
    return {"/var/lib/clusterctl/simulated-efa": MachineFile(content=f"{count}\n".encode())} if count else {}


if __name__ == "__main__":
    sys.exit(main())

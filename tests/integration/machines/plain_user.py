"""Run as another user: boots two process machines, disturbs and ends them, prints what it saw as JSON."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path

from clusterctl_rehearsal.machines.connect import NotReached, open_connection
from clusterctl_rehearsal.machines.driver import MachineSpec
from clusterctl_rehearsal.machines.process import ProcessDriver


def main(request: dict[str, str]) -> dict[str, object]:
    """What each step gave; the cluster is gone afterwards, also after a failure."""
    driver = ProcessDriver(root=Path(request["root"]))
    problem = driver.unusable()
    if problem is not None:
        raise SystemExit(problem)
    cluster = request["cluster"]
    try:
        driver.create_network(cluster, "10.77.0.0/24", "10.77.0.1")
        for number in range(2):
            driver.boot(spec(request, number))
        states = [str(driver.state(cluster, "n-0"))]
        banner = first_bytes(request, "10.77.0.12")
        found = [each for each in driver.found() if each[0] == cluster]
        driver.freeze(cluster, "n-0")
        states.append(str(driver.state(cluster, "n-0")))
        driver.thaw(cluster, "n-0")
        states.append(str(driver.state(cluster, "n-0")))
        driver.partition(cluster, "n-0", "n-1")
        driver.slow(cluster, "n-1", 100)
        driver.heal(cluster)
        driver.kill(cluster, "n-0")
        states.append(str(driver.state(cluster, "n-0")))
    finally:
        driver.clean(cluster)
    left = sorted(path.name for path in Path(request["root"]).iterdir())
    return {"user": os.geteuid(), "states": states, "banner": banner, "found": found, "left": left}


def spec(request: dict[str, str], number: int) -> MachineSpec:
    config = {
        "ssh_keys": {"ed25519_private": request["private"], "ed25519_public": request["public"]},
        "users": [{"name": "ubuntu", "ssh_authorized_keys": [request["login"]]}],
    }
    return MachineSpec(
        cluster=request["cluster"],
        node=f"n-{number}",
        instance_id=f"i-{number}",
        private_ip=f"10.77.0.{11 + number}",
        prefix_length=24,
        gateway_ip="10.77.0.1",
        mac=f"02:00:00:00:00:{number:02x}",
        user_data=gzip.compress(f"#cloud-config\n{json.dumps(config)}".encode()),
        shares={request["share"]: "/mnt/shared"},
    )


def first_bytes(request: dict[str, str], address: str) -> str:
    deadline = time.monotonic() + 20
    while True:
        try:
            with open_connection(request["root"], request["cluster"], address, 22, 2) as connection:
                connection.settimeout(5)
                return connection.recv(100).decode()
        except NotReached:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)

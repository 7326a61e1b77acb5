"""One network for all tests of this folder: what does not end its machine shares one, the others have their own."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_infra.keys import host_key, login_key
from clusterctl_rehearsal.machines.nspawn import NspawnDriver

from tests.integration.bootstrap.bootstrapped import OWN, SEED, SLOT, SLOTS, Bootstrapped, address
from tests.integration.bootstrap.metadata_stub import MetadataStub


@contextlib.contextmanager
def a_network(folder: Path) -> Iterator[Bootstrapped]:
    """A cluster's network without machines. Needs root; whatever happens, nothing of it is left."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "clusterctl"
    driver = NspawnDriver(root=folder / "machines", cache=Path(os.environ.get("CLUSTERCTL_CACHE", default)))
    problem = driver.unusable()
    if problem is not None:
        pytest.fail(problem)
    driver.prepare(print)
    (folder / "login").write_text(login_key(SEED).private_pem)
    (folder / "login").chmod(0o600)
    known = "".join(f"{address(slot)} {host_key(SEED, slot).public}\n" for slot in range(SLOTS))
    (folder / "known_hosts").write_text(known)
    name = f"b{os.getpid()}-{time.time_ns() % 10**6}"
    driver.create_network(name, "10.0.0.0/16", "10.0.0.1")
    metadata = MetadataStub(driver.listen(name, "169.254.169.254", 80))
    metadata.start()
    try:
        yield Bootstrapped(driver=driver, name=name, folder=folder, metadata=metadata)
    finally:
        metadata.stop()
        driver.clean(name)


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bootstrapped]:
    """The network that most tests share."""
    with a_network(tmp_path_factory.mktemp("bootstrap")) as made:
        yield made


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bootstrapped]:
    """Slots 0 to 2 of three, up and ready, in a network of their own."""
    with a_network(tmp_path_factory.mktemp("trio")) as made:
        for slot in range(3):
            made.boot(made.plan(slot, nodes=3, left_s=3600))
        for slot in range(3):
            settled = made.wait_until_settled(slot)
            assert settled["phase"] == "ready", settled
        yield made


@pytest.fixture(scope="session")
def machine(network: Bootstrapped) -> Bootstrapped:
    """`SLOT` of four, up and ready; tests share it and leave its generation higher than they found it."""
    network.boot(network.plan(SLOT, left_s=3600, env=OWN))
    settled = network.wait_until_settled(SLOT)
    assert settled["phase"] == "ready", settled
    assert network.output(SLOT, "printenv GREETING") == OWN["GREETING"] + "\n", "what user-data says arrives as it is"
    return network


@pytest.fixture
def generation(machine: Bootstrapped) -> int:
    """A generation that the shared machine has not seen."""
    seen: int = machine.status(SLOT)["generation"]
    return seen + 1

"""One network for all tests of this folder: what does not end its machine shares one, the others have their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.bootstrap.bootstrapped import OWN, SLOT, Bootstrapped, a_network


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
            made.deliver_modules(slot)
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

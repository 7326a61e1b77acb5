"""Machines that all files of this folder share: booted once, and nobody's nodes after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.hosts.foreign import Foreign, foreign_network


@pytest.fixture(scope="package")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    """Three machines; nobody is at the third address."""
    with foreign_network(tmp_path_factory.mktemp("foreign")) as made:
        for number in (1, 2, 4):
            made.boot(number)
        for number in (1, 2, 4):
            made.wait_for_ssh(number)
        yield made


@pytest.fixture(autouse=True)
def cleaned(net: Foreign) -> Iterator[None]:
    """The machines are nobody's nodes afterwards, whatever became of the test."""
    yield
    net.clean()

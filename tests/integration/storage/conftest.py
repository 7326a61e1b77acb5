"""One cluster for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterctl_rehearsal.storage.bucket_service import ADDRESS, PORT, BucketService

from tests.integration.bootstrap.bootstrapped import a_network
from tests.integration.storage.stored import (
    BROKEN,
    CLIENTLESS,
    CLIENTS,
    EFS,
    LOCAL,
    LUSTRE,
    ODD,
    RESULTS,
    SCRIPTS,
    SETS,
    SHARED,
    SOURCELESS,
    UNPACKED,
    UNSCRIPTED,
    Stored,
)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """Slots 0 and 1, ready, with every kind of mount and script. Needs root."""
    folder = tmp_path_factory.mktemp("storage")
    with a_network(folder) as network:
        made = Stored(network=network, shares=folder / "shares")
        for name in (LUSTRE, EFS):
            (made.shares / name).mkdir(parents=True)
        (folder / "buckets/sets/imagenet").mkdir(parents=True)
        (folder / "buckets/sets/imagenet/a.txt").write_text("hello")
        buckets = BucketService(folder / "buckets")
        buckets.serve(network.name, network.driver.listen(network.name, ADDRESS, PORT))
        try:
            for slot in (0, 1):
                scripts = (CLIENTS, *SCRIPTS)
                made.boot(made.plan(slot, SHARED, ODD, SETS, RESULTS, LOCAL, scripts=scripts, packages=("htop",)))
            # The real apt-get and no stand-ins: they fail while the others boot.
            network.boot(made.plan(CLIENTLESS, SHARED))
            network.boot(made.plan(SOURCELESS, SHARED, scripts=(CLIENTS,)))
            network.boot(made.plan(UNSCRIPTED, scripts=(BROKEN,)))
            network.boot(made.plan(UNPACKED, packages=("htop",)))
            for slot in (0, 1):
                settled = network.wait_until_settled(slot)
                assert settled["phase"] == "ready", settled
            yield made
        finally:
            buckets.close(network.name)

"""With another account's credentials AWS shows nothing of a cluster: that says nothing of its machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.cloud.clients import Clients
from clusterctl.home import Home
from clusterctl.status.gather import asked_instances, asked_reserved

from tests.unit.cli.test_cost import an_inventory

OWN, OTHER = "111122223333", "444455556666"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Where the credentials are another account's, in which there is nothing."""
    monkeypatch.setattr(Clients, "account", lambda clients: OTHER)
    monkeypatch.setattr("clusterctl.cost.look.instances_of", lambda clients, cluster_id: ())
    monkeypatch.setattr("clusterctl.cost.look.reservations_of", lambda clients, cluster_id: ())
    return Home(path=tmp_path)


def test_machines_of_another_account_are_unknown_and_not_gone(home: Home) -> None:
    instances, trouble = asked_instances(an_inventory(account_id=OWN), home=home, environ={})
    assert instances is None
    assert trouble is not None
    assert f"in the AWS account {OWN}, and the credentials here are of {OTHER}" in trouble
    assert asked_reserved(an_inventory(account_id=OWN), home=home, environ={}) is None


@pytest.mark.parametrize("own", [OTHER, None])
def test_the_clusters_own_account_and_an_older_inventory_are_asked(home: Home, own: str | None) -> None:
    assert asked_instances(an_inventory(account_id=own), home=home, environ={}) == ((), None)

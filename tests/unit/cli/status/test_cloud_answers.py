"""With another account's credentials AWS shows nothing of a cluster: that says nothing of its machines."""

from __future__ import annotations

from pathlib import Path

from clusterctl.home import Home
from clusterctl.status.cloud_answers import asked_instances, asked_reserved
from clusterctl.status.cluster_clients import ClusterClients

from tests.unit.cli.cloud.moto_account import HERE, an_account
from tests.unit.cli.cost.paid_cluster import an_inventory

OWN = "111122223333"
PATIENCE_S = 120.0
"""boto3's clients take seconds to make, on a busy machine more than a person would wait."""


def test_machines_of_another_account_are_unknown_and_not_gone(tmp_path: Path) -> None:
    home, inventory = Home(path=tmp_path), an_inventory(account_id=OWN)
    with an_account():
        clients, id = ClusterClients(inventory, home=home, environ={}), inventory.cluster_id
        instances, trouble = asked_instances(clients, id, home=home, timeout_s=PATIENCE_S)
        is_reserved, why = asked_reserved(clients, id, home=home, timeout_s=PATIENCE_S)
    assert (instances, is_reserved) == (None, None)
    assert why == trouble
    assert trouble is not None
    assert f"in the AWS account {OWN}, but the credentials here belong to {HERE}" in trouble


def test_the_clusters_own_account_is_asked(tmp_path: Path) -> None:
    with an_account():
        home, own = Home(path=tmp_path), an_inventory(account_id=HERE)
        clients = ClusterClients(own, home=home, environ={})
        assert asked_instances(clients, own.cluster_id, home=home, timeout_s=PATIENCE_S) == ((), None)

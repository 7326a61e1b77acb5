"""With another account's credentials AWS shows nothing of a cluster: that says nothing of its machines."""

from __future__ import annotations

from pathlib import Path

from clusterctl.home import Home
from clusterctl.status.cloud_answers import asked_instances, asked_reserved

from tests.unit.cli.cloud.moto_account import HERE, an_account
from tests.unit.cli.cost.paid_cluster import an_inventory

OWN = "111122223333"
PATIENCE_S = 120.0
"""boto3's clients take seconds to make, on a busy machine more than a person would wait."""


def test_machines_of_another_account_are_unknown_and_not_gone(tmp_path: Path) -> None:
    home, inventory = Home(path=tmp_path), an_inventory(account_id=OWN)
    with an_account():
        instances, trouble = asked_instances(inventory, home=home, environ={}, timeout_s=PATIENCE_S)
        is_reserved, why = asked_reserved(inventory, home=home, environ={}, timeout_s=PATIENCE_S)
    assert (instances, is_reserved) == (None, None)
    assert why == trouble
    assert trouble is not None
    assert f"in the AWS account {OWN}, but the credentials here belong to {HERE}" in trouble


def test_the_clusters_own_account_is_asked(tmp_path: Path) -> None:
    with an_account():
        home, own = Home(path=tmp_path), an_inventory(account_id=HERE)
        assert asked_instances(own, home=home, environ={}, timeout_s=PATIENCE_S) == ((), None)

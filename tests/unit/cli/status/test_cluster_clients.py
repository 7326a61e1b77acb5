"""All questions about a cluster share clients, whose account is asked for once."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.home import Home
from clusterctl.status.cluster_clients import ClusterClients
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.moto_account import HERE, an_account
from tests.unit.cli.cost.paid_cluster import an_inventory


def test_all_questions_share_clients_that_are_made_once(tmp_path: Path) -> None:
    clients = ClusterClients(an_inventory(account_id=HERE), home=Home(path=tmp_path), environ={})
    assert clients.wrong_by is None, "nobody has asked yet"
    with an_account():
        first = clients.ready()
        assert "ec2" in vars(first), "made before threads share it"
    assert clients.ready() is first, "the account is not asked for again: nobody would answer now"


def test_clients_of_another_account_are_given_to_no_question_and_aws_is_asked_once(tmp_path: Path) -> None:
    clients = ClusterClients(an_inventory(account_id="111122223333"), home=Home(path=tmp_path), environ={})
    message = "in the AWS account 111122223333"
    with an_account(), pytest.raises(CloudError, match=message):
        clients.ready()
    with pytest.raises(CloudError, match=message):  # nobody would answer now
        clients.ready()

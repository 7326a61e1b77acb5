"""A name that this computer knows another cluster by: of another region or account, or down with its data kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.up_checks import refuse_namesake, taken_elsewhere
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cloud.fake_answers import ACCOUNT, clients_of
from tests.unit.cli.cost.paid_cluster import an_inventory

OTHERS = "0123456789ab"
ELSEWHERE = "444455556666"
LATER = (datetime.now(UTC) + timedelta(days=1)).isoformat()
PAST = (datetime.now(UTC) - timedelta(days=1)).isoformat()


def refusal_of_first_up(tmp_path: Path, *, has_data: bool = False, **known: object) -> CloudError | None:
    """The refusal of a first `up` in us-west-2 of ACCOUNT, if any, where AWS shows no living machine of that name."""
    home = Home(path=tmp_path)
    home.inventory_dir.mkdir(parents=True)
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(an_inventory(**known))))
    data = {"FileSystemId": "fs-1", "Tags": [{"Key": ID_TAG, "Value": OTHERS}]}
    clients = clients_of({("us-west-2", "describe_file_systems", "FileSystems"): [data]} if has_data else {})
    change = SimpleNamespace(clients=clients, name="train", cluster="train", home=home, is_rehearsal=False)
    try:
        refuse_namesake(cast("Change", change), StackState())
    except CloudError as refused:
        return refused
    return None


@pytest.mark.parametrize(
    ("known", "has_data", "words"),
    [
        ({"run_nodes_down": True}, True, "is down, and its data is kept in us-west-2"),
        ({"run_nodes_down": True}, False, None),  # ended from elsewhere
        ({"account_id": ELSEWHERE, "deadline": LATER}, False, f"runs in us-west-2 of the account {ELSEWHERE}"),
        ({"account_id": ELSEWHERE, "deadline": PAST}, False, None),
        ({"account_id": ELSEWHERE, "deadline": PAST, "run_nodes_down": True}, False, "its data is kept"),
        ({"account_id": ACCOUNT, "deadline": LATER}, False, None),  # AWS was asked about it
    ],
)
def test_an_up_that_would_lose_track_of_another_cluster_is_refused(
    tmp_path: Path, known: dict[str, object], has_data: bool, words: str | None
) -> None:
    refused = refusal_of_first_up(tmp_path, has_data=has_data, **known)
    assert refused is None if words is None else refused is not None and words in refused.message


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "it runs in us-west-2 (clusterctl:id"),
        ({"run_nodes_down": True}, "its data is kept in us-west-2 (clusterctl:id"),
        ({"account_id": ELSEWHERE}, f"it runs in us-west-2 of the account {ELSEWHERE} (clusterctl:id"),
        ({"account_id": ELSEWHERE, "rehearsal": True}, "it runs in us-west-2 (clusterctl:id"),
    ],
    ids=["an account that is not known", "without nodes", "another account", "a rehearsal has no account"],
)
def test_the_sentence_says_where_the_other_one_is(known: dict[str, object], words: str) -> None:
    assert f"{words} {OTHERS})" in taken_elsewhere(an_inventory(**known))


def test_where_another_cluster_of_that_name_runs_nothing_is_made(tmp_path: Path) -> None:
    machine = {"InstanceId": "i-0", "Tags": [{"Key": ID_TAG, "Value": OTHERS}]}
    clients = clients_of({("us-west-2", "describe_instances", "Reservations"): [{"Instances": [machine]}]})
    home = Home(path=tmp_path)
    change = SimpleNamespace(clients=clients, name="train", cluster="train", home=home, is_rehearsal=False)
    with pytest.raises(CloudError, match=rf"another cluster called train runs .*\(clusterctl:id {OTHERS}\)") as refused:
        refuse_namesake(cast("Change", change), StackState())
    assert (refused.value.code, refused.value.hint) == ("NameTaken", "clusterctl reap")

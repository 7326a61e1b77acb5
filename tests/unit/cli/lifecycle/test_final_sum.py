"""What `down` says last of the money: the sum of an account whose machines and reservation are gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl.cloud.instances import InstanceState
from clusterctl.cost.sighting_file import note_instances
from clusterctl.home import Home
from clusterctl.lifecycle.final_sum import final_sum_text
from clusterctl_infra.ledger import Ledger, ledger_to_json

from tests.unit.cli.cost.paid_cluster import BORN, a_span, an_inventory, at

INVENTORY = an_inventory(addresses_usd_per_hour=0.0, storage_usd_per_hour=0.0)
ENDED = InstanceState(
    instance_id="i-a",
    slot=0,
    state="terminated",
    private_ip=None,
    public_ip=None,
    reason=None,
    launched_at=BORN,
    ended_at=at(2),
    instance_type="p5.48xlarge",
)


@pytest.mark.parametrize(
    ("now_h", "amount"),
    [(3, "at most about $165.12"), (14, "at most about $660.48")],
    ids=["before its deadline", "after its deadline"],
)
def test_a_machine_and_then_its_place_count_until_nothing_is_held_any_more(
    tmp_path: Path, now_h: float, amount: str
) -> None:
    """At $55.04 an hour: until `down` gave the place back, and to the deadline at most."""
    home = Home(path=tmp_path)
    account = home.ledger_file(INVENTORY.cluster_id)
    account.parent.mkdir(parents=True)
    account.write_text(json.dumps({"opened": ledger_to_json(Ledger(spans=(a_span(0, "i-a"),))), "closed": []}))
    note_instances(home.observed_file(INVENTORY.cluster_id), [ENDED], at=at(2.1))
    assert final_sum_text(home, INVENTORY, now=at(now_h)) == f"it cost {amount} in all, by list prices"


def test_without_an_account_no_sum_is_told(tmp_path: Path) -> None:
    assert final_sum_text(Home(path=tmp_path), INVENTORY, now=at(3)) is None

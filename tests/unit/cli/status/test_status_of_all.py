"""`status` where several clusters are known: a line for each."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clusterctl.status.all_clusters import all_json, all_text, look_at_all
from clusterctl.status.facts import Facts
from clusterctl.status.overview import Overview, overview
from clusterctl_infra.outputs import Inventory, InventoryUnreadable

from tests.unit.cli.status.status_facts import NOW, READY, SILENT, machine

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def seen(inventory: Inventory, *, ready: int) -> Overview:
    slots = range(len(inventory.nodes))
    answers = {slot: READY if slot < ready else SILENT for slot in slots}
    return overview(inventory, Facts(now=NOW, instances=tuple(machine(slot) for slot in slots), answers=answers))


def test_each_cluster_has_state_nodes_rate_and_deadline(make_inventory: MakeInventory) -> None:
    over = (NOW - timedelta(minutes=4)).isoformat()
    known = {
        "a": seen(make_inventory(cluster="a"), ready=4),
        "b": seen(make_inventory(cluster="b", usd_per_hour=None), ready=3),
        "c": seen(make_inventory(cluster="c", run_nodes_down=True, size=0, usd_per_hour=1.38), ready=0),
        "d": seen(make_inventory(cluster="d", deadline=over), ready=0),
    }
    rows = look_at_all(sorted(known), known.__getitem__)
    assert all_text(rows).splitlines() == [
        "  cluster  state        nodes      $/h  deadline",
        "  a        ready          4/4  $220.16  22:00 UTC (in 10 h 48 m)",
        "  b        unreachable    3/4  unknown  22:00 UTC (in 10 h 48 m)",
        "  c        down           0/0    $1.38  –",
        "  d        ended          0/4  $220.16  11:08 UTC (4 m ago)",
        "  the nodes of one: clusterctl status --cluster a, or export CLUSTERCTL_CLUSTER=a",
    ]
    assert [row.is_ready for row in rows] == [True, False, True, False]


def test_a_cluster_that_cannot_be_read_hides_no_other(make_inventory: MakeInventory) -> None:
    def look(cluster: str) -> Overview:
        if cluster == "a":
            raise InventoryUnreadable("a.json: not JSON")
        return seen(make_inventory(cluster=cluster), ready=4)

    rows = look_at_all(["a", "b"], look)
    assert "  a: a.json: not JSON" in all_text(rows).splitlines()
    clusters = all_json(rows)["clusters"]
    assert isinstance(clusters, list)
    assert clusters[0] == {"cluster": "a", "trouble": "a.json: not JSON"}
    assert clusters[1]["cluster"] == "b"
    assert not rows[0].is_ready

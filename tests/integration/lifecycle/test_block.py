"""A capacity block that is looked for, bought once, waited for, lived in, and left as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # settings of a region

from clusterctl_infra.names import ID_TAG, PURCHASED_FOR_TAG
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import Record

from tests.integration.recorded_stack import INSTANCE
from tests.integration.rehearsed import Rehearsed, rehearsed

SEARCH: dict[str, Any] = {"find": {"hours": 24, "nodes": 3}}
BEGINS_IN_S = 12


def blocks(cluster: Rehearsed) -> list[Record]:
    return [row for row in cluster.resources() if row.token == CAPACITY_RESERVATION]


def test_one_block_is_bought_waited_for_used_by_every_run_and_never_ended(tmp_path: Path) -> None:
    with rehearsed(tmp_path, machines="none", nodes=2, capacity_block=SEARCH, caps={"runtime": "12h"}) as cluster:
        cluster.config.pop("zone")
        cluster.write(machines="none", settings={"blocks_begin_in_s": BEGINS_IN_S})
        asked = cluster.run("up", str(cluster.folder), "--ask", "--yes")
        assert asked.exit_code == 2, asked.text
        assert "--buy agrees to that, --yes does not" in asked.text
        assert blocks(cluster) == []

        early = cluster.run("up", str(cluster.folder), "--ask", "--yes", "--buy")
        assert early.exit_code == 1, early.text
        assert "is scheduled: it begins at" in early.text
        (block,) = blocks(cluster)
        assert (ID_TAG in block.tags, block.tags[PURCHASED_FOR_TAG]) == (False, cluster.name)
        nothing = cluster.run("down", str(cluster.folder))
        assert f"capacity block {block.id} stays: 3 × p5.48xlarge in us-west-2a" in nothing.text

        cluster.up("--retry-until-up", "--for", "3m")
        instances = [row for row in cluster.resources() if row.token == INSTANCE]
        assert [row.facts["reservation"] for row in instances] == [block.id] * 2
        assert cluster.inventory()["zone"] == "us-west-2a"
        preview = cluster.pulumi("preview", "--expect-no-changes")
        assert preview.exit_code == 0, preview.text

        ended = cluster.run("down", str(cluster.folder))
        assert ended.exit_code == 0, ended.text
        assert f"capacity block {block.id} stays" in ended.text
        reaped = cluster.run("reap", "--rehearse", "--yes")
        assert f"{cluster.name}: capacity block {block.id} stays" in reaped.text
        cluster.lose_home()
        cluster.up()
        assert [row.id for row in blocks(cluster)] == [block.id]
        cluster.down()
        assert [(row.id, row.state) for row in blocks(cluster)] == [(block.id, "active")]

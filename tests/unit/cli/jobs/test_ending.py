"""What comes here before a cluster ends never keeps it from ending."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.home import Home
from clusterctl.jobs.ending import is_here, keep_all
from clusterctl.jobs.job_state import merged
from clusterctl.jobs.kept_logs import kept_folder
from clusterctl.on_node.job import judge

from tests.unit.cli.conftest import MakeInventory
from tests.unit.cli.jobs.job_specs import spec


def test_whatever_goes_wrong_with_a_jobs_output_is_told_and_no_more(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    broken: Any = {"ssh": None}
    (told,) = keep_all(dataclasses.replace(make_inventory(), **broken), Home(path=tmp_path))
    assert told.startswith("their output is not kept here: ")


ENDED = {"state": judge.SUCCEEDED, "since_s": 100.0, "outcome": judge.outcome(judge.SUCCEEDED, "", ())}
RUNS = {"state": judge.RUNNING, "since_s": 100.0}
KEPT: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "all of it": (ENDED, {}, True),
    "it runs on": (RUNS, {}, False),
    "nothing yet": (ENDED, {"folders": ()}, False),
    "of one of its nodes": (ENDED, {"folders": (1,)}, False),
    "from before its end": (ENDED, {"kept_s": 90.0}, False),
    "of a cluster of this name that ended": (ENDED, {"cluster_id": "ba9876543210"}, False),
}


@pytest.mark.parametrize(("state", "kept", "is_all"), KEPT.values(), ids=KEPT.keys())
def test_output_that_came_after_the_end_from_all_nodes_need_not_come_again(
    tmp_path: Path, make_inventory: MakeInventory, state: dict[str, Any], kept: dict[str, Any], is_all: bool
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    found = {"folders": (1, 3), "kept_s": 110.0, "cluster_id": inventory.cluster_id, **kept}
    folder = kept_folder(home, inventory.cluster) / "first"
    folder.mkdir(parents=True)
    told = {"spec": spec(cluster_id=found["cluster_id"]), "states": {"1": ENDED}, "kept_s": found["kept_s"]}
    if found["folders"]:
        (folder / "job.json").write_text(json.dumps(told))
    for slot in found["folders"]:
        (folder / f"node-{slot}").mkdir()
    job = merged(spec(cluster_id=inventory.cluster_id), {1: state, 3: state})
    assert is_here(job, inventory, home) is is_all

"""What comes here before a cluster ends never keeps it from ending."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.home import Home
from clusterctl.jobs.ending import came_whole, is_here, keep_all
from clusterctl.jobs.fetching import Fetched
from clusterctl.jobs.job_state import JobState, merged
from clusterctl.jobs.kept_logs import keep_job, kept_folder, kept_job, put_fetched
from clusterctl.on_node.job import judge
from clusterctl_infra.outputs import Inventory

from tests.unit.cli.conftest import MakeInventory
from tests.unit.cli.jobs.job_specs import spec


def test_whatever_goes_wrong_with_a_jobs_output_is_told_and_no_more(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    broken: Any = {"ssh": None}
    (note,) = keep_all(dataclasses.replace(make_inventory(), **broken), Home(path=tmp_path))
    assert note.startswith("their output is not kept here: ")


ENDED = {"state": judge.SUCCEEDED, "since_s": 100.0, "outcome": judge.outcome(judge.SUCCEEDED, "", ())}
RUNS = {"state": judge.RUNNING, "since_s": 100.0}
WHOLE = {"1": 100.0, "3": 100.0}
KEPT: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "all of it": (ENDED, {}, True),
    "it runs on": (RUNS, {}, False),
    "nothing yet": (ENDED, {"folders": (), "whole": {}}, False),
    "of one of its nodes": (ENDED, {"folders": (1,), "whole": {"1": 100.0}}, False),
    "of a node whose folder was removed since": (ENDED, {"folders": (1,)}, False),
    "a part of what one of its nodes has": (ENDED, {"whole": {"1": 100.0}}, False),
    "from before its end on one of its nodes": (ENDED, {"whole": {"1": 100.0, "3": 90.0}}, False),
    "by a program that did not say what came": (ENDED, {"whole": None}, True),
    "by such a program before its end": (ENDED, {"whole": None, "kept_s": 100.0}, False),
    "by such a program, of one of its nodes": (ENDED, {"whole": None, "folders": (1,)}, False),
    "of a cluster of this name that ended": (ENDED, {"cluster_id": "ba9876543210"}, False),
}


@pytest.mark.parametrize(("state", "kept", "is_all"), KEPT.values(), ids=KEPT.keys())
def test_output_that_came_after_the_end_from_all_nodes_need_not_come_again(
    tmp_path: Path, make_inventory: MakeInventory, state: dict[str, Any], kept: dict[str, Any], is_all: bool
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    found = {"folders": (1, 3), "whole": WHOLE, "cluster_id": inventory.cluster_id, "kept_s": 110.0, **kept}
    folder = kept_folder(home, inventory.cluster) / "first"
    folder.mkdir(parents=True)
    stored = {"spec": spec(cluster_id=found["cluster_id"]), "states": {"1": ENDED}, "kept_s": found["kept_s"]}
    if found["whole"] is not None:
        stored["whole"] = found["whole"]
    (folder / "job.json").write_text(json.dumps(stored))
    for slot in found["folders"]:
        (folder / f"node-{slot}").mkdir()
    job = merged(spec(cluster_id=inventory.cluster_id), {1: state, 3: state})
    assert is_here(job, inventory, home) is is_all


def test_output_of_a_node_that_does_not_answer_now_may_be_older_than_its_end(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3)
    put_fetched(job_of(inventory, ENDED), (from_node(inventory, 1), from_node(inventory, 3)), folder, now_s=110.0)
    heard = merged(spec(cluster_id=inventory.cluster_id), {1: ENDED})
    assert not is_here(heard, inventory, home)


def test_a_fetch_that_failed_leaves_the_earlier_copy_and_does_not_make_it_the_last_one(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3, text="while it ran")
    ran = (from_node(inventory, 1), from_node(inventory, 3))
    put_fetched(job_of(inventory, {**RUNS, "since_s": 90.0}), ran, folder, now_s=95.0)
    arrived(folder, 1, 3, text="after its end")
    job, fetched = job_of(inventory, ENDED), (from_node(inventory, 1), from_node(inventory, 3, error="it broke off"))
    put_fetched(job, fetched, folder, now_s=110.0)
    assert [(folder / f"node-{slot}/output").read_text() for slot in (1, 3)] == ["after its end", "while it ran"]
    assert not is_here(job, inventory, home)
    assert not came_whole(job, fetched, inventory, home)


def test_a_part_is_kept_where_nothing_was_and_comes_again(tmp_path: Path, make_inventory: MakeInventory) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3)
    job, fetched = job_of(inventory, ENDED), (from_node(inventory, 1), from_node(inventory, 3, error="it broke off"))
    put_fetched(job, fetched, folder, now_s=110.0)
    assert (folder / "node-3/output").exists()
    assert not is_here(job, inventory, home)
    arrived(folder, 3)
    again = (from_node(inventory, 3),)
    put_fetched(job, again, folder, now_s=120.0)
    assert is_here(job, inventory, home)
    assert came_whole(job, again, inventory, home)


def test_a_whole_copy_stays_one_when_a_later_fetch_fails(tmp_path: Path, make_inventory: MakeInventory) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3)
    job = job_of(inventory, ENDED)
    put_fetched(job, (from_node(inventory, 1), from_node(inventory, 3)), folder, now_s=110.0)
    put_fetched(job, (from_node(inventory, 1, error="not reached"),), folder, now_s=120.0)
    assert is_here(job, inventory, home)


FAILED = {**ENDED, "state": judge.FAILED, "outcome": judge.outcome(judge.FAILED, "rank 4 exited with code 7", ())}
ENDED_WITHOUT = {"state": judge.LOST, "since_s": 101.0, "outcome": judge.outcome(judge.LOST, "Node 1 was silent", ())}


def test_what_a_node_said_of_a_job_s_end_stays_known_when_the_node_is_silent_later(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3)
    both = merged(spec(cluster_id=inventory.cluster_id), {1: FAILED, 3: ENDED_WITHOUT})
    put_fetched(both, (from_node(inventory, 1), from_node(inventory, 3)), folder, now_s=110.0)
    arrived(folder, 3)
    without_1 = merged(spec(cluster_id=inventory.cluster_id), {3: ENDED_WITHOUT})
    fetched = (from_node(inventory, 3),)
    put_fetched(without_1, fetched, folder, now_s=120.0)
    kept = kept_job(home, inventory.cluster, "first")
    assert kept is not None
    assert (kept.state.state, kept.state.outcome) == (judge.FAILED, FAILED["outcome"])
    assert kept.state.by_slot == {1: FAILED, 3: ENDED_WITHOUT}
    assert came_whole(without_1, fetched, inventory, home), "what came of the silent node came after its end"


def test_a_copy_of_a_silent_node_from_when_it_ran_is_not_all_of_its_files(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3)
    put_fetched(job_of(inventory, RUNS), (from_node(inventory, 1), from_node(inventory, 3)), folder, now_s=110.0)
    arrived(folder, 1)
    heard = merged(spec(cluster_id=inventory.cluster_id), {1: {**ENDED, "since_s": 120.0}})
    fetched = (from_node(inventory, 1),)
    put_fetched(heard, fetched, folder, now_s=130.0)
    kept = kept_job(home, inventory.cluster, "first")
    assert kept is not None
    assert kept.states[3] == RUNS, "as the node said it"
    assert kept.short_slots == (3,)
    assert not came_whole(heard, fetched, inventory, home)


def test_what_was_said_of_an_earlier_attempt_says_nothing_of_this_one(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    arrived(folder, 1, 3)
    put_fetched(job_of(inventory, ENDED), (from_node(inventory, 1), from_node(inventory, 3)), folder, now_s=110.0)
    arrived(folder, 1)
    again = merged(spec(cluster_id=inventory.cluster_id, attempt=2), {1: {**ENDED, "since_s": 120.0}})
    put_fetched(again, (from_node(inventory, 1),), folder, now_s=130.0)
    kept = kept_job(home, inventory.cluster, "first")
    assert kept is not None
    assert kept.state.unheard == (3,)
    assert kept.short_slots == (3,)


def test_what_an_older_program_kept_after_the_end_counts_as_whole_when_its_node_is_silent(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    folder = kept_folder(home, inventory.cluster) / "first"
    (folder / "node-3").mkdir(parents=True)
    stored = {"spec": spec(cluster_id=inventory.cluster_id), "states": {"1": ENDED, "3": ENDED}, "kept_s": 110.0}
    (folder / "job.json").write_text(json.dumps(stored))
    arrived(folder, 1)
    heard, fetched = merged(spec(cluster_id=inventory.cluster_id), {1: ENDED}), (from_node(inventory, 1),)
    put_fetched(heard, fetched, folder, now_s=120.0)
    assert came_whole(heard, fetched, inventory, home)


@pytest.mark.parametrize("name", ["../first", "First"])
def test_a_job_whose_name_no_folder_may_have_does_not_count_as_kept(
    tmp_path: Path, make_inventory: MakeInventory, name: str
) -> None:
    inventory, home = make_inventory(), Home(path=tmp_path)
    nodes: Any = None  # nothing is asked of them
    job = merged(spec(job=name, cluster_id=inventory.cluster_id), {1: ENDED, 3: ENDED})
    fetched = keep_job(job, nodes, inventory.nodes, home)
    assert not came_whole(job, fetched, inventory, home)
    assert not any(tmp_path.iterdir())


def job_of(inventory: Inventory, state: dict[str, Any]) -> JobState:
    return merged(spec(cluster_id=inventory.cluster_id), {1: state, 3: state})


def from_node(inventory: Inventory, slot: int, *, error: str | None = None) -> Fetched:
    return Fetched(node=inventory.nodes[slot], error=error)


def arrived(folder: Path, *slots: int, text: str = "") -> None:
    """Puts a fresh copy where a fetch has these nodes' files unpacked."""
    for slot in slots:
        (folder / f"node-{slot}.new").mkdir(parents=True)
        (folder / f"node-{slot}.new/output").write_text(text)

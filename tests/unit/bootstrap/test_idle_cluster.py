"""Which node judges, how often it looks, and what it tells people and nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.ending import idle_limit_s
from clusterctl_bootstrap.node.idle_cluster import interval_s, warn_s, warning
from clusterctl_bootstrap.node.idle_node import WANTED, wanted_end
from clusterctl_bootstrap.node.idle_peer import argv, newest


@pytest.mark.parametrize(
    ("slot", "pushed", "limit"),
    [
        (0, {"idle_s": 1800}, 1800.0),
        (1, {"idle_s": 1800}, 0.0),
        (0, {}, 0.0),
        (0, None, 0.0),
    ],
    ids=["slot 0", "another slot", "no rule", "no membership"],
)
def test_slot_0_alone_judges_and_only_where_there_is_a_rule(
    tmp_path: Path, slot: int, pushed: dict[str, int] | None, limit: float
) -> None:
    folder = tmp_path / "var/lib/clusterctl"
    folder.mkdir(parents=True)
    (folder / "birth.json").write_text(json.dumps({"slot": slot}))
    if pushed is not None:
        (folder / "cluster.json").write_text(json.dumps({"cluster_id": "x", "generation": 1, **pushed}))
    assert idle_limit_s(tmp_path) == limit


@pytest.mark.parametrize(
    ("limit", "interval", "warned"),
    [(10.0, 1.0, 10 / 3), (300.0, 15.0, 100.0), (1800.0, 30.0, 300.0), (86400.0, 30.0, 300.0)],
)
def test_looks_are_frequent_and_people_are_warned_in_time(limit: float, interval: float, warned: float) -> None:
    assert (interval_s(limit), warn_s(limit)) == (interval, warned)


def test_the_warning_says_what_keeps_the_cluster() -> None:
    sentence = "train has been idle for 25 minutes and ends in 5 minutes: a login, a job or work on any node keeps it"
    assert warning("train", 1500, 300) == sentence


def test_other_nodes_are_asked_over_ssh_and_told_which_connection_is_ours() -> None:
    known = {"cluster": "train", "slot": 0}
    assert argv(known, 0, 30.0)[1:3] == ["idle-report", "30"]
    *options, place, command = argv(known, 2, 30.0)
    assert place == "ubuntu@train-2"
    assert "BatchMode=yes" in options
    assert command.endswith("idle-report 30 $SSH_CONNECTION")


def test_an_answer_holds_while_slot_0_waits_for_others_and_what_is_said_meanwhile_counts() -> None:
    report = {"generation": 1, "quiet_s": 12.0, "signs": [], "saves": False}
    answer = newest({**report, "asked": 2}, {})
    later = newest({**report, "quiet_s": 0.0, "signs": ["job train"], "asked": 0}, answer)
    assert (later["asked"], later["signs"], later["quiet_s"]) == (2, ["job train"], 0.0)
    assert newest({**report, "asked": 3}, later)["asked"] == 3


def test_a_report_from_before_the_question_answers_nothing() -> None:
    report = {"generation": 1, "quiet_s": 12.0, "signs": [], "saves": False, "asked": 0}
    assert newest(report, newest(report, {}))["asked"] == 0


def test_a_node_ends_only_when_it_was_told_why(tmp_path: Path) -> None:
    assert wanted_end(tmp_path) == ""
    (tmp_path / WANTED).parent.mkdir(parents=True)
    (tmp_path / WANTED).write_text("idle since 2026-11-21T16:52:00Z")
    assert wanted_end(tmp_path) == "idle since 2026-11-21T16:52:00Z"

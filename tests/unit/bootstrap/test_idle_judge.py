"""When a node, and a cluster, counts as idle."""

from __future__ import annotations

from typing import Any

import pytest
from clusterctl_bootstrap.node.idle_judge import LastReport, Reading, Verdict, signs_of_life, verdict
from hypothesis import given
from hypothesis import strategies as some

LIMIT_S = 1800.0
BEFORE = Reading(
    at_s=100.0,
    phase="ready",
    changed="a push",
    gpu_percents=(0, 0),
    gpu_processes=0,
    ssh_sessions=0,
    jobs=(),
    cpu_s=50.0,
    disk_bytes=10**9,
    network_bytes=10**9,
)
QUIET = BEFORE._replace(at_s=130.0, cpu_s=53.0, disk_bytes=10**9 + 10**6, network_bytes=10**9 + 10**7)

SIGNS: dict[str, tuple[dict[str, Any], str]] = {
    "a GPU works": ({"gpu_percents": (0, 98)}, "a GPU at 98 %"),
    "a process holds a GPU": ({"gpu_processes": 1}, "1 GPU process"),
    "several do": ({"gpu_processes": 8}, "8 GPU processes"),
    "somebody is logged in": ({"ssh_sessions": 2}, "2 SSH sessions"),
    "a job runs": ({"jobs": ("train",)}, "job train"),
    "a program computes": ({"cpu_s": 53.0 + 27.0}, "1.0 processor cores in use"),
    "a program ended that nobody waited for": ({"cpu_s": 50.0 - 30.0}, "1.0 processor cores in use"),
    "a checkpoint goes to a disk": ({"disk_bytes": 4 * 10**9}, "writes 100.0 MB/s"),
    "a checkpoint goes to the network": ({"network_bytes": 4 * 10**9}, "network: 100.0 MB/s"),
    "a megabyte a second is written": ({"disk_bytes": 10**9 + 30 * 10**6}, "writes 1.0 MB/s"),
    "it boots": ({"phase": "scripts"}, "still boots (scripts)"),
    "a membership came": ({"changed": "another push"}, "its membership came"),
    "a signal is not readable": ({"unreadable": ("GPU use not readable (exit 9)",)}, "GPU use not readable (exit 9)"),
}


@pytest.mark.parametrize(("change", "sign"), SIGNS.values(), ids=SIGNS.keys())
def test_one_sign_of_life_is_enough(change: dict[str, Any], sign: str) -> None:
    assert signs_of_life(BEFORE, QUIET._replace(**change)) == [sign]


def test_without_any_sign_a_node_is_quiet() -> None:
    assert signs_of_life(BEFORE, QUIET) == []


def test_the_noise_of_a_machine_that_nobody_uses_is_no_sign() -> None:
    noise = QUIET._replace(gpu_percents=(0, 2), cpu_s=BEFORE.cpu_s + 5, network_bytes=BEFORE.network_bytes + 20 * 10**6)
    assert signs_of_life(BEFORE, noise) == []


def test_the_first_look_is_a_sign_since_nothing_is_known_before_it() -> None:
    assert signs_of_life(None, QUIET) == ["seen for the first time"]


def test_a_node_that_failed_to_boot_does_not_keep_the_cluster_by_that() -> None:
    assert signs_of_life(BEFORE, QUIET._replace(phase="failed")) == []


def test_a_node_without_gpus_or_disks_of_its_own_is_judged_by_the_rest() -> None:
    bare: dict[str, Any] = {"gpu_percents": None, "gpu_processes": None, "disk_bytes": None}
    assert signs_of_life(BEFORE._replace(**bare), QUIET._replace(**bare)) == []


def test_what_was_read_only_once_has_no_rate() -> None:
    assert signs_of_life(BEFORE._replace(disk_bytes=None), QUIET) == []
    assert signs_of_life(BEFORE, QUIET._replace(disk_bytes=None)) == []


def reported(*signs: str, quiet_s: float = LIMIT_S, generation: int = 3) -> LastReport:
    """A node that reported a second ago."""
    return LastReport({"generation": generation, "quiet_s": quiet_s, "signs": list(signs)}, 1.0)


def silent(for_s: float) -> LastReport:
    """A node that has not reported for so long."""
    return LastReport(None, for_s)


def judged(*nodes: LastReport) -> Verdict:
    return verdict(list(nodes), "train", 3, LIMIT_S)


KEEPS = {
    "one node is in use": ([reported(), reported("1 SSH session", quiet_s=0)], "train-1: 1 SSH session"),
    "one node has another membership": ([reported(), reported(generation=2)], "train-1: has another membership (2)"),
    "one node does not report": ([reported(), reported(), silent(60.0)], "train-2: does not report"),
    "too few report": ([reported(), silent(9999.0)], "only 1 of 2 nodes report"),
}


@pytest.mark.parametrize(("nodes", "why"), KEEPS.values(), ids=KEEPS.keys())
def test_what_keeps_a_cluster_is_named(nodes: list[LastReport], why: str) -> None:
    assert judged(*nodes) == (0.0, (why,), False)


def test_a_cluster_is_as_idle_as_the_node_that_was_used_last() -> None:
    assert judged(reported(quiet_s=4000.0), reported(quiet_s=700.0)) == (700.0, (), False)
    assert judged(reported(quiet_s=4000.0), reported(quiet_s=1800.0)) == (1800.0, (), True)


def test_a_machine_that_is_lost_for_the_whole_time_does_not_keep_the_others() -> None:
    assert judged(reported(), reported(), silent(LIMIT_S)).is_over


QUIET_S = some.floats(min_value=0, max_value=10**6)
NODES = some.one_of(
    some.builds(reported, quiet_s=QUIET_S),
    some.builds(reported, some.sampled_from(["1 SSH session", "GPU use not readable"]), quiet_s=QUIET_S),
    some.builds(reported, quiet_s=QUIET_S, generation=some.integers(1, 4)),
    some.builds(silent, QUIET_S),
)


@given(some.lists(NODES, min_size=1, max_size=12))
def test_a_cluster_ends_only_when_a_quorum_reports_and_nobody_speaks_against_it(nodes: list[LastReport]) -> None:
    found = verdict(nodes, "train", 3, LIMIT_S)
    reports = [node.report for node in nodes if node.report is not None]
    if found.is_over:
        assert len(reports) * 2 > len(nodes)
        assert all(not report["signs"] and report["quiet_s"] >= LIMIT_S for report in reports)
        assert all(report["generation"] == 3 for report in reports)
        assert all(node.silent_s >= LIMIT_S for node in nodes if node.report is None)
    assert found.is_over == (not found.keeps and found.idle_s >= LIMIT_S)


@given(some.lists(NODES, min_size=0, max_size=8), some.integers(0, 8), some.floats(0, LIMIT_S, exclude_max=True))
def test_one_node_in_use_or_unknown_keeps_every_cluster(nodes: list[LastReport], place: int, silence_s: float) -> None:
    for node in (reported("8 GPU processes", quiet_s=0), reported(generation=2), silent(silence_s)):
        found = verdict([*nodes[:place], node, *nodes[place:]], "train", 3, LIMIT_S)
        assert not found.is_over
        assert found.idle_s == 0

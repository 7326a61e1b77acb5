"""What a job's nodes are told to do next, from what they say."""

from __future__ import annotations

from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.coordination import (
    AHEAD_S,
    DEADLINE_AHEAD_S,
    LOST_AFTER_S,
    MET_WITHIN_S,
    SETTLE_S,
    STOPPED_WITHIN_S,
    Coordination,
)

from tests.unit.cli.jobs.job_specs import spec

WALL_S = 1_000_000.0


def failure(slot: int, *, at_s: float, code: int = 1, lines: tuple[str, ...] = ()) -> dict[str, Any]:
    row = {"slot": slot, "name": f"train-{slot}", "rank": slot, "local_rank": 0, "signal": None}
    return {**row, "at_s": at_s, "code": code, "lines": list(lines)}


def running(**changes: Any) -> Coordination:
    """A job whose nodes run, since 1 s."""
    found = Coordination(spec(**changes), 0.0)
    for slot in (1, 3):
        found.receive(slot, {"phase": "ready"})
    assert found.look(1.0, WALL_S, None) == {"do": "start", "at_s": WALL_S + AHEAD_S}
    for slot in (1, 3):
        found.receive(slot, {"phase": "running"})
    return found


def ended(coordination: Coordination, now_s: float, *slots: int) -> dict[str, Any]:
    """The outcome, once these nodes have ended their ranks."""
    for slot in slots:
        coordination.receive(slot, {"phase": "ended"})
    directive = coordination.look(now_s, WALL_S, None)
    assert directive["do"] == "finish", directive
    outcome: dict[str, Any] = directive["outcome"]
    return outcome


def test_nobody_starts_before_all_are_there() -> None:
    coordination = Coordination(spec(), 0.0)
    coordination.receive(3, {"phase": "ready"})
    assert coordination.look(1.0, WALL_S, None) == {"do": "wait"}


def test_who_does_not_come_is_named_and_the_job_fails() -> None:
    coordination = Coordination(spec(), 0.0)
    coordination.receive(1, {"phase": "ready"})
    assert coordination.look(MET_WITHIN_S + 1, WALL_S, None)["do"] == "stop"
    outcome = ended(coordination, MET_WITHIN_S + 2, 1)
    assert outcome["state"] == "failed"
    assert "Node 3 (train-3) did not reach the start" in outcome["cause"]


def test_all_ranks_that_ended_well_are_a_success() -> None:
    assert ended(running(), 2.0, 1, 3)["exit_code"] == 0


def test_an_end_that_is_decided_is_not_changed_by_what_is_said_later() -> None:
    coordination = running()
    outcome = ended(coordination, 2.0, 1, 3)
    coordination.receive(3, {"phase": "running", "failures": [failure(3, at_s=2.5)]})
    assert coordination.look(3.0, WALL_S, None) == {"do": "finish", "outcome": outcome}


def test_a_culprit_stops_all_at_once_and_its_code_is_the_job_s() -> None:
    coordination = running()
    coordination.receive(3, {"phase": "running", "failures": [failure(3, at_s=5.0, code=7)]})
    assert coordination.look(2.0, WALL_S, None)["state"] == "failed"
    assert coordination.look(3.0, WALL_S, None)["do"] == "stop"
    outcome = ended(coordination, 4.0, 1, 3)
    assert (outcome["exit_code"], outcome["failure"]["slot"]) == (7, 3)
    assert outcome["cause"] == "Node 3 (train-3): rank 3 (local rank 0) exited with code 7"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Connection closed by peer [10.0.8.3]:1",
        # The next three: torch 2.11 with NCCL 2.28.9 on H100, 2026-11-26.
        "[0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer lab-1<41746>",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=22, OpType=ALLREDUCE, NumelIn=1048576",
        "INTERNAL: NCCL operation ncclAllReduce failed: remote process exited or there was a network error.",
        "ValueError: UNKNOWN: Gloo all-reduce failed: [external/gloo/gloo/transport/tcp/pair.cc:538] Read error",
        "the JAX distributed service detected fatal errors. This most likely indicates that another task died",
        "Collective ops is aborted by: Error reported from /job:worker/task:1: The following tasks are unhealthy",
    ],
)
def test_a_victim_waits_a_moment_for_its_culprit(line: str) -> None:
    coordination = running()
    victim = failure(1, at_s=4.0, lines=(line,))
    coordination.receive(1, {"phase": "running", "failures": [victim]})
    assert coordination.look(2.0, WALL_S, None)["do"] == "start"
    coordination.receive(3, {"phase": "running", "failures": [failure(3, at_s=4.2, code=9)]})
    assert coordination.look(2.0 + SETTLE_S / 2, WALL_S, None)["do"] == "stop"
    outcome = ended(coordination, 3.0, 1, 3)
    assert outcome["failure"]["slot"] == 3
    assert outcome["cause"].endswith("; 1 more failed with it")


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (
            "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
            "ncclUnhandledCudaError: Call to CUDA function",
        ),
        (
            "invalid usage (run with NCCL_DEBUG=WARN for details)",
            "ncclInvalidUsage: This usually reflects invalid usage",
        ),
    ],
)
def test_who_fails_in_nccl_by_itself_is_nobodys_victim(error: str, name: str) -> None:
    """No memory left on its GPU; two ranks on one GPU. torch 2.11 with NCCL 2.28.9, 2026-11-26."""
    coordination = running()
    lines = (f"torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, {error}, NCCL version 2.28.9", name)
    victim = failure(1, at_s=4.0, lines=("Connection closed by remote peer lab-3<4>",))
    coordination.receive(1, {"phase": "running", "failures": [victim]})
    coordination.receive(3, {"phase": "running", "failures": [failure(3, at_s=4.2, lines=lines)]})
    assert coordination.look(2.0, WALL_S, None)["do"] == "stop"
    assert ended(coordination, 3.0, 1, 3)["failure"]["slot"] == 3


@pytest.mark.parametrize(
    ("report", "now_s", "wall_s", "state", "exit_code"),
    [
        ({"is_cancelled": True}, 2.0, WALL_S, "cancelled", 130),
        ({}, 62.0, WALL_S, "timed out", 124),
        ({}, 2.0, WALL_S + 1000 - 30 - DEADLINE_AHEAD_S + 1, "ended by deadline", 124),
    ],
)
def test_what_else_ends_a_job(report: dict[str, Any], now_s: float, wall_s: float, state: str, exit_code: int) -> None:
    coordination = running(timeout_s=60.0)
    coordination.receive(1, {"phase": "running", **report})
    assert coordination.look(now_s, wall_s, WALL_S + 1000)["state"] == state
    assert ended(coordination, now_s + 1, 1, 3)["exit_code"] == exit_code


def test_a_node_is_lost_when_it_does_not_come_back_and_not_before() -> None:
    coordination = running()
    coordination.gone(3, 2.0)
    assert coordination.look(2.0 + LOST_AFTER_S - 1, WALL_S, None)["do"] == "start"
    coordination.receive(3, {"phase": "running"})
    coordination.gone(3, 20.0)
    assert coordination.look(20.0 + LOST_AFTER_S - 1, WALL_S, None)["do"] == "start"
    assert coordination.look(20.0 + LOST_AFTER_S + 1, WALL_S, None)["state"] == "lost"
    outcome = ended(coordination, 40.0, 1)
    assert outcome["exit_code"] == 255
    assert "Node 3 (train-3)" in outcome["cause"]
    assert coordination.listeners == {1}


def test_victims_of_a_node_that_is_away_wait_until_it_is_back_or_lost() -> None:
    coordination = running()
    victim = failure(1, at_s=4.0, lines=("RuntimeError: Connection closed by peer [10.0.8.3]:1",))
    coordination.gone(3, 2.0)
    coordination.receive(1, {"phase": "running", "failures": [victim]})
    assert coordination.look(2.0, WALL_S, None)["do"] == "start"
    assert coordination.look(2.0 + 2 * SETTLE_S, WALL_S, None)["do"] == "start"
    assert coordination.look(2.0 + LOST_AFTER_S + 1, WALL_S, None)["state"] == "lost"
    assert ended(coordination, 40.0, 1)["exit_code"] == 255


def test_a_node_that_does_not_stop_its_ranks_holds_nobody_up_for_ever() -> None:
    coordination = running()
    coordination.receive(1, {"phase": "running", "is_cancelled": True})
    assert coordination.look(2.0, WALL_S, None)["do"] == "stop"
    assert coordination.look(2.0 + 30 + STOPPED_WITHIN_S - 1, WALL_S, None)["do"] == "stop"
    assert coordination.look(2.0 + 30 + STOPPED_WITHIN_S + 1, WALL_S, None)["do"] == "finish"


def test_what_failed_after_the_stop_is_nobody_s_cause() -> None:
    coordination = running()
    coordination.receive(1, {"phase": "running", "is_cancelled": True})
    coordination.look(2.0, WALL_S, None)
    coordination.receive(3, {"phase": "ended", "failures": [failure(3, at_s=9.0)]})
    coordination.receive(1, {"phase": "ended"})
    assert coordination.look(3.0, WALL_S, None)["outcome"]["state"] == "cancelled"

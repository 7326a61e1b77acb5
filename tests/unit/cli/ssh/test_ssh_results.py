"""How nodes whose command failed or that were not reached are reported: sentences, exit codes and JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from clusterctl.ssh.connect_failures import connect_failure, no_greeting
from clusterctl.ssh.failure_hints import failure_line, look_at, not_reached
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.results import NodeResult, failure_summary, signal_exit_code
from clusterctl.ssh.spooled_run import node_result_json
from clusterctl.ssh.target import Target

from tests.unit.cli.conftest import MakeInventory


def result(
    slot: int, code: int | None = 0, *, failure: NodeFailure | None = None, signal: str | None = None
) -> NodeResult:
    return NodeResult(
        slot=slot,
        name=f"train-{slot}",
        exit_code=code,
        signal=signal,
        failure=failure,
        stdout=b"out",
        stderr=b"",
        duration_s=1.0,
    )


def test_nothing_is_said_when_all_went_well() -> None:
    assert failure_summary([result(0), result(1)]) is None


def test_the_same_outcome_is_folded() -> None:
    results = [result(0), *(result(slot, 1) for slot in (1, 2, 3))]
    assert failure_summary(results) == "3 of 4 failed: train-[1-3] exit 1"


def test_different_outcomes_are_a_line_each() -> None:
    refused = NodeFailure("refused", "10.0.8.2:22 refuses connections")
    results = [result(0, 1), result(1, None, failure=refused), result(2, 137, signal="KILL")]
    assert failure_summary(results) == (
        "3 of 3 failed:\n  train-0 exit 1\n  train-1 not reached: connection refused\n  train-2 ended by SIGKILL"
    )


def test_a_node_lost_during_the_command_was_reached() -> None:
    lost = NodeFailure("lost", "broke", phase="command")
    assert failure_summary([result(0, None, failure=lost)]) == "1 of 1 failed: train-0 lost: the connection broke"


def test_a_changed_host_key_points_at_replace_where_there_is_one(make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    node, changed = inventory.nodes[2], NodeFailure("host-key", "another key")
    assert failure_line(changed, inventory, node) == "another key; next: clusterctl replace --node 2 --cluster train"
    assert failure_line(changed, make_inventory(cluster_id=""), node) == "another key"
    assert not_reached(changed, make_inventory(cluster_id=""), node).hint is None
    error = not_reached(changed, inventory, node)
    assert error.exit_code == 255
    assert error.message == "train-2: another key"
    assert error.hint == "clusterctl replace --node 2 --cluster train"


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143), ("NOSUCH", 255)])
def test_a_signal_has_the_shells_exit_code(name: str, code: int) -> None:
    assert signal_exit_code(name) == code


def test_json_has_a_null_exit_code_and_the_reason_for_a_node_that_was_not_reached() -> None:
    failed = result(1, None, failure=NodeFailure("timeout", "no answer"))
    shown = node_result_json(failed, rank=5, stdout=b"", stderr=b"", is_truncated=False)
    assert (shown["node"], shown["rank"], shown["exit_code"], shown["seconds"]) == ("train-1", 5, None, 1.0)
    assert (shown["error_class"], shown["error_phase"], shown["message"]) == ("timeout", "connect", "no answer")


def test_json_has_bytes_that_are_no_text_in_base64_too() -> None:
    shown = node_result_json(result(1), rank=1, stdout=b"a\xff", stderr=b"", is_truncated=True)
    assert (shown["stdout"], shown["stdout_base64"], shown["stderr"]) == ("a\ufffd", "Yf8=", "")
    assert shown["truncated"] is True


def test_nodes_that_fail_fast_ended_are_told_apart() -> None:
    stopped = NodeFailure("stopped", "ended", phase="command")
    results = [result(0, 1), result(1, None, failure=stopped), result(2, None, failure=NodeFailure("stopped", "not"))]
    assert failure_summary(results) == (
        "3 of 3 failed:\n  train-0 exit 1\n  train-1 ended by --fail-fast\n  train-2 not run because of --fail-fast"
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("train-0: the command still ran after 5 s", "the command still ran after 5 s"),
        ("train-0 has no machine yet", "has no machine yet"),
        ("the connection to train-0 broke", "the connection to train-0 broke"),
        ("train-01 is another", "train-01 is another"),
    ],
)
def test_a_line_that_begins_with_a_nodes_name_does_not_say_it_again(message: str, shown: str) -> None:
    assert NodeFailure("lost", message).message_under("train-0") == shown


def test_the_way_to_a_place_is_not_named_twice_where_the_proxy_names_it() -> None:
    target = Target(
        name="train-0",
        host="10.0.8.0",
        port=22,
        user="ubuntu",
        host_key_type="ssh-ed25519",
        host_key="AAAA",
        proxy_argv=(),
    )
    assert (
        connect_failure(target, "10.0.8.0:22: Connection refused").message
        == "no way to 10.0.8.0:22: Connection refused"
    )
    assert connect_failure(target, "exit 3").message == "no way to 10.0.8.0:22: exit 3"
    assert no_greeting(target, "4 s").message == "10.0.8.0:22 says nothing through the proxy command (waited 4 s)"
    assert no_greeting(replace(target, proxy_argv=None), "4 s").message.startswith(
        "10.0.8.0:22 takes connections but says "
    )


def test_where_to_look_is_told_once_below_nodes_that_were_not_reached(make_inventory: MakeInventory) -> None:
    refused, silent = NodeFailure("refused", "refuses"), NodeFailure("timeout", "silent", phase="greeting")
    broke, late = (NodeFailure(kind, "", phase="command") for kind in ("lost", "timeout"))
    before = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
    line = look_at([None, refused, silent], make_inventory(), now=before)
    assert line == "  next: clusterctl status --cluster train"
    assert look_at([None, broke, late, NodeFailure("stopped", "")], make_inventory()) is None
    assert look_at([refused], make_inventory(cluster_id="")) is None


def test_after_the_deadline_a_node_that_is_not_reached_has_ended_and_says_when(make_inventory: MakeInventory) -> None:
    inventory, after = make_inventory(), datetime(2026, 11, 21, 22, 5, tzinfo=UTC)
    gone = NodeFailure("unreachable", "10.0.8.2:22 cannot be reached: No route to host")
    end = "train ended 22:00 UTC, at its deadline"
    error = not_reached(gone, inventory, inventory.nodes[2], now=after)
    assert error.message == f"{end} (train-2: {gone.message})"
    assert look_at([gone], inventory, now=after) == f"  {end}; next: clusterctl status --cluster train"
    other_key = NodeFailure("host-key", "another key")
    assert not_reached(other_key, inventory, inventory.nodes[2], now=after).message == "train-2: another key"


def test_machines_of_a_persons_own_have_no_deadline(make_inventory: MakeInventory) -> None:
    own = make_inventory(cluster_id="", deadline="")
    gone = NodeFailure("unreachable", "no way")
    after = datetime(2026, 11, 21, 22, 5, tzinfo=UTC)
    assert not_reached(gone, own, own.nodes[0], now=after).message == "train-0: no way"

"""The stand-in under the real Pulumi engine, without machines. Needs the project's engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.rehearsed import BIN, nothing_left, wait_until
from tests.integration.tiny_stack import TinyStack, tiny_stack


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[TinyStack]:
    made = tiny_stack(f"t{uuid.uuid4().hex[:7]}", tmp_path)
    with nothing_left(made.name, env=made.env):
        yield made


def _kinds(stack: TinyStack) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in stack.resources():
        kind = row.token.rpartition(":")[2]
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _region_pid(stack: TinyStack) -> int:
    return int(json.loads((stack.home / "rehearsal/region.json").read_text())["pid"])


def test_a_program_comes_up_changes_nothing_and_goes(stack: TinyStack) -> None:
    stack.up()
    assert {name: row["ip"] for name, row in stack.nodes().items()} == {"node-0": "10.0.8.0", "node-1": "10.0.8.1"}
    assert _kinds(stack) == {
        "Vpc": 1, "Subnet": 1, "SecurityGroup": 1, "PlacementGroup": 1, "CapacityReservation": 1,
        "LaunchTemplate": 2, "Instance": 2,
    }  # fmt: skip
    refreshed = stack.pulumi("preview", "--refresh", "--expect-no-changes")
    assert refreshed.exit_code == 0, refreshed.text
    assert stack.pulumi("destroy", "--yes", "--skip-preview").exit_code == 0
    assert _kinds(stack) == {}


def test_a_node_is_remade_alone_by_wish_and_when_it_died_and_its_user_data_stays_secret(stack: TinyStack) -> None:
    stack.up()
    a_secret_stays_one_in_the_state(stack)
    a_changed_template_keeps_its_node_and_a_replaced_node_takes_the_newest(stack)
    a_dead_node_is_remade_alone_after_a_refresh(stack)


def a_secret_stays_one_in_the_state(stack: TinyStack) -> None:
    exported = json.loads(stack.pulumi("stack", "export").stdout)["deployment"]["resources"]
    templates = [row for row in exported if row["type"].endswith(":LaunchTemplate")]
    values: list[Any] = [row[part]["userData"] for row in templates for part in ("inputs", "outputs")]
    assert len(values) == 4
    assert all("ciphertext" in value for value in values)


def a_changed_template_keeps_its_node_and_a_replaced_node_takes_the_newest(stack: TinyStack) -> None:
    before = stack.nodes()
    stack.write(word="two")
    stack.up()
    assert stack.nodes() == before
    stack.up("--replace", "**:Instance::node-1")
    after = stack.nodes()
    assert after["node-0"] == before["node-0"]
    assert (after["node-1"]["ip"], after["node-1"]["id"] != before["node-1"]["id"]) == ("10.0.8.1", True)
    folder = stack.home / "rehearsal/store"
    facts = json.loads((folder / f"Instance.{after['node-1']['id']}.json").read_text())["facts"]
    assert facts["template"][1] == "2"


def a_dead_node_is_remade_alone_after_a_refresh(stack: TinyStack) -> None:
    before = stack.nodes()
    assert stack.rehearse("fault", "kill", f"{stack.name}-1").exit_code == 0
    stack.up("--refresh")
    after = stack.nodes()
    assert after["node-0"] == before["node-0"]
    assert after["node-1"]["id"] != before["node-1"]["id"]


def test_no_capacity_is_awss_code_and_makes_no_node(stack: TinyStack) -> None:
    stack.write(nodes=4, capacity={"p5.48xlarge": 3})
    done = stack.pulumi("up", "--yes", "--skip-preview")
    assert done.exit_code == 1
    assert "operation error EC2: CreateCapacityReservation, https response error StatusCode: 500" in done.text
    assert "api error InsufficientInstanceCapacity: Insufficient capacity." in done.text
    assert "Instance" not in _kinds(stack)
    stack.write(nodes=4)
    stack.up()
    assert _kinds(stack)["Instance"] == 4


def test_too_many_requests_only_make_it_slower(stack: TinyStack) -> None:
    stack.write(requests_per_s=20)
    stack.up()
    assert _kinds(stack)["Instance"] == 2


def test_an_unknown_type_is_refused_by_name(stack: TinyStack) -> None:
    program = 'import pulumi_aws as aws\naws.sqs.Queue("queue")\n'
    (stack.folder / "__main__.py").write_text(program)
    done = stack.pulumi("up", "--yes", "--skip-preview")
    assert done.exit_code == 1
    assert "the stand-in does not know aws:sqs.Queue yet" in done.text


def test_a_wrong_settings_file_is_refused_before_anything(stack: TinyStack) -> None:
    stack.write(machine="nspawn")
    done = stack.pulumi("up", "--yes", "--skip-preview")
    assert done.exit_code == 1
    assert "machine: unknown key (did you mean machines?)" in done.text
    assert stack.resources() == []


@pytest.mark.parametrize("made", [1, 5])
def test_a_region_killed_during_up_is_not_noticed(stack: TinyStack, made: int) -> None:
    """As soon as it has made so many of nine things; each that follows takes it a third of a second."""
    stack.write(latency_ms=300)
    argv = [str(BIN / "pulumi"), "up", "--yes", "--skip-preview"]
    engine = subprocess.Popen(
        argv,
        env=stack.env,
        cwd=stack.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    store = stack.home / "rehearsal/store"
    wait_until(lambda: len(list(store.glob("*.json"))) >= made, what=f"{made} things are made", timeout_s=60)
    assert engine.poll() is None, "the engine ended before the region was killed"
    os.kill(_region_pid(stack), signal.SIGKILL)
    text, _ = engine.communicate(timeout=90)
    assert engine.returncode == 0, text.decode()
    assert _kinds(stack)["Instance"] == 2
    assert _kinds(stack)["Vpc"] == 1

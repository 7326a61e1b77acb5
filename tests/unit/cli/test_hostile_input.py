"""What nodes, AWS and files say is read with limits: a command that fails on it still names the cause."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any  # JSON values

import pytest
from clusterctl.cloud.instances import instance_state
from clusterctl.engine.state import parse_state
from clusterctl.probes.ask import read_script
from clusterctl.probes.disk import DISK
from clusterctl.probes.probe import ProbeTrouble
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.results import NodeResult
from clusterctl.status.node_answers import answer_of
from clusterctl.top.board import Board
from clusterctl.top.feed import SampleLines
from clusterctl_infra import names
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.names import SLOT_TAG
from clusterctl_infra.outputs import InventoryUnreadable, inventory_to_json, read_inventory
from clusterctl_infra.strict_json import NotAsExpected

from tests.fuzz.readers import Reader, all_readers, campaign
from tests.fuzz.samples import AT, SAMPLE, STATE
from tests.unit.cli.conftest import MakeInventory

HOST = {"name": "gpu1", "host_key": "ssh-ed25519 AAAA"}


def answered(text: str) -> NodeResult:
    return NodeResult(
        slot=0, name="train-0", exit_code=0, signal=None, failure=None, stdout=text.encode(), stderr=b"", duration_s=1.0
    )


def test_no_input_of_a_campaign_escapes_a_reader(tmp_path: Path) -> None:
    assert campaign(all_readers(tmp_path), inputs=2000, seed=20261123) == []


def test_every_reader_of_the_campaign_takes_all_of_its_sound_input(tmp_path: Path) -> None:
    """Else nothing behind the first refusal would ever be tried."""
    readers = all_readers(tmp_path)
    sound = {
        name: each.sound if isinstance(each.sound, str) else json.dumps(each.sound) for name, each in readers.items()
    }
    assert [name for name, reader in readers.items() if not reader.read(sound[name].encode())] == []


def test_the_campaign_finds_an_error_that_is_not_one_of_ours() -> None:
    def careless(data: bytes) -> object:
        return json.loads(data)["phase"]

    def careful(data: bytes) -> object:
        raise NotAsExpected("no phase")

    readers = {"careless": Reader(careless, {"phase": "ready"}), "careful": Reader(careful, {"phase": "ready"})}
    escapes = campaign(readers, inputs=200, seed=1)
    assert {escape.reader for escape in escapes} == {"careless"}
    assert {type(escape.error) for escape in escapes} >= {KeyError, json.JSONDecodeError}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"phase": "ready", "generation": Infinity}', "Infinity is no number of JSON"),
        ('{"phase": "ready", "generation": true}', "generation is True: not a whole number from 0"),
        ('{"phase": "ready", "generation": 3.5}', "generation is 3.5: not a whole number from 0"),
        ('{"phase": "ready", "since": 12345}', "since: 12345 is no time such as 2026-01-31T23:59:59+00:00"),
        ('{"phase": "ready", "error": {"message": ["a"]}}', "error.message is list: not a text"),
        ('{"phase": "ready", "error": 5}', "error is 5, not an object"),
        ('{"generation": 1}', "phase is missing"),
        ('{"phase": ' + "[" * 2000, "JSON nested deeper than 32"),
        ('{"phase": "' + "x" * 300_000 + '"}', "bytes of JSON, at most 262144 are read"),
    ],
)
def test_a_status_that_cannot_be_read_is_that_nodes_failure(text: str, why: str) -> None:
    answer = answer_of(answered(text))
    assert isinstance(answer, NodeFailure)
    assert answer.message.startswith("train-0: its agent's status cannot be read: ")
    assert why in answer.message


@pytest.mark.parametrize("size", ["²", "9" * 300, "9" * 5000])
def test_a_size_that_no_disk_has_costs_a_node_that_probe(size: str) -> None:
    output = f"@@probe disk\n/dev/root {size} 20 30 40% /\n@@end 0\n"
    assert isinstance(read_script(output, (DISK,))["disk"], ProbeTrouble)


@pytest.mark.parametrize("change", [{"load": 1e400}, {"cpus": "4"}, {"gpus": [["²"] * 9]}, {"memory_kib": [1]}])
def test_a_sample_that_cannot_be_read_is_that_nodes_failure(
    change: dict[str, Any], make_inventory: MakeInventory
) -> None:
    board = Board(make_inventory().nodes)
    SampleLines(board, 0).feed(json.dumps({**SAMPLE, **change}).encode() + b"\n")
    failure = board.states()[0].failure
    assert failure is not None
    assert failure.message.startswith("its sample cannot be read: ")


@pytest.mark.parametrize("slot", ["²", "", "-1", "9" * 300, "٣"])
def test_a_machine_whose_slot_tag_is_no_number_has_no_slot(slot: str) -> None:
    row = {"InstanceId": "i-1", "State": {"Name": "running"}, "Tags": [{"Key": SLOT_TAG, "Value": slot}]}
    assert instance_state(row).slot is None


def test_a_state_that_cannot_be_read_names_the_resource_and_the_value() -> None:
    text = json.dumps(STATE).replace(f'"{SLOT_TAG}": "0"', f'"{SLOT_TAG}": "x"')
    with pytest.raises(ValueError, match=f"urn:pulumi:dev::train::n: its tag {SLOT_TAG} is 'x', no slot"):
        parse_state(text)


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ({"nodes": [HOST], "ssh": 5}, "ssh: 5 is no object"),
        ({"nodes": [HOST], "ssh": {"key_file": 5}}, "ssh.key_file: 5 is no path"),
        ({"nodes": [HOST], "ssh": {"proxy_command": []}}, "ssh.proxy_command is an empty list"),
        ({"nodes": [HOST], "ssh": {"port": 70000}}, "ssh.port is 70000, not a port"),
        ({"nodes": [{**HOST, "name": "a\0b"}]}, r"nodes[0].name: 'a\x00b' is longer than 253 or not printable"),
        ({"nodes": [{**HOST, "name": "x" * 5000}]}, "is longer than 253 or not printable"),
        ({"nodes": [{**HOST, "slot": "first"}]}, "nodes[0].slot is 'first': not a whole number"),
        ({"nodes": [{**HOST, "slot": True}]}, "nodes[0].slot is True: not a whole number"),
    ],
)
def test_a_persons_inventory_is_refused_by_file_place_and_value(
    file: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "machines.json"
    path.write_text(json.dumps(file))
    with pytest.raises(ConfigError) as refused:
        read_any_inventory(path, ssh_config=tmp_path / "none")
    message = "\n".join([refused.value.message, *refused.value.problems])
    assert str(path) in message
    assert problem in message


def test_a_key_file_below_a_home_that_nobody_has_is_left_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "machines.json"
    path.write_text(json.dumps({"nodes": [HOST], "ssh": {"key_file": "~nobody-is-called-so/key"}}))
    assert read_any_inventory(path, ssh_config=tmp_path / "none").ssh.key_file == "~nobody-is-called-so/key"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"deadline": "soon"}, "'soon' is no time"),
        ({"deadline": ""}, "deadline is empty"),
        ({"nodes": None}, None),
        ({"nodes": 5}, "nodes is 5: not a list"),
        ({"run": "1"}, "run is '1': not a whole number"),
        ({"usd_per_hour": "much"}, "usd_per_hour is 'much': not a number"),
        ({"name": "a\0b"}, "a text with NUL"),
    ],
)
def test_an_inventory_here_is_refused_by_file_place_and_value(
    change: dict[str, Any], why: str | None, tmp_path: Path, make_inventory: MakeInventory
) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps({**inventory_to_json(make_inventory()), "started_at": AT, "deadline": AT, **change}))
    if why is None:
        assert read_inventory(path).nodes == ()
        return
    with pytest.raises(InventoryUnreadable) as refused:
        read_inventory(path)
    assert str(path) in refused.value.message
    assert why in refused.value.message


def test_a_tag_changes_neither_where_a_machine_is_reached_nor_by_which_keys() -> None:
    row = {"InstanceId": "i-1", "State": {"Name": "running"}, "PrivateIpAddress": "10.0.8.0"}
    bare = dataclasses.asdict(instance_state(row))
    hostile = [{"Key": value, "Value": "10.6.6.6"} for name, value in vars(names).items() if name.endswith("_TAG")]
    hostile += [{"Key": f"clusterctl:{word}", "Value": "evil"} for word in ("key", "ssh", "user", "address", "proxy")]
    tagged = dataclasses.asdict(instance_state({**row, "Tags": hostile}))
    assert {field for field in bare if bare[field] != tagged[field]} <= {"slot", "birth"}

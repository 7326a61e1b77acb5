"""Which commands the process that keeps connections does, and which it leaves to whoever typed them."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any  # keyword arguments of BrokerRequest

import pytest
from clusterctl.ssh.broker.command_request import BrokerRequest
from clusterctl.ssh.broker.place import OFF, VARIABLE, is_off, stamp
from clusterctl.ssh.broker.warm_command import WarmCommand, warm_command
from clusterctl.ssh.fanout.link_pool import LinkPool
from clusterctl.ssh.request import Shown
from clusterctl.ssh.shared_session import relay
from clusterctl_infra.keys import host_key
from clusterctl_infra.outputs import InventorySsh, inventory_to_json

from tests.unit.cli.conftest import MakeInventory

Ask = Callable[..., WarmCommand | None]


@pytest.fixture
def stdin() -> Iterator[IO[bytes]]:
    with open(os.devnull, "rb") as null:
        yield null


@pytest.fixture
def ask(tmp_path: Path, make_inventory: MakeInventory, stdin: IO[bytes], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A function that asks as `clusterctl ssh WORDS` would, where a cluster of four nodes is known."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text(host_key(bytes(32), 1).private_pem)
    ssh = InventorySsh(user="ubuntu", key_file=str(tmp_path / "key"), proxy_command=None)
    known = tmp_path / "state" / "inventory" / "train.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps(inventory_to_json(make_inventory(ssh=ssh))))
    key = host_key(bytes(32), 2).public
    (tmp_path / "lab.json").write_text(
        json.dumps({"ssh": {"key_file": "~/key"}, "nodes": [{"name": "lab-0", "host_key": key}]})
    )

    def asked(*words: str, **changed: Any) -> WarmCommand | None:
        environ = {**os.environ, "CLUSTERCTL_HOME": str(tmp_path / "state"), **changed.pop("variables", {})}
        files = changed.pop("files", [stdin])
        facts: dict[str, Any] = {
            "stamp": stamp(),
            "folder": str(tmp_path),
            "encoding": "utf-8",
            "is_stdout_terminal": False,
            "is_stderr_terminal": False,
            "environ": environ,
        }
        return warm_command(BrokerRequest(words, **{**facts, **changed}), files, LinkPool())

    return asked


def test_a_command_is_read_as_it_was_typed(ask: Ask) -> None:
    found = ask("--node", "0,2-3", "--gather", "--timeout", "2m", "--env", "A=b", "--", "test", "-e", "/a b")
    assert found is not None
    assert [node.name for node in found.remote.nodes] == ["train-0", "train-2", "train-3"]
    assert found.remote.command.line == "test -e '/a b'"
    assert (found.remote.command.timeout_s, dict(found.remote.command.environment)) == (120, {"A": "b"})
    assert found.request.shown is Shown.GATHERED


def test_a_file_of_machines_is_found_from_where_it_was_typed(ask: Ask, tmp_path: Path) -> None:
    found = ask("--inventory", "lab.json", "uptime")
    assert found is not None
    assert [node.name for node in found.remote.nodes] == ["lab-0"]
    assert ask("--inventory", "lab.json", "uptime", folder="/") is None
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host lab-0\n  HostName 10.0.0.7\n")
    assert ask("--inventory", "lab.json", "uptime") is None, "what a person's configuration says is not kept"


@pytest.mark.parametrize(
    ("words", "code"), [(("--node", "1", "true"), 255), (("--node", "0-1", "true"), 4), (("true",), 4)]
)
def test_the_exit_code_for_a_lost_process_is_the_one_of_lost_nodes(ask: Ask, words: tuple[str, ...], code: int) -> None:
    found = ask(*words)
    assert found is not None
    assert found.code_if_lost == code


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--node", "1"),
        ("-t", "htop"),
        ("--cold", "true"),
        ("--help",),
        ("--no-such-flag", "true"),
        ("--gather", "--json", "true"),
        ("--timeout", "soon", "true"),
        ("--node", "7", "true"),
        ("--cluster", "other", "true"),
        ("--inventory", "none.json", "true"),
    ],
)
def test_a_login_and_all_that_ends_in_a_sentence_is_left_to_the_command(ask: Ask, words: tuple[str, ...]) -> None:
    assert ask(*words) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"stamp": "0.0.1 /elsewhere"},
        {"variables": {"HOME": "/home/another"}},
        {"variables": {"CLUSTERCTL_CLUSTER": "other"}},
        {"variables": {"CLUSTERCTL_HOME": "/nowhere"}},
    ],
)
def test_who_asks_from_elsewhere_is_refused(ask: Ask, changed: dict[str, Any]) -> None:
    assert ask("true") is not None
    assert ask("true", **changed) is None


@pytest.mark.parametrize(("value", "off"), [("no", True), ("OFF", True), ("0", True), ("yes", False), ("", False)])
def test_a_person_can_do_without_kept_connections(value: str, off: bool) -> None:
    assert is_off({"CLUSTERCTL_WARM": value}) is off
    assert not is_off({})


def test_the_relay_of_private_nodes_reads_the_same_words_in_the_same_variable() -> None:
    assert (relay.VARIABLE, relay.OFF) == (VARIABLE, OFF), "it imports nothing of ours"


def test_what_is_typed_is_read_from_where_the_command_sends_it(ask: Ask) -> None:
    terminal, theirs = (open(number, "rb", buffering=0) for number in pty.openpty())  # noqa: SIM115 closed below
    reader, writer = os.pipe()
    with terminal, theirs, open(reader, "rb", buffering=0) as typed, open(writer, "wb", buffering=0):
        to_one = ask("--node", "0", "cat", files=[theirs, typed])
        to_several = ask("--node", "0-1", "cat", files=[theirs, typed])
        assert to_one is not None
        assert to_one.remote.stdin is typed
        assert to_several is not None
        assert to_several.remote.stdin is None, "a terminal is for one node"


def test_a_proxy_that_would_have_to_be_started_is_left_to_who_has_its_variables(
    ask: Ask, tmp_path: Path, make_inventory: MakeInventory
) -> None:
    ssh = InventorySsh(user="ubuntu", key_file=str(tmp_path / "key"), proxy_command=("aws", "ssm", "{host}"))
    known = tmp_path / "state" / "inventory" / "train.json"
    known.write_text(json.dumps(inventory_to_json(make_inventory(ssh=ssh))))
    assert ask("--node", "0", "true") is None

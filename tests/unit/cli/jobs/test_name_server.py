"""The name server of a workflow's tasks: what it reads, and what it answers."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

import pytest
from clusterctl.on_node.job import dns_message
from clusterctl.on_node.job.dns_message import ADDRESS, ANY_KIND, answered, failed, read_question
from clusterctl.on_node.job.name_server import NameServer, addresses_of, read_hosts
from clusterctl.on_node.job.resolv_conf import MARK, Resolvers, own_resolv_conf, read_resolvers
from clusterctl.on_node.workflow import task
from hypothesis import given
from hypothesis import strategies as st

HOSTS = "127.0.0.1 localhost train-0\n10.0.8.0 train-0 # own\n10.0.8.1\ttrain-1 Alias\n::1 train-6\nodd train-7\n"
SIX = 28
"""The type AAAA: addresses of IPv6."""


def asked(name: str, kind: int = ADDRESS, *, number: int = 7, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", number, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, 1)


def addresses(packet: bytes) -> list[str]:
    """The IPv4 addresses in an answer whose rows point to its question."""
    number, flags, questions, rows, _, _ = struct.unpack_from(">6H", packet)
    assert (number, flags & 0x8000, questions) == (7, 0x8000, 1)
    return [socket.inet_ntoa(packet[len(packet) - 16 * (rows - row) :][12:16]) for row in range(rows)]


def test_a_question_is_read_and_answered_with_all_addresses() -> None:
    question = read_question(asked("Train-1"))
    assert (question.name, question.kind, question.is_internet) == ("train-1", ADDRESS, True)
    assert addresses(answered(question, ["10.0.8.1", "10.0.8.2"])) == ["10.0.8.1", "10.0.8.2"]
    assert addresses(answered(read_question(asked("train-1", ANY_KIND)), ["10.0.8.1"])) == ["10.0.8.1"]


def test_a_question_for_ipv6_is_answered_with_those_addresses_alone() -> None:
    both = ["10.0.8.1", "fd00::5"]
    answer = answered(read_question(asked("train-1", SIX)), both)
    assert struct.unpack_from(">4H", answer)[3] == 1
    assert socket.inet_ntop(socket.AF_INET6, answer[-16:]) == "fd00::5"
    assert addresses(answered(read_question(asked("train-1")), both)) == ["10.0.8.1"]
    assert struct.unpack_from(">4H", answered(read_question(asked("train-1", ANY_KIND)), both))[3] == 2
    assert read_hosts("::1 a\nfd00::5 a\n127.0.0.1 a\n")["a"] == ["fd00::5"]


def test_of_another_kind_a_known_name_has_nothing_which_is_no_failure() -> None:
    answer = answered(read_question(asked("train-1", SIX)), ["10.0.8.1"])
    assert addresses(answer) == []
    assert struct.unpack_from(">2H", answer)[1] & 0xF == 0
    assert struct.unpack_from(">2H", failed(read_question(asked("x"))))[1] & 0xF == dns_message.SERVER_FAILED


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        asked("a", flags=0x8000),
        asked("a", flags=0x2800),
        asked("a")[:-1],
        asked("a")[:13],
        struct.pack(">6H", 1, 0, 2, 0, 0, 0) + asked("a")[12:],
        struct.pack(">6H", 1, 0, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1",
        asked(".".join(["a" * 63] * 5)),
        asked("a") + b"\0" * 5000,
    ],
)
def test_what_is_no_question_is_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match=r"bytes|query|name|cut off"):
        read_question(packet)


@given(st.binary(max_size=300))
def test_whatever_comes_is_a_question_or_refused(packet: bytes) -> None:
    try:
        question = read_question(packet)
    except ValueError:
        return
    assert answered(question, ["10.0.0.1"])[:2] == packet[:2]


def test_names_are_those_of_the_hosts_file_that_other_machines_have() -> None:
    assert read_hosts(HOSTS) == {"train-0": ["10.0.8.0"], "train-1": ["10.0.8.1"], "alias": ["10.0.8.1"]}


def test_a_resolvers_domain_behind_a_nodes_name_changes_nothing_and_other_names_are_not_ours() -> None:
    names = read_hosts(HOSTS)
    assert addresses_of("train-1", names, ()) == ["10.0.8.1"]
    assert addresses_of("train-1.ec2.internal", names, ["ec2.internal"]) == ["10.0.8.1"]
    assert addresses_of("train-1.example.com", names, ["ec2.internal"]) is None
    assert addresses_of("train-9", names, ["ec2.internal"]) is None


def test_a_resolv_conf_keeps_all_but_its_servers() -> None:
    text = "# by DHCP\nnameserver 10.0.0.2\nsearch Ec2.internal. x\noptions edns0\nnameserver 10.0.0.3\n"
    assert read_resolvers(text) == Resolvers(("10.0.0.2", "10.0.0.3"), ("ec2.internal", "x"))
    assert own_resolv_conf(text, "127.83.0.1").splitlines() == [
        MARK,
        "nameserver 127.83.0.1",
        "# by DHCP",
        "search Ec2.internal. x",
        "options edns0",
    ]
    assert read_resolvers("") == Resolvers((), ())


def test_a_task_knows_the_resolv_conf_of_its_own_and_uses_the_real_nslookup_then(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    assert not task.has_name_server(file)
    file.write_text(own_resolv_conf("", "127.83.0.1"))
    assert task.has_name_server(file)
    assert task.search_path(Path("/t"), "/usr/bin", has_names=True) == "/usr/bin:/t/last-bin:/t/bin"
    assert task.search_path(Path("/t"), "/usr/bin", has_names=False) == "/t/bin:/usr/bin:/t/last-bin"


def test_without_a_server_to_ask_other_names_fail_at_once(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(HOSTS)
    server = NameServer(tmp_path / "hosts", Resolvers((), ()))
    answer = asyncio.run(server.answer(asked("example.com"), is_stream=False))
    assert answer == failed(read_question(asked("example.com")))
    assert asyncio.run(server.answer(b"?", is_stream=False)) is None
    known = asyncio.run(server.answer(asked("train-1"), is_stream=False))
    assert known is not None
    assert addresses(known) == ["10.0.8.1"]

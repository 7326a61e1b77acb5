"""What nodes run for `clusterctl check --bandwidth infiniband`, on loopback, with an ib_write_bw that moves no data."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from clusterctl.on_node import measure_infiniband
from clusterctl.probes.perftest import PairAnswer, parse_pair

from tests.integration.hosts.simulated_infiniband import IB_WRITE_BW

LINKS = [["mlx5_0:1", "mlx5_0:1"], ["mlx5_1:1", "mlx5_1:1"]]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A simulated ib_write_bw in a folder of its own."""
    path = tmp_path / "bin/ib_write_bw"
    path.parent.mkdir()
    path.write_text(IB_WRITE_BW)
    path.chmod(0o755)
    return path


def unused_ports(count: int) -> int:
    """The first of so many ports in a row that nobody uses: another run of the tests may be on this computer."""
    while True:
        with contextlib.ExitStack() as held:
            first = held.enter_context(socket.create_server(("", 0))).getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                for port in range(first + 1, first + count):
                    held.enter_context(socket.create_server(("", port)))
                return int(first)


def measure(
    program: Path,
    figures: Mapping[str, float],
    slots: Sequence[int] = (0, 1),
    *,
    limit_s: float = 30,
    address: str = "127.83.1.1",
) -> list[PairAnswer]:
    """What each of these nodes prints, all run at once; slot 0 sends to slot 1."""
    Path(f"{program}.gbps").write_text(json.dumps(figures))
    pair = {"from": 0, "to": 1, "address": address, "links": LINKS}
    round_ = json.dumps({"pairs": [pair], "port": unused_ports(1 + len(LINKS)), "limit_s": limit_s})
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    children = [
        subprocess.Popen(
            [sys.executable, "-I", measure_infiniband.__file__, str(slot)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        for slot in slots
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(round_)
        child.stdin.close()
        child.stdin = None
    return [parse_pair(child.communicate(timeout=60)[0]) for child in children]


@pytest.mark.parametrize("address", ["127.83.1.1", "::1"])
def test_every_link_of_a_pair_is_measured(program: Path, address: str) -> None:
    sender, receiver = measure(program, {"mlx5_0:1": 394.5, "mlx5_1:1": 196.2}, address=address)
    assert [(row.gbps, row.why) for row in sender.links] == [(394.5, ""), (196.2, "")]
    assert (sender.trouble, receiver) == ("", PairAnswer(trouble="", links=()))


def test_a_link_that_fails_says_why_at_both_ends_and_the_next_is_measured(program: Path) -> None:
    sender, receiver = measure(program, {"mlx5_1:1": 394.5})
    why = "Unable to Connect the HCA's through the link"
    assert [(row.gbps, row.why) for row in sender.links] == [(None, f"{why}; there: {why}"), (394.5, "")]
    assert (sender.trouble, receiver.trouble) == ("", "")


def test_a_program_that_does_not_start_on_the_receiver_is_told_by_the_sender(program: Path) -> None:
    program.write_text("#!/bin/sh\necho 'IB device not found'; exit 1\n")
    sender, _ = measure(program, {})
    assert [row.why for row in sender.links] == ["IB device not found"] * 2


@pytest.mark.parametrize(("slot", "trouble"), [(0, "Connection refused"), (1, "the other node said nothing in time")])
def test_a_node_whose_partner_does_not_come_gives_up_in_time(program: Path, slot: int, trouble: str) -> None:
    (answer,) = measure(program, {"mlx5_0:1": 1.0}, (slot,), limit_s=0.5)
    assert answer == PairAnswer(trouble=trouble, links=())

"""The live view: reading samples, showing lost nodes, drawing frames, obeying keys."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any  # rows of JSON

import pytest
from clusterctl.commands.top import takes_a_screen
from clusterctl.on_node import sampler
from clusterctl.output import Output
from clusterctl.ssh.failures import NodeFailure
from clusterctl.top.board import STALE_S, Board, NodeState, silence
from clusterctl.top.feed import SampleLines, sampler_command
from clusterctl.top.frame import (
    gpu_lines,
    header,
    layout_for,
    node_line,
    per_second,
    sorted_states,
    text_of,
    title,
)
from clusterctl.top.one_frame import print_frame
from clusterctl.top.sample import Sample, parse_sample, rates_between
from clusterctl.top.screen import NodeMap, TopScreen
from clusterctl_infra.outputs import Inventory
from hypothesis import given
from hypothesis import strategies as st

MakeInventory = Callable[..., Inventory]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def line(*, use: float = 97, at_s: float = 100.0, received: int = 0, reasons: str = "0x4", **changed: Any) -> bytes:
    """What the sampler prints for a node with eight busy GPUs."""
    gpus = [[str(n), str(use), "72654", "81559", "688.1", "700.00", "61", "1980", reasons] for n in range(8)]
    row: dict[str, Any] = {"gpus": gpus, "error": "", "load": 3.5, "cpus": 192, "received_bytes": received}
    row |= {"sent_bytes": 0, "memory_kib": [2097152000, 1048576000], "at_s": at_s}
    return json.dumps(row | changed).encode()


def sample(**changed: Any) -> Sample:
    read = parse_sample(line(**changed))
    assert read is not None
    return read


def state(slot: int = 0, **changed: Any) -> NodeState:
    return NodeState(name=f"train-{slot}", slot=slot, sample=sample(**changed), heard_at_s=1000.0)


def test_a_line_of_the_sampler_is_read() -> None:
    read = sample(reasons="0x40")
    assert len(read.gpus) == 8
    assert read.gpus[3].index == 3
    assert read.gpus[3].memory_used_mib == 72654
    assert read.gpus[3].is_slowed
    assert not sample(reasons="0x4").gpus[0].is_slowed
    assert read.memory_available_gib == 1000


def test_a_line_of_a_busy_h100_is_read() -> None:
    """As the sampler printed it on an H100 80GB HBM3 with driver 580.159.04, on 2026-11-26."""
    (gpu,) = sample(gpus=[["0", "99", "1011", "81559", "698.61", "700.00", "74", "1365", "0x0000000000000004"]]).gpus
    assert (gpu.utilization_percent, gpu.memory_used_mib, gpu.memory_total_mib) == (99, 1011, 81559)
    assert (gpu.power_w, gpu.power_limit_w, gpu.temperature_c, gpu.sm_mhz) == (698.61, 700, 74, 1365)
    assert not gpu.is_slowed, "it is at its power limit, as it should be"


def test_a_value_that_a_gpu_does_not_tell_is_unknown() -> None:
    gpus = [["0", "[N/A]", "1", "2", "[Not Supported]", "3", "40", "5", "[N/A]"]]
    (gpu,) = sample(gpus=gpus).gpus
    assert gpu.utilization_percent is None
    assert gpu.power_w is None


@pytest.mark.parametrize("text", [b"", b"Welcome to Ubuntu", b"[]", b"\xff"])
def test_other_lines_are_no_samples(text: bytes) -> None:
    assert parse_sample(text) is None


def test_rates_need_two_samples_and_counters_that_went_on() -> None:
    first, second = sample(at_s=100, received=1000), sample(at_s=102, received=5000)
    rates = rates_between(first, second)
    assert rates is not None
    assert rates.received_per_s == 2000
    assert rates_between(None, second) is None
    assert rates_between(second, sample(at_s=103, received=10)) is None


def test_the_sampler_asks_the_fields_that_are_read() -> None:
    fields = sampler.FIELDS.split(",")
    assert fields[:4] == ["count", "index", "utilization.gpu", "memory.used"]
    assert len(fields) == 10
    assert sampler_command(1.0).startswith("exec python3 -I -c "), "what lies in a home there is not loaded"


def test_chunks_become_the_newest_sample_and_greetings_are_skipped(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=1)
    board = Board(inventory.nodes)
    lines = SampleLines(board, 0)
    lines.feed(b"Welcome\n" + line(use=10)[:30])
    assert board.states()[0].sample is None
    lines.feed(line(use=10)[30:] + b"\n" + line(use=20) + b"\n" + line(use=30)[:9])
    newest = board.states()[0].sample
    assert newest is not None
    assert newest.gpus[0].utilization_percent == 20


def test_a_lost_node_says_why_and_its_old_numbers_are_gone(make_inventory: MakeInventory) -> None:
    board = Board(make_inventory(size=1).nodes)
    board.receive(0, sample())
    board.lost(0, NodeFailure("lost", "the connection to train-0 broke"))
    lost = board.states()[0]
    assert text_of(node_line(lost, 8, layout_for(8), 0.0)) == "train-0         the connection to train-0 broke"


@pytest.mark.parametrize(
    ("changed", "now_s", "message"),
    [
        ({"heard_at_s": 1000.0}, 1001.0, None),
        ({"heard_at_s": 1000.0}, 1000.0 + STALE_S + 2, "silent for 7 s"),
        ({"sample": None, "heard_at_s": None}, 1001.0, "connecting …"),
        ({"failure": NodeFailure("refused", "nobody there")}, 1001.0, "nobody there"),
    ],
)
def test_a_node_that_says_nothing_is_told_by_why(changed: Mapping[str, Any], now_s: float, message: str | None) -> None:
    facts: dict[str, Any] = {"name": "train-0", "slot": 0, "sample": sample(), **changed}
    silent = silence(NodeState(**facts), now_s)
    assert (None if silent is None else silent.message) == message


def test_a_frames_line_is_under_its_header() -> None:
    head, text = header(layout_for(8)), text_of(node_line(state(), 8, layout_for(8), 1000.0))
    assert text.split() == ["train-0", *["97"] * 8, "97", "%", "568/637", "G", "5505", "W", "61", "°C", "–", "–"]
    assert head.index("util") + 4 == text.index("97 %") + 4
    assert head.rindex("out") + 3 == len(text)


FRAMES = {
    200: [
        "node     g0  g1  g2  g3  g4  g5  g6  g7  util      memory    power   temp         in        out",
        "train-0  97  97  97  97  97  97  97  97  97 %   568/637 G   5505 W  61 °C          –          –",
    ],
    80: [
        "node     g0  g1  g2  g3  g4  g5  g6  g7  util      memory    power   temp",
        "train-0  97  97  97  97  97  97  97  97  97 %   568/637 G   5505 W  61 °C",
    ],
    60: [
        "node     g0  g1  g2  g3  g4  g5  g6  g7  util   temp",
        "train-0  97  97  97  97  97  97  97  97  97 %  61 °C",
    ],
    40: ["node     util   temp", "train-0  97 %  61 °C"],
}


@pytest.mark.parametrize("columns", sorted(FRAMES))
def test_a_narrow_terminal_shows_fewer_columns_and_none_in_half(columns: int) -> None:
    layout = layout_for(8, names=["train-0"], columns=columns)
    assert [header(layout), text_of(node_line(state(), 8, layout, 1000.0))] == FRAMES[columns]


@pytest.mark.parametrize(
    ("columns", "names"),
    [(None, ["llama-pretrain-9", "llama-pretrain-10"]), (80, ["…ma-pretrain-9", "…a-pretrain-10"])],
    ids=["in a file", "on a terminal"],
)
def test_nodes_with_long_names_are_told_apart(columns: int | None, names: list[str]) -> None:
    states = [dataclasses.replace(state(slot), name=f"llama-pretrain-{slot}") for slot in (9, 10)]
    layout = layout_for(8, names=[each.name for each in states], columns=columns)
    assert [text_of(node_line(each, 8, layout, 1000.0)).split()[0] for each in states] == names


@given(st.integers(40, 200), st.integers(0, 8), st.text("abc-0123", min_size=1, max_size=30))
def test_a_frame_is_never_wider_than_its_terminal(columns: int, gpus: int, name: str) -> None:
    layout = layout_for(gpus, names=[name], columns=columns)
    drawn = text_of(node_line(dataclasses.replace(state(), name=name), gpus, layout, 1000.0))
    assert max(len(header(layout)), len(drawn)) + len("  ") <= columns


def test_a_node_without_gpus_shows_its_load_beside_its_memory() -> None:
    layout = layout_for(0, names=["train-0"], columns=80)
    assert header(layout).split() == ["node", "load", "memory", "in", "out"]
    assert text_of(node_line(state(), 0, layout, 1000.0)).split() == ["train-0", "3.5", "1000/2000", "GiB", "–", "–"]


def test_a_slowed_gpu_stands_out_and_a_busy_one_is_warm() -> None:
    slowed = node_line(state(reasons="0x20"), 8, layout_for(8), 1000.0)[1]
    busy = node_line(state(), 8, layout_for(8), 1000.0)[1]
    assert slowed.is_bad
    assert (busy.is_bad, busy.heat) == (False, 0.97)


def test_an_opened_node_has_a_line_per_gpu() -> None:
    lines = [text_of(each) for each in gpu_lines(state(), 1000.0)]
    assert lines[0] == "train-0 · load 3.5 of 192 processors · memory 1000/2000 GiB"
    assert len(lines) == 10
    assert lines[5].split() == ["3", "97", "%", "72654/81559", "MiB", "688/700", "W", "61", "°C", "1980", "MHz"]


@pytest.mark.parametrize(("order", "slots"), [("n", [0, 1, 2]), ("u", [2, 0, 1]), ("t", [0, 1, 2])])
def test_nodes_are_sorted_most_first(order: str, slots: list[int]) -> None:
    states = {slot: state(slot, use=use) for slot, use in enumerate((50, 10, 90))}
    assert [each.slot for each in sorted_states(states, order)] == slots


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B/s"), (1500, "1.5 kB/s"), (2.5e7, "25.0 MB/s"), (3.9e11, "390.0 GB/s")]
)
def test_rates_are_told_in_powers_of_a_thousand(count: float, text: str) -> None:
    assert per_second(count) == text


def test_the_title_tells_use_cost_and_time_left(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=2, rehearsal=True)
    states = {0: state(0), 1: NodeState(name="train-1", slot=1)}
    assert title(inventory, states, None, now=NOW, now_s=1000.0) == (
        "train · 2 × p5.48xlarge · 16 × H100 80GB · 1/2 heard · util 97 % · about $440.32 · "
        "ends 22:00 UTC (in 10 h: runtime) (rehearsed: simulated GPUs, simulated money)"
    )


@pytest.mark.parametrize(("failed", "code"), [(None, 0), ("refused", 4)])
def test_without_a_terminal_one_frame_is_printed(make_inventory: MakeInventory, failed: str | None, code: int) -> None:
    inventory = make_inventory(size=2)
    board = Board(inventory.nodes)
    for at_s in (100.0, 101.0):
        for slot in (0, 1):
            board.receive(slot, sample(at_s=at_s))
    if failed is not None:
        board.lost(1, NodeFailure("refused", failed))
    stdout = io.BytesIO()
    output = Output(stdout=stdout, stderr=io.BytesIO())
    assert print_frame(inventory, board, None, output, within_s=0, as_json=False) == code
    lines = stdout.getvalue().decode().splitlines()
    assert len(lines) == 4
    assert (failed or "97 %") in lines[3]


def test_keys_sort_open_and_close(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=64)
    board = Board(inventory.nodes)
    for slot in range(64):
        board.receive(slot, sample(use=slot))

    async def drive() -> None:
        app = TopScreen(inventory, board, None, interval_s=3600)
        async with app.run_test(size=(120, 30)) as pilot:
            shown = app.query_one(NodeMap)
            assert len(shown.lines) == 64
            await pilot.press("u")
            assert text_of(shown.lines[0]).split()[0] == "train-63"
            await pilot.press("down", "enter")
            assert "train-62 · load" in text_of(shown.lines[0])
            await pilot.press("escape", *["pagedown"] * 4)
            assert shown.cursor == 63
            assert shown.scroll_offset.y > 0
            await pilot.press("q")

    # Not asyncio.run: it leaves the thread without a loop, and Pulumi's mocks in later tests take the thread's.
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(drive())


def test_without_colours_there_is_a_screen_too(make_inventory: MakeInventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    inventory = make_inventory(size=2)
    app = TopScreen(inventory, Board(inventory.nodes), None, interval_s=3600)

    async def drive() -> None:
        async with app.run_test(size=(60, 20)) as pilot:
            assert len(app.query_one(NodeMap).lines) == 2
            await pilot.press("q")

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(drive())


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", 130)])
def test_q_and_ctrl_c_end_it(make_inventory: MakeInventory, key: str, code: int) -> None:
    inventory = make_inventory(size=2)
    app = TopScreen(inventory, Board(inventory.nodes), None, interval_s=3600)

    async def drive() -> None:
        async with app.run_test() as pilot:
            await pilot.press(key)
            assert app.return_code == code

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(drive())


def test_what_nobody_expected_leaves_the_screen_and_is_raised(
    make_inventory: MakeInventory, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = dataclasses.replace(make_inventory(), started_at="no time at all")
    app = TopScreen(inventory, Board(inventory.nodes), None, interval_s=3600)
    with contextlib.closing(asyncio.new_event_loop()) as loop, pytest.raises(ValueError, match="no time at all"):
        app.show(is_headless=True, loop=loop)
    assert "no time at all" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("environ", "has_keys", "takes"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": ""}, True, False),
        ({}, True, False),
        ({"TERM": "xterm-256color"}, False, False),
    ],
)
def test_a_screen_is_for_a_terminal_that_places_a_cursor_and_hears_keys(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], has_keys: bool, takes: bool
) -> None:
    master, slave = os.openpty()
    with os.fdopen(master, "rb"), os.fdopen(slave) as keys, open(os.devnull) as none:
        monkeypatch.setattr(sys, "stdin", keys if has_keys else none)
        assert takes_a_screen(environ) is takes

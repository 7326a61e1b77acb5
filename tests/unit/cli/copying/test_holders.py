"""Which node passes a file on to which: the tree along which a copy spreads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.copying.between_nodes import giving_line
from clusterctl.copying.broadcast import FROM_HERE, TRIES, Holders
from clusterctl.copying.place import NodeFile
from clusterctl_infra.outputs import Inventory

HERE = Path("w.bin")
MakeInventory = Callable[..., Inventory]


@pytest.fixture
def files(make_inventory: MakeInventory) -> list[NodeFile]:
    return [NodeFile(node=node, path="/scratch/w.bin") for node in make_inventory(size=8).nodes]


def later(take: Callable[[], Path | NodeFile | None]) -> tuple[threading.Thread, list[Path | NodeFile | None]]:
    """A thread that waits for its turn, and what it was given."""
    given: list[Path | NodeFile | None] = []
    thread = threading.Thread(target=lambda: given.append(take()), daemon=True)
    thread.start()
    return thread, given


def test_one_node_gets_it_from_here_and_the_others_from_nodes_ever_more_at_a_time(files: list[NodeFile]) -> None:
    holders = Holders(HERE)
    turns: list[list[Path | NodeFile | None]] = []
    left = list(files)
    while left:
        sources: list[Path | NodeFile | None] = [holders.take(())]
        for _ in range(min(len(left), 2 ** len(turns) // 2) - 1):
            sources.append(holders.take(()))
        for source in sources:
            assert source is not None
            holders.add(left.pop(0))
            holders.has_given(source)
        turns.append(sources)
    assert [len(sources) for sources in turns] == [1, 1, 2, 4]
    assert turns[0] == [HERE]
    assert HERE not in turns[1] + turns[2] + turns[3]


def test_who_comes_while_the_first_node_gets_it_waits_for_that_one(files: list[NodeFile]) -> None:
    holders = Holders(HERE)
    assert holders.take(()) == HERE
    thread, given = later(lambda: holders.take(()))
    holders.add(files[0])
    holders.has_given(HERE)
    thread.join(5)
    assert given == [files[0]]


def test_when_the_first_node_fails_the_next_one_gets_it_from_here() -> None:
    holders = Holders(HERE)
    assert holders.take(()) == HERE
    thread, given = later(lambda: holders.take(()))
    holders.has_given(HERE)
    thread.join(5)
    assert given == [HERE]


def test_a_node_gives_to_one_at_a_time_however_often_it_is_told_of(files: list[NodeFile]) -> None:
    holders = Holders(None, files[:1])
    holders.add(files[0])
    assert holders.take(()) == files[0]
    holders.add(files[0])
    thread, given = later(lambda: holders.take(()))
    holders.has_given(files[0])
    thread.join(5)
    assert given == [files[0]]


def test_a_holder_that_is_lost_gives_no_more_and_another_one_does(files: list[NodeFile]) -> None:
    holders = Holders(None, files[:2])
    assert holders.take(()) == files[0]
    holders.has_given(files[0], is_lost=True)
    assert holders.take({0}) == files[1]
    holders.has_given(files[1], is_lost=True)
    assert holders.take({0, 1}) is None


def test_one_that_failed_is_not_asked_again_by_the_same_node_but_by_others(files: list[NodeFile]) -> None:
    holders = Holders(None, files[:2])
    assert holders.take(()) == files[0]
    holders.has_given(files[0])
    assert holders.take({0}) == files[1]
    assert holders.take({1}) == files[0]


def test_after_some_tries_this_computer_gives_it_to_several_at_a_time(files: list[NodeFile]) -> None:
    holders = Holders(HERE, files[:TRIES])
    tried = set(range(TRIES))
    assert [holders.take(tried) for _ in range(FROM_HERE)] == [HERE] * FROM_HERE
    thread, given = later(lambda: holders.take(tried))
    assert not given
    holders.has_given(HERE)
    thread.join(5)
    assert given == [HERE]


def test_without_another_holder_one_failure_is_enough_for_this_computer(files: list[NodeFile]) -> None:
    holders = Holders(HERE, files[:1])
    assert holders.take({0}) == HERE


def test_the_holder_writes_by_position_and_quotes_twice() -> None:
    line = giving_line("/a b", "ubuntu@train-1", "/it's", 5_000_000, 7_000_000)
    read, _, rest = line.partition(" | ")
    assert read == "dd if='/a b' bs=1M skip=5000000 count=2000000 iflag=skip_bytes,count_bytes status=none"
    assert rest.startswith("ssh -x -o BatchMode=yes ")
    assert " ubuntu@train-1 " in line
    assert "seek=5000000 oflag=seek_bytes conv=notrunc" in line
    assert " 'umask 077; dd of=" in line, "nobody else may read a secret while it arrives"
    first = giving_line("/a", "ubuntu@train-1", "/b", 0, 9)
    assert "seek=0 oflag=seek_bytes conv=notrunc" in first, "a late try would cut off what another has brought"
    assert "ssh" not in giving_line("/a", None, "/b", 0, 9)

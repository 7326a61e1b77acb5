"""What the words of `clusterctl cp` mean."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.copying.broadcast import LEAST_BYTES
from clusterctl.copying.copies import split_transfers
from clusterctl.copying.files import Content
from clusterctl.copying.place import Download, NodeFile, Upload, remote_place, transfers
from clusterctl.copying.progress import Progress
from clusterctl.copying.trees import folder_copies
from clusterctl_infra.errors import ClusterctlError, NothingMatched, UsageError
from clusterctl_infra.outputs import Inventory

MakeInventory = Callable[..., Inventory]


@pytest.mark.parametrize(
    ("word", "slots", "path"),
    [
        ("2:/scratch/a", (2,), "/scratch/a"),
        ("train-2:a", (2,), "a"),
        ("0,2-3:/a", (0, 2, 3), "/a"),
        ("train-[0-1]:/a", (0, 1), "/a"),
        ("all:", (0, 1, 2, 3), ""),
        ("1:~/a", (1,), "a"),
        ("1:/a:b", (1,), "/a:b"),
    ],
)
def test_a_place_on_nodes(word: str, slots: tuple[int, ...], path: str, make_inventory: MakeInventory) -> None:
    place = remote_place(word, make_inventory())
    assert place is not None
    assert tuple(node.slot for node in place.nodes) == slots
    assert place.path == path


@pytest.mark.parametrize("word", ["a", "./2:a", "/x/2:a", ":a", "../a:b"])
def test_a_place_here(word: str, make_inventory: MakeInventory) -> None:
    assert remote_place(word, make_inventory()) is None


def test_one_file_goes_to_every_node(make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    assert transfers(["a.pt", "all:/scratch/b.pt"], inventory) == tuple(
        Upload(source=Path("a.pt"), node=node, remote="/scratch/b.pt", is_into_folder=False) for node in inventory.nodes
    )


def test_one_file_of_a_node_goes_to_others(make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    first, other = transfers(["0:/scratch/a.pt", "1-2:models/"], inventory)
    assert first == Upload(
        source=NodeFile(node=inventory.nodes[0], path="/scratch/a.pt"),
        node=inventory.nodes[1],
        remote="models/",
        is_into_folder=True,
    )
    assert isinstance(other, Upload)
    assert (other.name, other.node.slot) == ("a.pt", 2)


@pytest.mark.parametrize("words", [["a", "b", "1:/x"], ["a", "1:/x/"], ["a", "1:"]])
def test_several_files_or_a_slash_want_a_folder(words: list[str], make_inventory: MakeInventory) -> None:
    assert {transfer.is_into_folder for transfer in transfers(words, make_inventory())} == {True}


def test_files_of_several_nodes_come_into_a_folder_for_each(make_inventory: MakeInventory) -> None:
    todo = transfers(["0-1:/var/log/x.log", "logs"], make_inventory())
    assert [str(transfer.local) for transfer in todo if isinstance(transfer, Download)] == [
        "logs/train-0",
        "logs/train-1",
    ]
    assert {transfer.is_into_folder for transfer in todo} == {True}


def test_one_file_of_one_node_comes_under_the_name_that_was_written(make_inventory: MakeInventory) -> None:
    (transfer,) = transfers(["2:/var/log/x.log", "y.log"], make_inventory())
    assert isinstance(transfer, Download)
    assert (str(transfer.local), transfer.is_into_folder) == ("y.log", False)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["a"], UsageError, "a source and a target"),
        (["a", "b"], UsageError, "neither side is a node"),
        (["0-1:a", "2:b"], UsageError, "name the one node to copy from"),
        (["1:/dir/", "2:b"], UsageError, "names no file"),
        (["a", "1:b", "c"], UsageError, "neither side is a node"),
        (["1:/dir/", "c"], UsageError, "names no file"),
        (["a", "9:/b"], NothingMatched, "no node 9"),
        (["a", "x:"], UsageError, r"^before the colon, x: not a set of nodes; write 2,.* a file here would be \./x:$"),
        (["a", "2-1:b"], UsageError, r"^before the colon, 2-1: runs backwards; write 1-2; .* \./2-1:b$"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    words: list[str], error: type[ClusterctlError], message: str, make_inventory: MakeInventory
) -> None:
    with pytest.raises(error, match=message):
        transfers(words, make_inventory())


def test_machines_of_a_persons_own_need_not_let_each_other_in(make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match="copy the file to this computer first"):
        transfers(["1:a", "2:b"], make_inventory(cluster_id=""))


BIG, SMALL = (Content(size_bytes=size, sha256="0" * 64, mode=0o644) for size in (LEAST_BYTES, LEAST_BYTES - 1))


@pytest.mark.parametrize(
    ("words", "content", "has_node_logins", "by_tree", "directly"),
    [
        (["a", "all:"], BIG, True, [["train-0", "train-1", "train-2", "train-3"]], []),
        (["a", "0-1:"], BIG, True, [], [["train-0"], ["train-1"]]),
        (["a", "0-2:"], SMALL, True, [], [["train-0"], ["train-1"], ["train-2"]]),
        (["a", "0-2:"], BIG, False, [], [["train-0"], ["train-1"], ["train-2"]]),
        (["a", "b", "1:"], BIG, True, [], [["train-1", "train-1"]]),
        (["0:/a", "1:/b"], SMALL, True, [["train-1"]], []),
        (["0-1:/a", "here"], BIG, True, [], [["train-0"], ["train-1"]]),
    ],
)
def test_large_files_for_several_nodes_go_from_node_to_node(
    words: list[str],
    content: Content,
    has_node_logins: bool,
    by_tree: list[list[str]],
    directly: list[list[str]],
    make_inventory: MakeInventory,
) -> None:
    contents = {Path(name): content for name in ("a", "b")}
    trees, direct = split_transfers(transfers(words, make_inventory()), contents, has_node_logins=has_node_logins)
    assert [[transfer.node.name for transfer in group] for group in trees] == by_tree
    assert [[transfer.node.name for transfer in group] for group in direct] == directly


@pytest.mark.parametrize(
    "words",
    [
        ["a/w.bin", "b/w.bin", "0:/x/"],
        ["0:/a/w.bin", "0:/b/w.bin", "here/"],
        ["2:w.bin", "3:w.bin", "here/"],
        ["2:w.bin", "3:w.bin", "0:"],
        ["2:~/w.bin", "train-3:w.bin", "here/"],
        ["w.bin", "2:w.bin", "0:"],
        ["0-1:w.bin", "1-2:w.bin", "here/"],
        ["w.bin", "w.bin", "0:"],
    ],
)
def test_two_files_of_one_name_are_not_made_one(words: list[str], make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match=r"w.bin would be one file at the target"):
        transfers(words, make_inventory())


@pytest.mark.parametrize(
    "words",
    [["0-1:w.bin", "2-3:w.bin", "here/"], ["0-1:a/w.bin", "2:b/w.bin", "here/"], ["0-1:w.bin", "0-1:v", "here/"]],
)
def test_one_name_in_the_folders_of_several_nodes_is_no_one_file(
    words: list[str], make_inventory: MakeInventory
) -> None:
    todo = [each for each in transfers(words, make_inventory()) if isinstance(each, Download)]
    assert len({(each.local, each.remote) for each in todo}) == len(todo) >= 3
    copied_up, syncs = folder_copies(words, make_inventory())
    assert (copied_up, len(syncs)) == (False, len(todo))


def test_a_colon_within_a_name_does_not_make_two_files_one(make_inventory: MakeInventory) -> None:
    assert len(transfers(["./a:w.bin", "./b:w.bin", "0:/x/"], make_inventory())) == 2


def test_a_name_that_is_no_text_is_refused_in_words_that_can_be_shown(make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match=r"b'.xffw.bin' is no UTF-8"):
        transfers([os.fsdecode(b"\xffw.bin"), "0:"], make_inventory())


def test_progress_adds_up() -> None:
    progress = Progress(2)
    with progress.of_one(200_000_000) as moved:
        moved(120_000_000)
        progress.done()
        assert progress.text().startswith("1 of 2 files · 120 of 200 MB · ")
    with contextlib.suppress(EOFError), progress.of_one(100_000_000) as moved:
        moved(40_000_000)
        raise EOFError
    with progress.of_one(60_000_000):  # what the broken one left
        assert progress.text().startswith("1 of 2 files · 160 of 300 MB · ")

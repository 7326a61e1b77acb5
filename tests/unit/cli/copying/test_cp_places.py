"""What the words of `clusterctl cp` mean, and where content is gathered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clusterctl.copying.place import partial_name, remote_place, transfers
from clusterctl.copying.progress import Progress
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
    todo = transfers(["a.pt", "all:/scratch/b.pt"], make_inventory())
    assert [(one.direction, one.node.slot, str(one.local), one.remote, one.is_into_folder) for one in todo] == [
        ("up", slot, "a.pt", "/scratch/b.pt", False) for slot in range(4)
    ]


@pytest.mark.parametrize("words", [["a", "b", "1:/x"], ["a", "1:/x/"], ["a", "1:"]])
def test_several_files_or_a_slash_want_a_folder(words: list[str], make_inventory: MakeInventory) -> None:
    assert all(one.is_into_folder for one in transfers(words, make_inventory()))


def test_files_of_several_nodes_come_into_a_folder_for_each(make_inventory: MakeInventory) -> None:
    todo = transfers(["0-1:/var/log/x.log", "logs"], make_inventory())
    assert [str(one.local) for one in todo] == ["logs/train-0", "logs/train-1"]
    assert all(one.is_into_folder for one in todo)


def test_one_file_of_one_node_comes_under_the_name_that_was_written(make_inventory: MakeInventory) -> None:
    (one,) = transfers(["2:/var/log/x.log", "y.log"], make_inventory())
    assert (str(one.local), one.is_into_folder) == ("y.log", False)


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["a"], UsageError, "a source and a target"),
        (["a", "b"], UsageError, "neither side is a node"),
        (["1:a", "2:b"], UsageError, "by way of this computer"),
        (["a", "1:b", "c"], UsageError, "neither side is a node"),
        (["1:/dir/", "c"], UsageError, "names no file"),
        (["a", "9:/b"], NothingMatched, "no node 9"),
        (["a", "x:/b"], UsageError, "not a set of nodes"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    words: list[str], error: type[ClusterctlError], said: str, make_inventory: MakeInventory
) -> None:
    with pytest.raises(error, match=said):
        transfers(words, make_inventory())


def test_content_is_gathered_beside_its_target_under_its_own_digest() -> None:
    assert partial_name("/scratch/a.pt", "0123456789abcdef9999") == "/scratch/.a.pt.clusterctl-0123456789abcdef"
    assert partial_name("a.pt", "0123456789abcdef9999") == ".a.pt.clusterctl-0123456789abcdef"


def test_progress_adds_up() -> None:
    progress = Progress(2)
    progress.expect(200_000_000)
    progress.expect(100_000_000)
    progress.moved(120_000_000)
    progress.done()
    assert progress.text().startswith("1 of 2 files · 120 of 300 MB · ")

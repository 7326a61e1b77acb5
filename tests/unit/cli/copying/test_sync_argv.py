"""What `clusterctl sync` asks of rsync."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.copying.rsync import cause
from clusterctl.copying.trees import RsyncWay, refuse_emptied_home, rsync_argv, summary, tree_syncs
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

MakeInventory = Callable[..., Inventory]
SSH = ["ssh", "-o", "ProxyCommand=python -m x 'a b'", "-p", "22", "ubuntu@10.0.8.1"]


def test_a_folder_goes_up_by_our_own_ssh(make_inventory: MakeInventory, tmp_path: Path) -> None:
    is_up, (sync,) = tree_syncs(f"{tmp_path}/", "1:train/src/", make_inventory())
    way = RsyncWay(is_up=is_up, is_deleting=True, excluded=("*.tmp",), silence_s=90)
    argv = rsync_argv(way, sync, SSH)
    assert argv[-2:] == [f"{tmp_path}/", "ubuntu@10.0.8.1:train/src/"]
    assert "--timeout=90" in argv
    assert "--delete-delay" in argv
    assert "--exclude=*.tmp" in argv
    shell = argv[argv.index("-e") + 1]
    assert shell == """ssh -o 'ProxyCommand=python -m x '"'"'a b'"'"'' -p 22"""


def test_an_ipv6_address_is_told_from_the_path(make_inventory: MakeInventory, tmp_path: Path) -> None:
    is_up, (sync,) = tree_syncs(f"{tmp_path}/", "1:train/src/", make_inventory())
    assert rsync_argv(RsyncWay(is_up=is_up), sync, ["ssh", "ada@fd00::5"])[-1] == "ada@[fd00::5]:train/src/"


def test_folders_of_several_nodes_come_apart(make_inventory: MakeInventory) -> None:
    is_up, syncs = tree_syncs("0-1:/scratch/run/", "runs", make_inventory())
    assert not is_up
    assert [(sync.source, sync.target) for sync in syncs] == [
        ("/scratch/run/", "runs/train-0/"),
        ("/scratch/run/", "runs/train-1/"),
    ]
    argv = rsync_argv(RsyncWay(is_up=False), syncs[0], SSH)
    assert argv[-2:] == ["ubuntu@10.0.8.1:/scratch/run/", "runs/train-0/"]
    assert "--delete-delay" not in argv


def test_nothing_that_root_alone_can_make_comes_from_a_node_unless_it_is_asked_for(
    make_inventory: MakeInventory, tmp_path: Path
) -> None:
    safe = {"--no-owner", "--no-group", "--no-D", "--chmod=ug-s"}
    _, (come,) = tree_syncs("1:/scratch/run/", str(tmp_path), make_inventory())
    assert safe <= set(rsync_argv(RsyncWay(is_up=False), come, SSH))
    assert not safe & set(rsync_argv(RsyncWay(is_up=False, is_preserving=True), come, SSH))
    _, (go,) = tree_syncs(str(tmp_path), "1:/scratch/run/", make_inventory())
    assert not safe & set(rsync_argv(RsyncWay(is_up=True), go, SSH))


def test_a_folder_here_is_none_of_a_host(make_inventory: MakeInventory) -> None:
    _, syncs = tree_syncs("0-1:/scratch/run/", "./a:b", make_inventory())
    assert [sync.target for sync in syncs] == ["./a:b/train-0/", "./a:b/train-1/"]


@pytest.mark.parametrize("source", ["/", "/.", "/src/.."])
@pytest.mark.parametrize("target", ["", "~", "./", "/home/ubuntu/", "/", "//", "/home", ".."])
def test_a_home_is_not_emptied(source: str, target: str, make_inventory: MakeInventory, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    _, syncs = tree_syncs(f"{tmp_path}{source}", f"1:{target}", make_inventory())
    with pytest.raises(UsageError, match="--delete would empty ubuntu's home on train-1"):
        refuse_emptied_home(syncs, "ubuntu")


@pytest.mark.parametrize("words", [("", ""), ("/", "src"), ("/", "/scratch"), ("/", "/home/ubuntu2")])
def test_a_folder_in_a_home_may_be(words: tuple[str, str], make_inventory: MakeInventory, tmp_path: Path) -> None:
    source, target = words
    _, syncs = tree_syncs(f"{tmp_path}{source}", f"1:{target}", make_inventory())
    refuse_emptied_home(syncs, "ubuntu")


@pytest.mark.parametrize(
    ("words", "message"),
    [(("a", "b"), "neither side is a node"), (("1:a", "2:b"), "copies between this computer and nodes")],
)
def test_one_side_is_a_node(words: tuple[str, str], message: str, make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match=message):
        tree_syncs(*words, make_inventory())


def test_a_folder_that_is_not_here_is_told_before_anybody_goes_there(make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match="nope/: there is no such folder here"):
        tree_syncs("nope/", "1:there", make_inventory())


def test_what_was_done_is_told() -> None:
    stats = "Number of files: 3 (reg: 2, dir: 1)\nNumber of regular files transferred: 2\n"
    assert summary(stats + "Total transferred file size: 3.45M bytes\n") == "2 files, 3.45M bytes changed"
    assert summary("Number of regular files transferred: 1\nTotal transferred file size: 3 bytes\n").startswith(
        "1 file, "
    )


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        (
            "rsync: change_dir failed: No such file (2)\nrsync: [Receiver] write error: Broken pipe (32)\n",
            "rsync: change_dir failed: No such file (2)",
        ),
        ("rsync: it failed\nrsync error: some files were not transferred (code 23)\n", "rsync: it failed"),
        (
            "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]\n",
            "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]",
        ),
        ("\n", ""),
    ],
)
def test_of_what_rsync_says_the_cause_is_told(stderr: str, shown: str) -> None:
    assert cause(stderr) == shown

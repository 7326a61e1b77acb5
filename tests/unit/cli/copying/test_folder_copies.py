"""What `clusterctl cp -r` asks of rsync."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.copying.trees import folder_copies
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

MakeInventory = Callable[..., Inventory]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with `src/`, `configs/` and `train.py`."""
    (tmp_path / "src").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "copies"),
    [
        ("src 1:", [("train-1", "src", ".")]),
        ("src/ 1:train", [("train-1", "src", "train/")]),
        ("train.py 1:other.py", [("train-1", "train.py", "other.py")]),
        ("src train.py 1:/scratch", [("train-1", "src", "/scratch/"), ("train-1", "train.py", "/scratch/")]),
        ("src 0-1:x/", [("train-0", "src", "x/"), ("train-1", "src", "x/")]),
        ("1:/scratch/run/ runs", [("train-1", "/scratch/run", "runs")]),
        ("0-1:run runs", [("train-0", "run", "runs/train-0/"), ("train-1", "run", "runs/train-1/")]),
        ("1:run 1:log back", [("train-1", "run", "back/"), ("train-1", "log", "back/")]),
    ],
)
def test_each_folder_comes_into_the_target_under_its_own_name(
    words: str, copies: list[tuple[str, str, str]], make_inventory: MakeInventory
) -> None:
    is_up, syncs = folder_copies(words.split(), make_inventory())
    assert [(sync.node.name, sync.source, sync.target) for sync in syncs] == copies
    assert is_up == (":" in words.split()[-1])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("src", "a source and a target are needed"),
        ("0:run 1:run", "from node to node, cp copies files only"),
        ("src 0:run 1:", "from node to node, cp copies files only"),
        ("src 0:run back", "neither side is a node"),
        ("src configs", "neither side is a node"),
        (". 1:train", "is no folder with a name of its own"),
        ("src/.. 1:train", "is no folder with a name of its own"),
        ("1:/ back", "is no folder with a name of its own"),
        ("0:a/run 1:b/run back", "would be one file at the target"),
        ("0:run 1:run back", "0:run and 1:run would be one file at the target"),
        ("gone 1:train", "there is no such folder here"),
    ],
)
def test_what_is_not_clear_is_refused(words: str, message: str, make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match=message):
        folder_copies(words.split(), make_inventory())

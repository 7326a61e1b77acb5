"""The folder from which a known cluster was last run: gone, moved, or without a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any  # the fields of an inventory

import pytest
from clusterctl.engine.known_folder import stack_of_cluster
from clusterctl.engine.state import StackState, StateResource
from clusterctl.engine.whereabouts import PROJECT_FILES, names_of_cluster
from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import IDENTITY_TYPE

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def stack(folder: Path, *, name: str = "train") -> Path:
    folder.mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (folder / "cluster.yaml").write_text(f"name: {name}\n")
    return folder


def refusal(make_inventory: MakeInventory, folder: Path | None, **known: Any) -> UsageError:
    with pytest.raises(UsageError) as refused:
        stack_of_cluster(make_inventory(stack_dir=None if folder is None else str(folder), **known))
    return refused.value


def test_a_folder_that_was_moved_is_named_where_it_is_now(tmp_path: Path, make_inventory: MakeInventory) -> None:
    stack(tmp_path / "stacks/big", name="other")
    moved = stack(tmp_path / "stacks/renamed")
    error = refusal(make_inventory, tmp_path / "stacks/train")
    assert f"{tmp_path}/stacks/train, is not there any more; nothing was changed" in error.message
    assert error.hint == f"clusterctl nodes --stack {moved}"


def test_a_cluster_whose_folder_is_lost_is_ended_by_its_id(tmp_path: Path, make_inventory: MakeInventory) -> None:
    stack(tmp_path / "big", name="other")
    error = refusal(make_inventory, tmp_path / "train")
    assert error.hint == "clusterctl reap --cluster 0123456789ab --region us-west-2"
    assert "clusterctl forget train removes what this computer knows of it, once nothing of it bills" in error.message


@pytest.mark.parametrize(
    ("missing", "hint"),
    [("Pulumi.yaml", "ls -A {}"), ("cluster.yaml", "${{EDITOR:-nano}} {}/cluster.yaml")],
)
def test_a_file_that_is_gone_is_named_and_no_other_stack(
    tmp_path: Path, make_inventory: MakeInventory, missing: str, hint: str
) -> None:
    stack(tmp_path / "other")
    folder = stack(tmp_path / "train")
    (folder / missing).unlink()
    error = refusal(make_inventory, folder)
    assert f"{folder}, the folder of train's stack, has no {missing}" in error.message
    assert error.hint == hint.format(folder)


def test_what_ends_a_cluster_needs_no_cluster_yaml(tmp_path: Path, make_inventory: MakeInventory) -> None:
    folder = stack(tmp_path / "train")
    (folder / "cluster.yaml").unlink()
    inventory = make_inventory(stack_dir=str(folder))
    assert stack_of_cluster(inventory, files=PROJECT_FILES).project == "x"


def test_a_folder_that_nobody_noted_is_asked_for(make_inventory: MakeInventory) -> None:
    assert refusal(make_inventory, None).hint == "clusterctl nodes --stack STACK  (STACK: the folder)"


def test_the_folder_is_told_with_the_flags_that_make_it_the_same_stack(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    moved = stack(tmp_path / "stacks/renamed")
    known: dict[str, Any] = {"cluster": "train@rehearsal", "rehearsal": True, "stack_name": "big"}
    error = refusal(make_inventory, tmp_path / "stacks/train", **known)
    assert error.hint == f"clusterctl nodes --stack {moved} --rehearse --stack-name big"
    unknown = refusal(make_inventory, None, **known)
    assert unknown.hint == "clusterctl nodes --stack STACK --rehearse --stack-name big  (STACK: the folder)"


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ({"name": "train", "zone": "us-west-2b"}, ("train", "us-west-2")),
        ({"name": "train", "zone": "us-west-2-lax-1a"}, ("train", "us-west-2")),
        ({"name": "train", "zone": "mars-north-1a"}, ("train", "mars-north-1")),
        ({"name": "train"}, None),
        ({"zone": "us-west-2b"}, None),
    ],
)
def test_a_state_tells_what_its_cluster_is_called_and_where_it_is(
    outputs: dict[str, str], names: tuple[str, str] | None
) -> None:
    state = StackState(resources=(StateResource(urn="u", type=IDENTITY_TYPE, id="x", outputs=outputs),))
    assert names_of_cluster(state, ("us-west-1", "us-west-2", "us-west-22")) == names
    assert names_of_cluster(StackState(), ("us-west-2",)) is None

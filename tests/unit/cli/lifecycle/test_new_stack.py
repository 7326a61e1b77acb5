"""`init` writes a folder that `plan` takes, and refuses what `plan` refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.lifecycle.new_stack import PROGRAM, price_cap
from clusterctl.program import run

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Screen

ROOT = Path(__file__).resolve().parents[4]
MACHINE = ("--region", "us-west-2", "--type", "p5.48xlarge")


@pytest.mark.parametrize(
    "flags",
    [
        MACHINE,
        (*MACHINE, "--nodes", "4", "--ssh-from", "18.246.31.7/32", "--budget", "1000", "--runtime", "12h"),
        ("--region", "us-east-1", "--type", "g5.xlarge", "--nodes", "1"),
        ("--region", "us-west-2", "--gpus", "h100:8"),
    ],
)
def test_a_new_stack_is_planned_as_it_is_written(
    tmp_path: Path, own_home: Path, screen: Screen, flags: tuple[str, ...]
) -> None:
    folder = tmp_path / "stacks" / "mine"
    assert run(["init", str(folder), *flags], screen.output) == 0, screen.err
    assert f"next: clusterctl plan {folder}" in screen.err
    assert sorted(file.name for file in folder.iterdir()) == ["Pulumi.yaml", "__main__.py", "cluster.yaml"]
    assert (folder / "Pulumi.yaml").read_text().startswith("name: mine\n")
    assert run(["plan", str(folder)], screen.output) == 0, screen.err
    assert screen.out.startswith("mine · ")


def test_the_caps_are_near_what_it_costs_and_everything_asked_is_in_the_file(
    tmp_path: Path, own_home: Path, screen: Screen
) -> None:
    folder = tmp_path / "mine"
    flags = ("--nodes", "4", "--ssh-from", "18.246.31.7/32", "--budget", "1000")
    assert run(["init", str(folder), *MACHINE, *flags], screen.output) == 0, screen.err
    assert (folder / "cluster.yaml").read_text().splitlines()[1:] == [
        "name: mine",
        "region: us-west-2",
        "nodes: 4",
        "instance_type: p5.48xlarge",
        "access:",
        "  mode: public",
        "  ssh_from: [18.246.31.7/32]   # nobody else reaches port 22",
        "caps:",
        "  price_usd_per_hour: 56   # a node; the list says $55.04",
        "  runtime: 8h   # then the cluster ends by itself",
        "  budget_usd: 1000   # the whole cluster, over all its runs",
    ]


def test_all_that_plan_refuses_is_refused_at_once_by_flag_and_nothing_is_written(
    tmp_path: Path, own_home: Path, screen: Screen
) -> None:
    folder = tmp_path / "mine"
    flags = ("--region", "us-west-9", "--type", "p5.48xlarg", "--ssh-from", "203.0.113.7/32", "--budget", "much: more")
    assert run(["init", str(folder), *flags], screen.output) == 2
    assert "4 problems, nothing was written" in screen.err
    assert screen.err.endswith("  next: clusterctl init --help\n")
    for flag in ("--region: 'us-west-9'", "--type: 'p5.48xlarg'", "--ssh-from: 203.0.113.7/32", "--budget: 'much"):
        assert f"\n  {flag}" in screen.err, screen.err
    assert not folder.exists()


def test_a_budget_that_only_the_plan_finds_too_small_is_refused_by_its_flag(
    tmp_path: Path, own_home: Path, screen: Screen
) -> None:
    folder = tmp_path / "mine"
    assert run(["init", str(folder), *MACHINE, "--budget", "0.001"], screen.output) == 2
    assert "1 problem, nothing was written\n  --budget: $0.001 pays for less than a second of the cluster" in screen.err
    assert not folder.exists()


@pytest.mark.parametrize("flags", [(), ("--region", "us-west-2"), ("--type", "p5.48xlarge")])
def test_a_flag_that_is_needed_and_missing_is_named(
    tmp_path: Path, own_home: Path, screen: Screen, flags: tuple[str, ...]
) -> None:
    assert run(["init", str(tmp_path / "mine"), *flags], screen.output) == 2
    assert ("--region: missing" in screen.err) == ("--region" not in flags), screen.err
    assert ("--type or --gpus: missing" in screen.err) == ("--type" not in flags), screen.err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, own_home: Path, screen: Screen) -> None:
    (tmp_path / "cluster.yaml").write_text("name: mine\n")
    assert run(["init", str(tmp_path), *MACHINE], screen.output) == 2
    assert "exists and is not an empty folder: nothing was written" in screen.err
    assert (tmp_path / "cluster.yaml").read_text() == "name: mine\n"


def test_an_existing_empty_folder_is_used(tmp_path: Path, own_home: Path, screen: Screen) -> None:
    (tmp_path / "mine").mkdir()
    assert run(["init", str(tmp_path / "mine"), *MACHINE], screen.output) == 0, screen.err


@pytest.mark.parametrize("known", ["mine", "mine@rehearsal"])
def test_the_name_of_a_cluster_that_is_known_here_is_not_taken_twice(
    tmp_path: Path, own_home: Path, screen: Screen, known: str
) -> None:
    (own_home / "inventory").mkdir(parents=True)
    (own_home / "inventory" / f"{known}.json").write_text("{}")
    assert run(["init", str(tmp_path / "mine"), *MACHINE], screen.output) == 2
    assert f"a cluster called {known} is known on this computer" in screen.err


def test_the_program_is_the_one_of_stacks_train() -> None:
    assert (ROOT / "stacks" / "train" / "__main__.py").read_text() == PROGRAM


@pytest.mark.parametrize(("usd_per_hour", "cap"), [(55.04, 56.0), (1.006, 2.0), (0.526, 0.6), (56.0, 56.0)])
def test_a_cap_is_a_little_above_the_price(usd_per_hour: float, cap: float) -> None:
    assert price_cap(usd_per_hour) == cap

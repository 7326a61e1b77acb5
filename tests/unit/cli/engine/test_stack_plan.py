"""What `plan` says of a stack: from its folder, its config, and what runs of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any  # `Any`: JSON

import pytest
from clusterctl.engine.stack import read_stack
from clusterctl.engine.stack_plan import StackPlan, plan_stack
from clusterctl.home import Home
from clusterctl.lifecycle.plan_view import plan_json, plan_text
from clusterctl.program import run
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.outputs import inventory_to_json

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory, Screen

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CLUSTER = """\
name: train
region: us-west-2
nodes: 4
gpus: h100:8
access: {mode: public, ssh_from: [18.246.31.7/32]}
caps: {price_usd_per_hour: 60, budget_usd: 1000, runtime: 12h}
"""


@pytest.fixture
def stack_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "stack"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (folder / "cluster.yaml").write_text(CLUSTER)
    return folder


def planned(stack_dir: Path, home: Path, *, rehearse: bool = False, now: datetime = NOW) -> StackPlan:
    return plan_stack(read_stack(stack_dir), load_catalog(), home=Home(path=home), now=now, rehearse=rehearse)


def test_a_plan_shows_nodes_price_and_which_cap_wins(stack_dir: Path, own_home: Path) -> None:
    text = plan_text(planned(stack_dir, own_home), now=NOW)
    assert text.startswith("train · us-west-2 · 4 × p5.48xlarge · 32 × H100 80GB\n")
    assert "train-3  10.0.8.3    1 ENA + 32 EFA-only (3200 Gbit/s)" in text
    assert "cap 4 × $60.00" in text
    assert "  afterwards " not in text
    assert "12 h after launch, or $1000.00 spent after 4 h 32 m: 4 h 32 m wins" in text


def test_a_plan_shows_what_is_mounted_and_its_price(stack_dir: Path, own_home: Path) -> None:
    storage = (
        "storage:\n"
        "  - mount: /shared\n"
        "    fsx-lustre: {size: 4800GiB, throughput: 250}\n"
        "  - mount: /data\n"
        "    s3: {bucket: ml-datasets, prefix: imagenet/}\n"
    )
    (stack_dir / "cluster.yaml").write_text(CLUSTER + storage)
    known = planned(stack_dir, own_home)
    text = plan_text(known, now=NOW)
    assert "interfaces                         mounts\n" in text
    assert "train-0  10.0.8.0    1 ENA + 32 EFA-only (3200 Gbit/s)  /shared /data\n" in text
    assert "4 × $55.04 + disks $0.09 + addresses $0.02 + storage $1.38 = $221.65" in text
    rows: Any = plan_json(known)["storage"]
    lustre, bucket = rows
    assert (lustre["kind"], lustre["size_gib"], lustre["is_retained"]) == ("fsx-lustre", 4800, True)
    assert (bucket["kind"], bucket["prefix"], bucket["writable"]) == ("s3", "imagenet/", False)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("", "/shared with s3://ml-datasets: imports new, changed, deleted; exports nothing"),
        (
            ", prefix: sets/, path: /sets, imports: [], exports: [deleted, new]",
            "/shared/sets with s3://ml-datasets/sets/: imports nothing; exports new, deleted",
        ),
    ],
)
def test_a_plan_shows_which_bucket_a_file_system_is_linked_to(
    stack_dir: Path, own_home: Path, more: str, line: str
) -> None:
    repository = f"data_repository: {{bucket: ml-datasets{more}}}"
    storage = f"storage: [{{mount: /shared, fsx-lustre: {{size: 4800GiB, {repository}}}}}]\n"
    (stack_dir / "cluster.yaml").write_text(CLUSTER + storage)
    known = planned(stack_dir, own_home)
    assert f"  linked       {line}\n" in plan_text(known, now=NOW)
    rows: Any = plan_json(known)["storage"]
    assert rows[0]["repository"]["bucket"] == "ml-datasets"


ENDS_WITH_BLOCK = "the cluster ends at the latest 30 m before it does"


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (
            "capacity_block: cr-0a1b2c3d4e5f67890",
            f"capacity block cr-0a1b2c3d4e5f67890, paid in advance; {ENDS_WITH_BLOCK}",
        ),
        (
            "capacity_block: {find: {hours: 24}}",
            f"a capacity block that up looks for, and buys once you agree to its price; {ENDS_WITH_BLOCK}",
        ),
        (
            "reservation: cr-0a1b2c3d4e5f67890",
            "reservation cr-0a1b2c3d4e5f67890, which exists, and bills with or without nodes; the cluster ends with it",
        ),
    ],
)
def test_a_plan_says_which_capacity_that_exists_it_uses_and_that_the_cluster_ends_with_it(
    stack_dir: Path, own_home: Path, key: str, line: str
) -> None:
    (stack_dir / "cluster.yaml").write_text(f"{CLUSTER}{key}\n")
    known = planned(stack_dir, own_home)
    assert f"  capacity     {line}\n" in plan_text(known, now=NOW)
    deadline = replace(known.plan.deadline, ceiling_at=NOW + timedelta(hours=5))
    looked_up = replace(known, plan=replace(known.plan, deadline=deadline))
    assert "; lets the cluster live until 2026-11-21 15:00 UTC\n" in plan_text(looked_up, now=NOW)


def test_a_rehearsed_plan_says_that_its_money_is_simulated(stack_dir: Path, own_home: Path) -> None:
    text = plan_text(planned(stack_dir, own_home, rehearse=True), now=NOW)
    assert "(rehearsed: simulated GPUs, simulated money)" in text.splitlines()[0]


def test_overrides_of_the_stacks_config_count(stack_dir: Path, own_home: Path) -> None:
    (stack_dir / "Pulumi.dev.yaml").write_text('config:\n  clusterctl:nodes: "2"\n')
    assert len(planned(stack_dir, own_home).plan.slots) == 2


def test_a_running_cluster_is_planned_from_its_own_start(
    stack_dir: Path, own_home: Path, make_inventory: MakeInventory
) -> None:
    home = Home(path=own_home)
    home.inventory_dir.mkdir(parents=True)
    inventory = make_inventory(stack_dir=str(stack_dir), started_at="2026-11-21T09:00:00+00:00")
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(inventory)))
    known = planned(stack_dir, own_home)
    assert known.plan.cluster_id == inventory.cluster_id
    assert known.plan.deadline.runtime_at == NOW + timedelta(hours=11)
    assert plan_json(known)["running"] is True
    assert "us-west-2b" in plan_text(known, now=NOW)


@pytest.mark.parametrize("is_override", [True, False])
def test_nodes_that_a_smaller_size_ends_are_named_with_where_it_was_said(
    stack_dir: Path, own_home: Path, make_inventory: MakeInventory, is_override: bool
) -> None:
    home = Home(path=own_home)
    home.inventory_dir.mkdir(parents=True)
    inventory = make_inventory(stack_dir=str(stack_dir))
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(inventory)))
    assert "ends  " not in plan_text(planned(stack_dir, own_home), now=NOW)
    if is_override:
        (stack_dir / "Pulumi.dev.yaml").write_text('config:\n  clusterctl:nodes: "2"\n')
    else:
        (stack_dir / "cluster.yaml").write_text(CLUSTER.replace("nodes: 4", "nodes: 2"))
    known = planned(stack_dir, own_home)
    source = "clusterctl:nodes in Pulumi.dev.yaml" if is_override else stack_dir / "cluster.yaml"
    assert f"  ends         train-[2-3]: {source} says 2 nodes" in plan_text(known, now=NOW).splitlines()
    assert plan_json(known)["ends"] == ["train-2", "train-3"]


def test_another_folders_cluster_of_the_same_name_is_not_this_one(
    stack_dir: Path, own_home: Path, make_inventory: MakeInventory
) -> None:
    home = Home(path=own_home)
    home.inventory_dir.mkdir(parents=True)
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(make_inventory(stack_dir="/elsewhere"))))
    assert planned(stack_dir, own_home).is_running is False


def test_another_stacks_cluster_of_the_same_name_and_folder_is_not_this_one(
    stack_dir: Path, own_home: Path, make_inventory: MakeInventory
) -> None:
    home = Home(path=own_home)
    home.inventory_dir.mkdir(parents=True)
    known = make_inventory(stack_dir=str(stack_dir), stack_name="other")
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(known)))
    assert planned(stack_dir, own_home).is_running is False


def test_all_problems_of_the_file_come_at_once_with_exit_2(stack_dir: Path, screen: Screen) -> None:
    (stack_dir / "cluster.yaml").write_text(CLUSTER.replace("nodes: 4", "nodes: 0") + "placemnt: cluster\n")
    assert run(["plan", str(stack_dir)], screen.output) == 2
    assert "2 problems, nothing was changed" in screen.err
    assert "did you mean placement?" in screen.err
    assert screen.out == ""


BROKEN = {"model": ("nodes: 4", "nodes: 0"), "plan": ("price_usd_per_hour: 60", "price_usd_per_hour: 6")}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(("typed", "source"), [(".", "cluster.yaml"), ("../stack", "../stack/cluster.yaml")])
def test_the_file_is_called_as_it_was_typed_whoever_finds_the_problem(
    stack_dir: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch, kind: str, typed: str, source: str
) -> None:
    (stack_dir / "cluster.yaml").write_text(CLUSTER.replace(*BROKEN[kind]))
    monkeypatch.chdir(stack_dir)
    assert run(["plan", typed], screen.output) == 2
    header, first, *_ = screen.err.splitlines()
    assert header == f"clusterctl: {source}: 1 problem, nothing was changed"
    assert first.startswith("  line ")


EXAMPLE = CLUSTER.replace("18.246.31.7/32", "203.0.113.7/32")


@pytest.mark.parametrize("text", [EXAMPLE, EXAMPLE.replace("nodes: 4", "nodes: 0")])
def test_an_address_that_nobody_has_is_refused_on_aws_and_not_in_a_rehearsal(
    stack_dir: Path, screen: Screen, text: str
) -> None:
    (stack_dir / "cluster.yaml").write_text(text)
    assert run(["plan", str(stack_dir)], screen.output) == 2
    assert "  line 5   access.ssh_from[0]: 203.0.113.7/32: an example's address (RFC 5737)" in screen.err
    assert run(["plan", str(stack_dir), "--rehearse"], screen.output) == (2 if "nodes: 0" in text else 0)
    assert screen.err.count("RFC 5737") == 1


def test_problems_of_the_plan_are_in_the_json_and_in_the_exit_code(stack_dir: Path, screen: Screen) -> None:
    (stack_dir / "cluster.yaml").write_text(CLUSTER.replace("price_usd_per_hour: 60", "price_usd_per_hour: 6"))
    assert run(["plan", str(stack_dir), "--json"], screen.output) == 2
    levels = [problem["level"] for problem in json.loads(screen.out)["problems"]]
    assert "error" in levels
    assert "1 problem, nothing was changed" in screen.err


def test_a_folder_that_is_no_stack_is_said_so(tmp_path: Path, screen: Screen) -> None:
    assert run(["plan", str(tmp_path)], screen.output) == 2
    assert "is not a stack, a folder with Pulumi.yaml and cluster.yaml: it has no Pulumi.yaml" in screen.err


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path, screen: Screen) -> None:
    assert run(["plan", str(tmp_path / "nope")], screen.output) == 2
    assert f"there is no folder {tmp_path / 'nope'}" in screen.err
    assert f"next: ls {tmp_path}" in screen.err


def test_a_file_is_no_stack_and_the_stacks_near_it_are_named(
    stack_dir: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks = stack_dir.parent / "stacks"
    stacks.mkdir()
    stack_dir.rename(stacks / "train")
    (stacks.parent / "README.md").touch()
    monkeypatch.chdir(stacks.parent)
    assert run(["plan", "README.md"], screen.output) == 2
    assert "README.md is a file, and a stack is a folder" in screen.err
    assert "next: clusterctl plan stacks/train" in screen.err

"""The stack folder of an app's own cluster, and when a cluster that was kept is used as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import clusterctl
import pytest
from clusterctl.functions.cluster_text import AppCluster
from clusterctl.functions.kept_cluster import kept_cluster, noting_half_made
from clusterctl.functions.needs import ClusterNeeds
from clusterctl.functions.own_cluster import stack_folder
from clusterctl.home import Home
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.outputs import Inventory, inventory_to_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import MakeInventory

APP = AppCluster(name="exp", region="us-west-2", access={"mode": "private"})
NEEDS = ClusterNeeds(num_instances=4, gpu="h100:8")
VOLUME: dict[str, Any] = {"name": "data", "size_gb": 500}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home for this test alone."""
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    return Home(path=tmp_path)


def app_with(**arguments: Any) -> clusterctl.App:
    app = clusterctl.App("exp", region="us-west-2", access="private")
    app.function(**{"gpu": "h100:8", **arguments})(lambda: 1)
    return app


def write_inventory(home: Home, inventory: Inventory) -> None:
    home.inventory_dir.mkdir(exist_ok=True)
    home.inventory_file("exp").write_text(json.dumps(inventory_to_json(inventory)))


@pytest.fixture
def kept(home: Home, make_inventory: MakeInventory) -> Inventory:
    """The app's own cluster, up for another hour."""
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    inventory = make_inventory(name="exp", cluster="exp", deadline=later, stack_dir=str(home.apps_dir / "exp"))
    write_inventory(home, inventory)
    return inventory


def test_the_folder_is_a_stack_that_is_written_where_the_arguments_change(home: Home) -> None:
    app = app_with(num_instances=16, internode_interconnect="InfiniBand", intranode_interconnect="SXM5")
    assert app.stack == home.apps_dir / "exp"
    text = (app.stack / "cluster.yaml").read_text()
    assert 'fabric: "required"' in text
    assert "nodes: 16" in text
    assert {file.name for file in app.stack.iterdir()} == {"Pulumi.yaml", "__main__.py", "cluster.yaml", "volumes.json"}
    (home.apps_dir / "exp" / "Pulumi.yaml").write_text("another text")
    assert (app.stack / "Pulumi.yaml").read_text() == "another text", "nothing has changed, so nothing is written"
    other = app_with(num_instances=8).stack
    assert "nodes: 8" in (other / "cluster.yaml").read_text()
    assert (other / "Pulumi.yaml").read_text().startswith("name: exp\n")


def test_a_price_above_the_cap_is_told_and_nothing_is_written(home: Home) -> None:
    app = app_with(num_instances=8, max_price_per_hour=50.0)
    with pytest.raises(ConfigError) as e:
        _ = app.stack
    assert e.value.problems == ("  max_price_per_hour: a node of p5.48xlarge costs $55.04 an hour, the cap is $50.00",)
    assert "the cap is $50.00" in "".join(e.value.__notes__), "a traceback shows it"
    assert not home.apps_dir.exists()
    assert app_with(num_instances=8, max_price_per_hour=60.0).stack.is_dir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"intranode_interconnect": "SXM4"}, "a p5.48xlarge has SXM5 GPUs with NVLink"),
        ({"gpu": "t4g:1", "internode_interconnect": "InfiniBand"}, "gpu"),
        ({"volumes": {"/etc": VOLUME}}, "volumes, mounts (mount): "),
    ],
)
def test_what_the_catalog_does_not_have_is_told_by_its_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as e:
        _ = app_with(**arguments).stack
    assert message in " ".join(e.value.problems)


def test_without_gpus_or_a_type_nothing_is_written() -> None:
    with pytest.raises(UsageError, match="gpu= is missing"):
        _ = app_with(gpu=None).stack


def test_a_kept_cluster_is_used_as_it_is(kept: Inventory) -> None:
    stack_folder(APP, NEEDS)
    assert kept_cluster(APP, NEEDS) == kept


@pytest.mark.parametrize(
    "changed",
    [
        {"deadline": "2026-01-01T00:00:00+00:00"},
        {"generation": 0},
        {"stack_dir": "/home/ada/exp"},
        {"run_nodes_down": True},
        {"nodes": ()},
    ],
)
def test_a_cluster_whose_time_is_over_or_that_is_another_one_is_not_used(
    home: Home, kept: Inventory, changed: dict[str, Any]
) -> None:
    stack_folder(APP, NEEDS)
    write_inventory(home, replace(kept, **changed))
    assert kept_cluster(APP, NEEDS) is None


@pytest.mark.usefixtures("kept")
def test_a_cluster_that_other_arguments_describe_is_not_used() -> None:
    stack_folder(APP, NEEDS)
    assert kept_cluster(APP, replace(NEEDS, max_price_per_hour=60.0)) is None
    assert kept_cluster(replace(APP, is_rehearsal=True), NEEDS) is None


@pytest.mark.usefixtures("kept")
def test_a_path_does_not_change_its_volume_while_the_cluster_is_there() -> None:
    assert app_with(volumes={"/shared": VOLUME}).stack.is_dir()
    with pytest.raises(UsageError, match=r"volumes\['/shared'\] is other, and the cluster has data there"):
        _ = app_with(volumes={"/shared": {**VOLUME, "name": "other"}}, num_instances=2).stack


def test_a_cluster_that_was_half_made_when_somebody_stopped_it_is_noted_to_be_ended(
    home: Home, kept: Inventory
) -> None:
    noted: list[str] = []

    def half_make() -> None:
        write_inventory(home, kept)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), noting_half_made(APP, home, lambda: noted.append("was there before")):
        raise KeyboardInterrupt
    home.inventory_file("exp").unlink()
    with pytest.raises(UsageError), noting_half_made(APP, home, lambda: noted.append("never made")):
        raise UsageError("not agreed to", hint="-")
    with pytest.raises(KeyboardInterrupt), noting_half_made(APP, home, lambda: noted.append("half made")):
        half_make()
    assert noted == ["half made"]

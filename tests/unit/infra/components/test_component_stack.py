"""A stack's folder and config, as its program reads them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pulumi
import pytest
from clusterctl_infra.catalog.fresh_prices import FreshPrice, fresh_prices_text
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.components.birth import Birth
from clusterctl_infra.components.cluster import Cluster, ClusterArgs
from clusterctl_infra.components.refusal import PlanRefused
from clusterctl_infra.components.stack import current_settings, load_stack

from tests.unit.infra.components.recorded_program import record

CLUSTER = """
name: train
region: us-west-2
nodes: 4
instance_type: p5.48xlarge
access: {mode: private}
"""


@pytest.fixture(autouse=True)
def no_config_left() -> Iterator[None]:
    """The SDK keeps a stack's config for the whole process."""
    yield
    pulumi.runtime.set_all_config({})


def test_the_stack_s_config_overrides_simple_fields(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    pulumi.runtime.set_all_config({"clusterctl:nodes": "6", "clusterctl:run": "2", "aws:region": "eu-west-1"})
    config, settings = load_stack(tmp_path)
    assert (config.nodes, config.region) == (6, "us-west-2")
    assert (settings.run, settings.down, dict(settings.overrides)) == (2, False, {"nodes": "6"})


def test_plain_pulumi_refuses_a_list_of_types_until_one_was_chosen(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("p5.48xlarge", "[p5en.48xlarge, p5.48xlarge]"))
    config, settings = load_stack(tmp_path)
    with pytest.raises(PlanRefused, match="AWS has not been asked yet which of them it has room for"):
        Birth(config=config, catalog=load_catalog(), settings=settings, now=datetime.now(UTC)).draft()
    pulumi.runtime.set_all_config({"clusterctl:chosen": '{"instance_type":"p5.48xlarge","zone":"us-west-2b"}'})
    config, settings = load_stack(tmp_path)
    drafted = Birth(config=config, catalog=load_catalog(), settings=settings, now=datetime.now(UTC)).draft()
    assert (drafted.instance_type, drafted.zone) == ("p5.48xlarge", "us-west-2b")


def test_zero_nodes_are_a_setting_of_the_stack() -> None:
    pulumi.runtime.set_all_config({"clusterctl:down": "true"})
    assert current_settings().down


def test_every_problem_of_the_file_is_on_the_screen_of_plain_pulumi(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("nodes: 4", "nodes: 0") + "placemnt: cluster\n")
    with pytest.raises(PlanRefused) as caught:
        load_stack(tmp_path)
    assert "2 problems, nothing was changed" in str(caught.value)
    assert "did you mean placement?" in str(caught.value)


def test_beside_another_problem_a_cap_is_judged_by_the_newest_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster.yaml").write_text(
        CLUSTER.replace("nodes: 4", "nodes: 1") + "placemnt: cluster\ncaps:\n  price_usd_per_hour: 45\n"
    )
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path / "home"))
    with pytest.raises(PlanRefused, match=r"a node of p5\.48xlarge costs \$55\.04 an hour"):
        load_stack(tmp_path)
    row = FreshPrice(
        instance_type="p5.48xlarge",
        region="us-west-2",
        on_demand_usd_per_hour=40.0,
        spot_usd_per_hour=None,
        dated="2026-11-27",
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "prices.json").write_text(fresh_prices_text([row]))
    with pytest.raises(PlanRefused, match="1 problem, nothing was changed") as caught:
        load_stack(tmp_path)
    assert "did you mean placement?" in str(caught.value)


def test_a_broken_price_list_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "prices.json").write_text("{")
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    with pytest.raises(PlanRefused, match="not a price list that clusterctl wrote"):
        load_stack(tmp_path)


def test_problems_of_the_plan_have_their_lines_in_the_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER + "caps:\n  price_usd_per_hour: 1\n")
    monkeypatch.chdir(tmp_path)

    def program() -> object:
        config, settings = load_stack(tmp_path)
        return Cluster(config.name, ClusterArgs(config=config, settings=settings)).inventory

    with pytest.raises(PlanRefused) as caught:
        record(program)
    heading, problem = str(caught.value).splitlines()
    assert heading == "cluster.yaml: 1 problem, nothing was changed"
    assert problem.startswith("  line 8   caps.price_usd_per_hour: a node of p5.48xlarge costs $55.04 an hour")


def test_a_setting_that_nobody_can_mean_is_refused_with_the_command_that_helps() -> None:
    pulumi.runtime.set_all_config({"clusterctl:run": "zero"})
    with pytest.raises(PlanRefused, match="pulumi config rm clusterctl:run"):
        current_settings()

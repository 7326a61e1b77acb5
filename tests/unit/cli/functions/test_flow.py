"""The names of Flow's guide, and what a task costs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from clusterctl.flow import Flow, FlowApp
from clusterctl.functions.task import cost_usd
from clusterctl.on_node.function import in_job
from clusterctl_infra.errors import UsageError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def test_a_function_of_flow_has_an_app_that_is_called_as_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-west-2")

    @FlowApp().function(gpu="h100:8", num_instances=4)
    def train_all(number: int) -> int:
        return number + 1

    assert train_all.local(1) == 2
    assert train_all._app.name == "train-all"
    with pytest.raises(UsageError, match="a command is not built yet"):
        train_all._build_task_config("python train.py")
    wrong: Any = train_all
    with pytest.raises(UsageError, match=r"give it what fn\._build_task_config"):
        Flow().run(wrong)


def test_without_a_region_flow_says_which_variable_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(UsageError, match="AWS_REGION"):
        FlowApp().function(gpu="h100:8")(lambda: 1)


def test_nothing_of_flow_starts_anything_within_a_job() -> None:
    with pytest.raises(in_job.StartedWithinAJob, match="run"):
        in_job.Flow().run(None, mounts={})
    with pytest.raises(in_job.StartedWithinAJob, match="run"):
        in_job.App().run(yes=True)


def test_a_task_costs_its_nodes_share_of_what_the_cluster_bills(make_inventory: MakeInventory) -> None:
    inventory = replace(make_inventory(), usd_per_hour=220.0)
    spec = {"members": [{}, {}], "started_s": 1000.0}
    assert cost_usd(inventory, spec, until_s=1000.0 + 1800) == pytest.approx(55.0)
    assert cost_usd(inventory, spec, until_s=0.0) == 0
    assert math.isnan(cost_usd(inventory, {"members": [{}]}, until_s=5000.0))
    assert math.isnan(cost_usd(replace(inventory, usd_per_hour=None), spec, until_s=5000.0))

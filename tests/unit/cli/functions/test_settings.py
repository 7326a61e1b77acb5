"""What `@app.function` takes, and what it refuses before anything is started."""

from __future__ import annotations

from typing import Any

import clusterctl
import pytest
from clusterctl.functions.app import refuse_within_a_job
from clusterctl.functions.calling import chosen_start, registry_login
from clusterctl.functions.settings import NOT_BUILT, Arguments, FunctionSettings, function_settings
from clusterctl.on_node.function import call
from clusterctl.on_node.job.launchers import PLAIN, TORCHRUN
from clusterctl_infra.errors import ConfigError, UsageError


def settings(**arguments: Any) -> FunctionSettings:
    return function_settings(Arguments(cluster="train", **arguments), is_on_host=False)


def refused(**settings: Any) -> str:
    with pytest.raises(UsageError) as e:
        clusterctl.App("test").function(**settings)
    return e.value.message


@pytest.mark.parametrize("name", NOT_BUILT)
def test_an_argument_that_is_not_built_is_refused_by_its_name(name: str) -> None:
    assert refused(cluster="train", **{name: 1}) == f"{name}= is not built yet"


def test_an_argument_that_nobody_knows_is_a_type_error_with_the_nearest_one() -> None:
    misspelt: Any = {"num_instance": 2}
    of_app: Any = {"region": "us-east-1"}
    with pytest.raises(TypeError, match=r"num_instance'.*num_instances"):
        clusterctl.App("test").function(**misspelt)
    with pytest.raises(UsageError, match="region= is an argument of App"):
        clusterctl.App("test").function(**of_app)
    with pytest.raises(TypeError, match=r"regoin'.*region"):
        clusterctl.App("test", regoin="us-east-1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"requirements": "einops"}, "write a list, as ['numpy==2.1', 'einops']"),
        ({"requirements": ["einops", " "]}, "write a list"),
        ({"requirements": ["a\nb"]}, "each requirement as a text of its own"),
        ({"cluster": None, "image": "ubunto-22.04"}, "(did you mean ubuntu-22.04?)"),
        ({"cluster": ""}, "cluster='' is no name"),
        ({"cluster": None, "max_price_per_hour": 0}, "max_price_per_hour=0: US dollars"),
        ({"cluster": None, "priority": "low"}, "priority='low' is not built yet"),
        ({"num_instances": 0}, "num_instances=0"),
        (
            {"registry_secret": "NGC"},
            "registry_secret='NGC' is for the registry of a container's image, and image=None",
        ),
        ({"gpu": ":::"}, "gpu=':::'"),
        ({"distributed_mode": "off"}, "distributed_mode='off'"),
        ({"max_run_time_hours": 0}, "max_run_time_hours=0"),
        ({"environment": {"A": "b\0c"}}, "environment['A']: a value has no NUL character"),
        ({"environment": {"A": "b" * 131_072}}, "environment['A']: Linux has room for 128 KiB in a variable"),
        ({"environment": {"A-B": "c"}}, "'A-B', which is not a valid variable name"),
        ({"environment": {"A": 1}}, "environment['A'] is 1"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_value(settings: dict[str, Any], message: str) -> None:
    assert message in refused(**{"cluster": "train", **settings})


def test_map_and_a_call_within_a_job_are_refused() -> None:
    @clusterctl.App("test").function(cluster="train")
    def double(number: int) -> int:
        return number * 2

    assert double.local(2) == 4
    with pytest.raises(UsageError, match="not built yet"):
        double.map([1])
    with pytest.raises(UsageError, match="within the job first"):
        refuse_within_a_job({"CLUSTERCTL_JOB": "first"}, "double")


def test_ranks_are_started_by_torchrun_where_there_is_torch_and_once_per_node_where_that_is_wanted() -> None:
    own = call.python_version()
    torch = {"train-0": {"python": own, "has_torch": True}}
    none = {"train-1": {"python": own, "has_torch": False}}
    launch, nproc = chosen_start(torch, "f", settings(), gpus=8)
    assert (launch.launcher, nproc) == (TORCHRUN, "auto")
    # With requirements a function has an environment of its own; whether torch will be in it is not known yet.
    for found, wanted in ((none, settings()), (torch, settings(requirements=["einops"]))):
        launch, nproc = chosen_start(found, "f", wanted, gpus=8)
        assert (launch.launcher, nproc) == (PLAIN, "8")
    launch, nproc = chosen_start({}, "f", settings(image="python:3.12"), gpus=8)
    assert (launch.launcher, nproc) == (TORCHRUN, "auto")
    launch, nproc = chosen_start(torch, "f", settings(distributed_mode="manual"), gpus=8)
    assert (launch.launcher, nproc) == (PLAIN, "1")
    with pytest.raises(ConfigError, match="only some of the nodes have torch"):
        chosen_start({**torch, **none}, "f", settings(), gpus=8)
    with pytest.raises(ConfigError, match="other versions cannot read it") as e:
        chosen_start({"train-0": {"python": "2.7", "has_torch": True}}, "f", settings(), gpus=8)
    assert e.value.problems == ("train-0: python3 is 2.7",)


def test_a_registrys_password_is_known_before_a_cluster_costs_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    image: Any = {"image": "nvcr.io/nvidia/pytorch:25.06-py3", "registry_secret": "NGC_LOGIN"}
    monkeypatch.delenv("NGC_LOGIN", raising=False)
    function = clusterctl.App("test", region="us-west-2", access="private").function(**image)(len)
    with pytest.raises(UsageError, match="registry_secret=NGC_LOGIN: not in this computer's environment"):
        function.remote("abc")
    monkeypatch.setenv("NGC_LOGIN", "$oauthtoken:key-1")
    assert registry_login(settings(**image)) == "$oauthtoken:key-1"
    assert registry_login(function_settings(Arguments(**image), is_on_host=True)) == ""

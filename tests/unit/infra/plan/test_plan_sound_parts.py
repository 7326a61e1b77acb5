"""All problems of a cluster.yaml are reported at once, as far as a plan can be made without the broken parts."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path

import pytest
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.plan.problems import RULES
from clusterctl_infra.plan.sound_parts import NEEDS, problems_of_sound_parts

from tests.unit.infra.plan.plan_cases import BORN, CATALOG

ABOUT_A_LIVING_CLUSTER = {"zone", "region", "caps.runtime"}
ABOUT_WHAT_WAS_LOOKED_UP = {"nodes", "network.adopt.node_subnet_id"}
SOUND = """\
name: train
region: us-west-2
nodes: 4
instance_type: p5.48xlarge
access: {mode: public, ssh_from: [203.0.113.7/32]}
caps: {price_usd_per_hour: 60}
scripts: []
"""
MORE_PROBLEMS = partial(problems_of_sound_parts, catalog=CATALOG, now=BORN)


def problem_paths(folder: Path, text: str) -> list[str]:
    """The path of each problem, in the order of the report."""
    path = folder / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_cluster(path, more_problems=MORE_PROBLEMS)
    return [re.sub(r"^ *(line \d+ +)?", "", line).split(": ")[0] for line in caught.value.problems]


def changed(**lines: str) -> str:
    """The sound text with these keys' lines instead of its own; keys that it does not have are added."""
    kept = [line for line in SOUND.splitlines() if line.split(":")[0] not in lines]
    return "\n".join([*kept, *(f"{key}: {value}" for key, value in lines.items()), ""])


def test_model_scripts_caps_and_plan_are_told_together(tmp_path: Path) -> None:
    text = changed(
        nodes="four",
        placemnt="cluster",
        access="{mode: public}",
        caps="{price_usd_per_hour: 1, runtime: soon}",
        scripts="[gone.sh]",
    )
    assert sorted(problem_paths(tmp_path, text)) == [
        "access.ssh_from",
        "caps.price_usd_per_hour",
        "caps.runtime",
        "nodes",
        "placemnt",
        "scripts[0]",
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"scripts": "[gone.sh]", "access": "{mode: public}"}, ["access.ssh_from", "scripts[0]"]),
        ({"instance_type": "p5.nope", "caps": "{price_usd_per_hour: 1}"}, ["instance_type"]),
        ({"instance_type": "p5.nope", "access": "{mode: public}"}, ["access.ssh_from", "instance_type"]),
        ({"access": "{mode: public, ssh_from: [here]}"}, ["access.ssh_from[0]"]),
        ({"access": "{mode: public, ssh_form: [203.0.113.7/32]}"}, ["access.ssh_form"]),
        ({"region": "mars", "caps": "{price_usd_per_hour: 1}"}, ["region"]),
        ({"nodes": "0", "caps": "{price_usd_per_hour: 1}"}, ["caps.price_usd_per_hour", "nodes"]),
        ({"nodes": "0", "caps": "{total_usd_per_hour: 1}"}, ["nodes"]),
        ({"storage": "5", "caps": "{total_usd_per_hour: 1}"}, ["storage"]),
    ],
    ids=[
        "a script and the plan",
        "no price without a type",
        "a rule that asks for no type",
        "a value that is wrong is not missing too",
        "neither is a key that is written wrongly",
        "no price without a region",
        "a price for each node without a count",
        "no price for all without a count",
        "no price for all without the storage",
    ],
)
def test_nothing_is_told_that_follows_from_another_problem(
    tmp_path: Path, lines: dict[str, str], expected: list[str]
) -> None:
    assert sorted(problem_paths(tmp_path, changed(**lines))) == expected


def test_problems_of_the_plan_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(changed(nodes="four", caps="{price_usd_per_hour: 1}"))
    with pytest.raises(ConfigError) as caught:
        load_cluster(path, more_problems=MORE_PROBLEMS)
    assert [line.split(":")[0] for line in caught.value.problems] == [
        "  line 6   nodes",
        "  line 7   caps.price_usd_per_hour",
    ]


def test_a_sound_file_is_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(SOUND)
    assert load_cluster(path, more_problems=MORE_PROBLEMS).nodes == 4


def test_every_error_of_a_rule_has_its_needs_or_is_about_a_living_cluster() -> None:
    modules = {module for rule in RULES if (module := inspect.getmodule(rule)) is not None}
    source = "".join(inspect.getsource(module) for module in modules)
    literal = set(re.findall(r"error\(\s*\"([^\"]*)\"", source)) | set(re.findall(r"path = \"([^\"]*)\"", source))
    named = literal | set(re.findall(r"path = case.plan.price, \"([^\"]*)\"", source))
    assert named - ABOUT_A_LIVING_CLUSTER - ABOUT_WHAT_WAS_LOOKED_UP <= set(NEEDS)
    assert set(NEEDS) <= named | {"caps.total_usd_per_hour"}

"""The Cluster component in a program of somebody else's, in a folder of theirs, against the stand-in for AWS."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import key_service
from tests.integration.rehearsed import BIN, PLUGINS, Done, run

PROGRAM = '''
"""A cluster beside a team's other resources: the configuration comes from Python."""

import pulumi
from clusterctl_infra.components.cluster import Cluster, ClusterArgs
from clusterctl_infra.config.model import ClusterConfig

settings = pulumi.Config("team")
config = ClusterConfig.model_validate(
    {
        "name": "borrowed",
        "region": "us-west-2",
        "nodes": settings.require_int("nodes"),
        "instance_type": "p5.48xlarge",
        "access": {"mode": "private"},
        "owner": "team",
        "caps": {"price_usd_per_hour": settings.get_float("cap")},
    }
)
cluster = Cluster("research", ClusterArgs(config=config))
pulumi.export("inventory", cluster.inventory)
'''


class Program:
    """The program's folder, and the engine on it."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env

    def pulumi(self, *arguments: str) -> Done:
        """How the engine ended."""
        return run([str(BIN / "pulumi"), *arguments], env=self.env, cwd=self.folder, timeout_s=180)

    def ok(self, *arguments: str) -> str:
        """What the engine printed; any end but a good one fails the test."""
        done = self.pulumi(*arguments)
        assert done.exit_code == 0, done.text
        return done.stdout

    def instance_ids(self) -> dict[str, str]:
        """Node → instance id, from what the stack exports."""
        inventory = json.loads(self.ok("stack", "output", "inventory", "--json"))
        return {node["name"]: node["instance_id"] for node in inventory["nodes"]}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program; at the end its resources and its region are gone."""
    folder, state = tmp_path / "their program", tmp_path / "state"
    folder.mkdir()
    state.mkdir()
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "rehearsal.yaml").write_text("machines: none\n")
    plugins = "".join(f"    - name: {name}\n      path: {path}\n" for name, path in PLUGINS)
    (folder / "Pulumi.yaml").write_text(f"name: theirs\nruntime: python\nplugins:\n  providers:\n{plugins}")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_"))}
    env = {
        **kept,
        "CLUSTERCTL_HOME": str(tmp_path / "home"),
        "PULUMI_HOME": str(tmp_path / "pulumi-home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        **key_service.variables(),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }
    made = Program(folder, env)
    made.ok("stack", "init", "dev", "--secrets-provider", key_service.PROVIDER)
    made.ok("config", "set", "team:nodes", "2")
    yield made
    made.pulumi("destroy", "--yes", "--skip-preview")
    run([str(BIN / "python"), "-m", "clusterctl_rehearsal", "region", "stop"], env=env, cwd=folder, timeout_s=60)


def test_it_works_from_any_folder_and_changes_only_what_was_asked(program: Program) -> None:
    program.ok("preview")
    program.ok("up", "--yes", "--skip-preview")
    first = program.instance_ids()
    assert list(first) == ["borrowed-0", "borrowed-1"]
    program.ok("preview", "--expect-no-changes")

    program.ok("config", "set", "team:nodes", "3")
    program.ok("up", "--yes", "--skip-preview")
    grown = program.instance_ids()
    assert {name: grown[name] for name in first} == first

    urn = (
        "urn:pulumi:dev::theirs::clusterctl:infra:Cluster$clusterctl:infra:Nodes$aws:ec2/instance:Instance::research-1"
    )
    program.ok("up", "--yes", "--skip-preview", "--replace", urn)
    replaced = program.instance_ids()
    assert [name for name in grown if replaced[name] != grown[name]] == ["borrowed-1"]
    program.ok("preview", "--expect-no-changes")

    program.ok("refresh", "--yes", "--skip-preview")
    program.ok("preview", "--expect-no-changes")


def test_plain_pulumi_up_cannot_pass_a_cap_by(program: Program) -> None:
    program.ok("config", "set", "team:cap", "10")
    done = program.pulumi("up", "--yes", "--skip-preview")
    assert done.exit_code != 0
    assert "a node of p5.48xlarge costs $55.04 an hour, the cap is $10.00" in done.text
    assert "Traceback" not in done.text
    deployment = json.loads(program.ok("stack", "export"))["deployment"]
    assert [row["type"] for row in deployment.get("resources", []) if row["type"] != "pulumi:pulumi:Stack"] == []

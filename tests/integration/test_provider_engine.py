"""Our own provider under the real engine: made, changed in place, never replaced, gone without a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # parsed JSON

import pytest

from tests.integration import key_service
from tests.integration.rehearsed import BIN, ROOT, Done, run, wait_until

PROGRAM = '''
"""Identity, Inventory and Membership, with the machines' ids from the stack's config."""

import pulumi
from clusterctl_infra.components.own_resources import IdentityResource, InventoryResource, MembershipResource

config = pulumi.Config("own")
ids = (config.get("ids") or "i-0,i-1").split(",")
identity = IdentityResource(
    "t-identity",
    name="t",
    owner="ada",
    image_spec="dlami",
    image_candidate=config.get("image") or "ami-0123456789abcdef0",
    zone_candidate="us-west-2b",
    run=config.get_int("run") or 1,
)
inventory = pulumi.Output.all(identity.cluster_id, identity.run).apply(
    lambda facts: {
        "version": 1,
        "name": "t",
        "cluster": "t",
        "cluster_id": facts[0],
        "run": int(facts[1]),
        "rehearsal": False,
        "ssh": {"user": "ubuntu", "key_file": None, "proxy_command": None},
        "nodes": [{"slot": slot, "instance_id": None, "public_ip": None} for slot in range(len(ids))],
    }
)
written = InventoryResource("t-inventory", inventory=inventory, login_key=identity.seed)
MembershipResource(
    "t-membership",
    cluster="t",
    cluster_id=identity.cluster_id,
    run=identity.run,
    started_at=identity.started_at,
    deadline="2040-01-01T00:00:00+00:00",
    planned_at="2039-01-01T00:00:00+00:00",
    rates={
        "node_price_usd_per_hour": 1.5,
        "disks_usd_per_hour": 0.0,
        "addresses_usd_per_hour": 0.0,
        "gateway_usd_per_hour": 0.0,
        "storage_usd_per_hour": 0.0,
    },
    members=[{"slot": slot, "name": f"t-{slot}", "instance_id": id, "public_ip": None} for slot, id in enumerate(ids)],
    opts=pulumi.ResourceOptions(depends_on=[written]),
)
pulumi.export("seed", identity.seed)
'''


@dataclass(frozen=True, kw_only=True)
class OwnStack:
    """A stack of our own resources alone, and the engine on it."""

    folder: Path
    env: dict[str, str]

    def pulumi(self, *arguments: str) -> Done:
        """How the engine ended."""
        return run([str(BIN / "pulumi"), *arguments], env=self.env, cwd=self.folder, timeout_s=120)

    def up(self, **config: str) -> dict[str, int]:
        """What `pulumi up` did with these config values: operation → how many resources."""
        for key, value in config.items():
            assert self.pulumi("config", "set", f"own:{key}", value).exit_code == 0
        done = self.pulumi("up", "--yes", "--skip-preview", "--json")
        assert done.exit_code == 0, done.text
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        (summary,) = [event["summaryEvent"] for event in events if "summaryEvent" in event]
        changes: dict[str, int] = summary["resourceChanges"]
        return changes

    def resources(self) -> dict[str, dict[str, Any]]:
        """Last part of the type → the resource in the state."""
        deployment = json.loads(self.pulumi("stack", "export").stdout)["deployment"]
        return {row["type"].rpartition(":")[2]: row for row in deployment.get("resources", [])}

    def home_file(self, name: str) -> Path:
        """A file under the person's home."""
        return Path(self.env["CLUSTERCTL_HOME"]) / name


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[OwnStack]:
    """The stack, destroyed at the end."""
    folder, state = tmp_path / "own", tmp_path / "state"
    folder.mkdir()
    state.mkdir()
    (folder / "__main__.py").write_text(PROGRAM)
    plugin = f"    - name: clusterctl\n      path: {ROOT / 'infra' / 'plugin'}\n"
    (folder / "Pulumi.yaml").write_text(f"name: own\nruntime: python\nplugins:\n  providers:\n{plugin}")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_"))}
    env = {
        **kept,
        "CLUSTERCTL_HOME": str(tmp_path / "home"),
        "PULUMI_HOME": str(tmp_path / "pulumi-home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        **key_service.variables(),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }
    stack = OwnStack(folder=folder, env=env)
    assert stack.pulumi("stack", "init", "dev", "--secrets-provider", key_service.PROVIDER).exit_code == 0
    yield stack
    stack.pulumi("destroy", "--yes", "--skip-preview")


def test_our_resources_live_from_birth_to_end(own_stack: OwnStack) -> None:
    assert own_stack.up() == {"create": 4}
    born = own_stack.resources()
    assert own_stack.up() == {"same": 4}

    assert own_stack.up(image="ami-0fffffffffffffff0") == {"same": 4}, "a newer image is nobody's wish"
    assert own_stack.up(ids="i-0,i-9") == {"same": 3, "update": 1}
    members = own_stack.resources()["Membership"]["outputs"]
    assert members["generation"] == 2
    assert [(row["instance_id"], row["ended_at"] is None) for row in members["ledger"]] == [
        ("i-0", True),
        ("i-1", False),
        ("i-9", True),
    ]
    file = json.loads(own_stack.home_file("inventory/t.json").read_text())
    assert [node["instance_id"] for node in file["nodes"]] == ["i-0", "i-9"]
    assert (file["generation"], file["stack_dir"], file["stack_name"]) == (2, str(own_stack.folder), "dev")

    assert own_stack.up(run="2") == {"same": 1, "update": 3}
    again = own_stack.resources()["Identity"]["outputs"]
    assert again["cluster_id"] == born["Identity"]["outputs"]["cluster_id"]
    assert again["run"] == 2

    cluster_id = again["cluster_id"]
    assert own_stack.pulumi("destroy", "--yes", "--skip-preview").exit_code == 0
    left = {path.name for path in own_stack.home_file(".").rglob("*") if path.is_file()}
    assert left == {f"{cluster_id}.jsonl", ".lock"}, "only the account outlives the stack"


def test_the_seed_is_secret_a_lost_inventory_comes_back_and_a_refresh_changes_nothing(own_stack: OwnStack) -> None:
    own_stack.up()
    the_seed_is_nowhere_in_the_clear(own_stack)
    a_lost_inventory_comes_back_with_the_next_up(own_stack)
    a_refresh_changes_nothing(own_stack)


def the_seed_is_nowhere_in_the_clear(own_stack: OwnStack) -> None:
    seed = json.loads(own_stack.pulumi("stack", "output", "--show-secrets", "--json").stdout)["seed"]
    assert len(bytes.fromhex(seed)) == 32
    state = Path(own_stack.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    texts = [path.read_text() for path in state.rglob("*.json*")]
    assert texts
    assert not [text for text in texts if seed in text]
    assert "ciphertext" in own_stack.resources()["Identity"]["outputs"]["seed"]


def a_lost_inventory_comes_back_with_the_next_up(own_stack: OwnStack) -> None:
    file = own_stack.home_file("inventory/t.json")
    before = file.read_text()
    file.unlink()
    assert own_stack.up() == {"same": 2, "update": 2}
    assert file.read_text() == before


def a_refresh_changes_nothing(own_stack: OwnStack) -> None:
    assert own_stack.pulumi("refresh", "--yes", "--skip-preview").exit_code == 0
    assert own_stack.up() == {"same": 4}


def test_a_wrong_input_is_named_and_nothing_is_made(own_stack: OwnStack) -> None:
    own_stack.pulumi("config", "set", "own:image", "debian")
    done = own_stack.pulumi("up", "--yes", "--skip-preview")
    assert done.exit_code != 0
    assert "'debian' is not an AMI id" in done.text
    assert not own_stack.home_file("inventory/t.json").exists()


def test_the_plugin_ends_with_the_engine_that_started_it() -> None:
    """The engine may be killed at any time; nothing may go on making things that nobody records."""
    script = f"{ROOT / 'infra' / 'plugin' / 'pulumi-resource-clusterctl'} 127.0.0.1:1 & echo $!; wait"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        plugin = int(parent.stdout.readline())
        assert int(parent.stdout.readline()) > 0, "the port"
        parent.send_signal(signal.SIGKILL)
        wait_until(lambda: not is_alive(plugin), what="the plugin is gone", timeout_s=30)


def is_alive(pid: int) -> bool:
    """Whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

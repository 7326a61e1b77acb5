"""A small Pulumi program on the stand-in: two nodes with what they need, the real engine, no part of our component."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterctl_rehearsal.region.record import Record

from tests.integration import key_service
from tests.integration.rehearsed import BIN, ROOT, Done, resources_of, run

PROGRAM = """
import base64
import pulumi
import pulumi_aws as aws

config = pulumi.Config("tiny")
nodes, word = config.require_int("nodes"), config.require("word")
name = pulumi.get_project()
tags = {"clusterctl:id": "0123456789ab", "clusterctl:name": name}
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags=tags)
subnet = aws.ec2.Subnet("nodes", vpc_id=vpc.id, cidr_block="10.0.0.0/20", availability_zone="us-west-2b", tags=tags)
group = aws.ec2.SecurityGroup("nodes", vpc_id=vpc.id, tags=tags)
place = aws.ec2.PlacementGroup("near", strategy="cluster", tags=tags)
reserved = aws.ec2.CapacityReservation(
    "reserved",
    availability_zone="us-west-2b",
    instance_count=nodes,
    instance_platform="Linux/UNIX",
    instance_type="p5.48xlarge",
    instance_match_criteria="targeted",
    placement_group_arn=place.arn,
    tags=tags,
)
for slot in range(nodes):
    secret = pulumi.Output.secret(base64.b64encode(f"#!/bin/sh\\necho {word} {slot}".encode()).decode())
    template = aws.ec2.LaunchTemplate(
        f"node-{slot}",
        image_id="ami-0123456789abcdef0",
        instance_type="p5.48xlarge",
        user_data=secret,
        instance_initiated_shutdown_behavior="terminate",
        metadata_options={"http_tokens": "required"},
        placement={"group_name": place.name},
        capacity_reservation_specification={"capacity_reservation_target": {"capacity_reservation_id": reserved.id}},
        network_interfaces=[
            {
                "device_index": 0,
                "network_card_index": 0,
                "subnet_id": subnet.id,
                "security_groups": [group.id],
                "private_ip_address": f"10.0.8.{slot}",
                "delete_on_termination": "true",
            }
        ],
        tag_specifications=[{"resource_type": "instance", "tags": {**tags, "clusterctl:slot": str(slot)}}],
        tags=tags,
    )
    node = aws.ec2.Instance(
        f"node-{slot}",
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
        opts=pulumi.ResourceOptions(delete_before_replace=True, ignore_changes=["launchTemplate.version"]),
    )
    pulumi.export(f"node-{slot}", {"id": node.id, "ip": node.private_ip})
"""


@dataclass(kw_only=True)
class TinyStack:
    """A stack folder, and the engine run on it."""

    name: str
    folder: Path
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, *, nodes: int = 2, word: str = "one", **settings: Any) -> None:
        """The program's configuration and rehearsal.yaml (JSON is YAML)."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "__main__.py").write_text(PROGRAM)
        plugin = {"name": "aws", "path": str(ROOT / "rehearsal" / "plugin")}
        project = {"name": self.name, "runtime": "python", "plugins": {"providers": [plugin]}}
        (self.folder / "Pulumi.yaml").write_text(json.dumps(project))
        values = {"aws:region": "us-west-2", "tiny:nodes": str(nodes), "tiny:word": word}
        settings_of_stack = {"secretsprovider": key_service.PROVIDER, "config": values}
        (self.folder / "Pulumi.dev.yaml").write_text(json.dumps(settings_of_stack))
        (self.folder / "rehearsal.yaml").write_text(json.dumps({"machines": "none", **settings}))

    def pulumi(self, *arguments: str, timeout_s: float = 120) -> Done:
        """The engine's end, whatever it was."""
        return run([str(BIN / "pulumi"), *arguments], env=self.env, cwd=self.folder, timeout_s=timeout_s)

    def up(self, *arguments: str) -> str:
        """`pulumi up`, which must succeed; its text."""
        done = self.pulumi("up", "--yes", "--skip-preview", *arguments)
        assert done.exit_code == 0, done.text
        return done.text

    def nodes(self) -> dict[str, dict[str, str]]:
        """Name → id and address, as the stack exports them."""
        rows = json.loads(self.pulumi("stack", "output", "--json").stdout)
        return {name: row for name, row in rows.items() if name.startswith("node-")}

    def rehearse(self, *arguments: str) -> Done:
        """A verb of the rehearsal."""
        argv = [sys.executable, "-m", "clusterctl_rehearsal", *arguments]
        return run(argv, env=self.env, cwd=self.folder, timeout_s=60)

    def resources(self) -> list[Record]:
        """What exists in the region."""
        return resources_of(self.env)


def tiny_stack(name: str, folder: Path) -> TinyStack:
    """A stack called `dev` with a state, an engine home and a region of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_"))}
    (folder / "state").mkdir()
    env = {
        **kept,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "CLUSTERCTL_HOME": str(folder / "home"),
        "PULUMI_HOME": str(folder / "pulumi"),
        "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
        **key_service.variables(),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_OPTION_COLOR": "never",
    }
    stack = TinyStack(name=name, folder=folder / "stack", home=folder / "home", env=env)
    stack.write()
    done = stack.pulumi("stack", "init", "dev", "--secrets-provider", key_service.PROVIDER)
    assert done.exit_code == 0, done.text
    return stack

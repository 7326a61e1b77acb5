"""What examples/reap gives people is what the program takes, and its policies are what the program calls."""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any  # parsed JSON and YAML

import pytest
import yaml
from clusterctl.cloud import (
    deadline_resources,
    machine_resources,
    network_resources,
    permission_resources,
    spot_history,
    storage_resources,
)
from clusterctl.commands.reap import command
from clusterctl.reap import search
from clusterctl_infra.names import id_in_name

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "reap"
SERVICES = {
    "cloudwatch": "cloudwatch",
    "ec2": "ec2",
    "efs": "elasticfilesystem",
    "fsx": "fsx",
    "iam": "iam",
    "scheduler": "scheduler",
    "sfn": "states",
}
NOT_CALLS = ("get_paginator", "meta", "exceptions")


def text(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


def commands() -> dict[str, list[str]]:
    """Where a command line stands → its words behind `clusterctl reap`."""
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    unit.read_string(text("clusterctl-reap.service"))
    steps = yaml.safe_load(text("github-workflow.yml"))["jobs"]["reap"]["steps"]
    lines = {
        "service": unit["Service"]["ExecStart"],
        "crontab": text("crontab").splitlines()[-1],
        "workflow": steps[-1]["run"],
    }
    return {name: shlex.split(line.partition("clusterctl reap")[2]) for name, line in lines.items()}


@pytest.mark.parametrize("where", ["service", "crontab", "workflow"])
def test_the_command_line_is_one_that_the_program_takes(where: str) -> None:
    context = command.make_context("reap", commands()[where])
    asked = context.params
    assert (asked["all_regions"], asked["anyones"], asked["yes"], asked["dry_run"]) == (True, True, True, False)
    assert not asked["data"]


def test_the_workflow_takes_a_role_by_openid_connect_and_keeps_no_secret() -> None:
    workflow: dict[Any, Any] = yaml.safe_load(text("github-workflow.yml"))
    assert workflow[True]["schedule"] == [{"cron": "17 * * * *"}]  # YAML 1.1 reads `on` as true
    assert workflow["permissions"]["id-token"] == "write"
    assert "secrets." not in text("github-workflow.yml")
    steps = workflow["jobs"]["reap"]["steps"]
    role = next(step["with"]["role-to-assume"] for step in steps if "role-to-assume" in step.get("with", {}))
    assert not role.rpartition("/")[2].startswith("clusterctl-"), "the policy would let it end itself"
    trust = json.loads(text("trust.json"))["Statement"][0]
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"


def test_the_policies_name_exactly_what_the_program_calls() -> None:
    modules = (
        machine_resources,
        storage_resources,
        network_resources,
        deadline_resources,
        permission_resources,
        search,
        spot_history,
    )
    called = {action for module in modules for action in calls_in(Path(str(module.__file__)).read_text())}
    assert called == granted("policy.json") | granted("policy-data.json")


def test_a_scheduler_cannot_delete_data() -> None:
    # What EFS asks of whoever ends a mount target, on an interface of its own ("DeleteMountTarget"; 2026-11-22).
    interface = "ec2:DeleteNetworkInterface"
    assert granted("policy.json") & granted("policy-data.json") == {interface}
    assert granted("policy-data.json") == {
        *("ec2:DeleteVolume", "fsx:DeleteDataRepositoryAssociation", "fsx:DeleteFileSystem", interface),
        *("elasticfilesystem:DeleteFileSystem", "elasticfilesystem:DeleteMountTarget"),
    }


def test_what_is_ended_by_name_has_a_name_that_we_give() -> None:
    assert id_in_name("clusterctl-0123456789ab-deadline") == "0123456789ab"
    assert id_in_name("clusterctl-0123456789ab") == "0123456789ab"
    for other in ("clusterctl-reaper", "my-clusterctl-0123456789ab", "clusterctl-0123456789abcd", "0123456789ab"):
        assert id_in_name(other) is None


def granted(name: str) -> set[str]:
    actions = [row["Action"] for row in json.loads(text(name))["Statement"]]
    return {action for value in actions for action in ([value] if isinstance(value, str) else value)}


def calls_in(source: str) -> set[str]:
    """The IAM actions of all calls of AWS in a module: `clients.ec2.delete_vpc(…)`, `….get_paginator("…")`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute):
            continue
        service = service_of(node.value)
        if service is not None and node.attr not in NOT_CALLS:
            found.add(f"{service}:{action(node.attr)}")
    for service, operation in re.findall(r'clients\.(\w+)\.get_paginator\("(\w+)"\)', source):
        found.add(f"{SERVICES[service]}:{action(operation)}")
    return found


def service_of(node: ast.expr) -> str | None:
    """The service of `clients.ec2`, or of the local name `iam` that stands for `clients.iam`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "clients":
        return SERVICES.get(node.attr)
    return "iam" if isinstance(node, ast.Name) and node.id == "iam" else None


def action(operation: str) -> str:
    """`delete_vpc_endpoints` is `DeleteVpcEndpoints`."""
    return "".join(part.capitalize() for part in operation.split("_"))

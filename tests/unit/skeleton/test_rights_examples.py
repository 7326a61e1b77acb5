"""The rights in examples/rights are those that the program and the AWS provider use, and no others."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
import yaml
from clusterctl_infra.names import alarm_name, guard_name

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "rights"
POLICIES = ("policy.json", "policy-storage.json")
MANAGED_POLICY_CHARACTERS = 6144
"""Without white space (IAM and STS quotas; 2026-11-22)."""
SERVICES = {
    "cloudwatch": "cloudwatch",
    "ec2": "ec2",
    "efs": "elasticfilesystem",
    "fsx": "fsx",
    "iam": "iam",
    "pricing": "pricing",
    "scheduler": "scheduler",
    "service_quotas": "servicequotas",
    "sfn": "states",
    "sts": "sts",
}
A_CLUSTERS_TAG = {"Null": {"aws:ResourceTag/clusterctl:id": "false"}}
NO_CALLS = ("get_paginator", "meta", "exceptions")
NEEDS_NO_RIGHT = {"sts:GetCallerIdentity"}
BESIDE_CALLS = {"ssm:StartSession", "ssm:TerminateSession", "ssm:ResumeSession", "ssmmessages:OpenDataChannel"}
"""`aws ssm start-session`, which ssh starts where the nodes are private (Systems Manager user guide, "Quickstart
default IAM policies for Session Manager" and "Additional sample IAM policies", example 4; 2026-11-22)."""
READS = re.compile(r"\w+:(Describe|Get|List|Validate)\w+")
ENDS = re.compile(r"(Delete|Terminate|Cancel|Release|Revoke|Detach|Disassociate)")
ENDED_WITHOUT_A_TAG = {
    "ec2:CancelSpotInstanceRequests",  # tried by a dry run on a request of nobody's
    "ec2:DeleteNetworkInterface",  # the one of a mount target
    "ec2:DeleteSubnetCidrReservation",
    "ec2:DeleteTags",
    "ec2:DisassociateAddress",  # of what may be gone already, with the tag
    "elasticfilesystem:DeleteMountTarget",  # also in a file system of somebody else's
}


def test_the_policies_grant_what_is_called_and_nothing_else() -> None:
    wanted = called_by_the_provider() | called_by_the_command_line() | BESIDE_CALLS
    granted = {action for name in POLICIES for row in statements(name) for action in actions(row)}
    assert granted == wanted - NEEDS_NO_RIGHT


def test_every_thing_that_the_program_makes_or_asks_for_has_its_rights() -> None:
    assert set(provider_rights()) == {*made_by_the_program(), "aws:s3/getBucket:getBucket"}


def test_every_call_by_botocore_is_seen() -> None:
    """A client under another name, or handed on, would call unseen by the first test."""
    kept = set()
    for path, tree in modules(ROOT / "cli" / "clusterctl"):
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        called = {id(node.value) for node in attributes}
        clients = [node for node in attributes if ast.unparse(node.value).split(".")[-1] == "clients"]
        kept |= {(path.name, node.attr) for node in clients if node.attr in SERVICES and id(node) not in called}
    assert kept == {("dry_runs.py", "ec2"), ("permission_resources.py", "iam"), ("spot_checks.py", "ec2")}


def test_storage_alone_needs_the_second_policy() -> None:
    services = {action.partition(":")[0] for row in statements("policy.json") for action in actions(row)}
    assert services.isdisjoint({"s3"})
    data = {action for row in statements("policy.json") for action in actions(row) if is_about_data(action)}
    assert data == {
        *("elasticfilesystem:DescribeFileSystems", "elasticfilesystem:DescribeMountTargets"),
        *("fsx:DescribeDataRepositoryAssociations", "fsx:DescribeFileSystems", "ec2:DescribeVolumes"),
    }, "what down and reap look for in every account"


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_fits_where_iam_keeps_it(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert len(re.sub(r"\s", "", text)) <= MANAGED_POLICY_CHARACTERS


def test_what_is_ended_carries_a_clusters_tag_or_name() -> None:
    rows = [row for name in POLICIES for row in statements(name)]
    assert {row["Effect"] for row in rows} == {"Allow"}
    free = [row for row in rows if row["Resource"] == "*" and row.get("Condition") != A_CLUSTERS_TAG]
    assert {
        action for row in free for action in actions(row) if ENDS.match(action.partition(":")[2])
    } == ENDED_WITHOUT_A_TAG


def test_what_goes_by_its_name_has_a_name_that_we_give() -> None:
    id = "0123456789ab"
    guard, alarm = guard_name(id), alarm_name(id, "ExecutionsFailed")
    for action, arn in {
        "iam:PutRolePolicy": f"arn:aws:iam::111122223333:role/{guard}",
        "iam:CreateRole": f"arn:aws:iam::111122223333:role/clusterctl-{id}",
        "iam:AddRoleToInstanceProfile": f"arn:aws:iam::111122223333:instance-profile/clusterctl-{id}",
        "iam:PassRole": f"arn:aws:iam::111122223333:role/{guard}",
        "states:StartExecution": f"arn:aws:states:us-west-2:111122223333:stateMachine:{guard}",
        "states:DescribeExecution": f"arn:aws:states:us-west-2:111122223333:execution:{guard}:0f3c",
        "scheduler:CreateSchedule": f"arn:aws:scheduler:us-west-2:111122223333:schedule/default/{guard}",
        "cloudwatch:PutMetricAlarm": f"arn:aws:cloudwatch:us-west-2:111122223333:alarm:{alarm}",
        "ssm:GetParameter": "arn:aws:ssm:us-west-2::parameter/aws/service/deeplearning/ami/x86_64/latest/ami-id",
    }.items():
        (row,) = (row for row in statements("policy.json") if action in actions(row))
        assert any(fnmatchcase(arn, pattern) for pattern in resources(row)), action


def test_no_role_but_a_clusters_can_be_made_changed_or_handed_on() -> None:
    for name in POLICIES:
        for row in statements(name):
            changes = {
                action
                for action in actions(row)
                if action.startswith("iam:") and "List" not in action and "Get" not in action
            }
            ours = re.compile(r":(role|instance-profile)/(clusterctl-|aws-service-role/)")
            if changes:
                assert all(ours.search(resource) for resource in resources(row)), row["Sid"]
            if "iam:PassRole" in changes:
                services = {"ec2.amazonaws.com", "scheduler.amazonaws.com", "states.amazonaws.com"}
                assert set(row["Condition"]["StringEquals"]["iam:PassedToService"]) == services


def is_about_data(action: str) -> bool:
    return action.startswith(("fsx:", "elasticfilesystem:")) or action.endswith(("Volume", "Volumes"))


def statements(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["Statement"]
    return rows


def actions(row: dict[str, Any]) -> set[str]:
    return {row["Action"]} if isinstance(row["Action"], str) else set(row["Action"])


def resources(row: dict[str, Any]) -> list[str]:
    return [row["Resource"]] if isinstance(row["Resource"], str) else list(row["Resource"])


def provider_rights() -> dict[str, list[str]]:
    text = Path(__file__).with_name("provider_rights.yaml").read_text(encoding="utf-8")
    rights: dict[str, list[str]] = yaml.safe_load(text)
    return rights


def called_by_the_provider() -> set[str]:
    return {action for row in provider_rights().values() for action in row}


def made_by_the_program() -> set[str]:
    """`ec2.Vpc` for `aws.ec2.Vpc(…)` and `aws.ec2.Vpc.get(…)`, and functions that ask: `ssm.get_parameter_output`."""
    found = set()
    for node in nodes_below(ROOT / "infra" / "clusterctl_infra" / "components"):
        if isinstance(node, ast.Call):
            words = ast.unparse(node.func).split(".")
            if words[0] == "aws" and words[1] != "Provider":
                found.add(".".join(word for word in words[1:] if word != "get"))
    return found


def called_by_the_command_line() -> set[str]:
    """The IAM actions of all calls by botocore: `clients.ec2.delete_vpc(…)`, `….ec2.get_paginator("…")`."""
    found = set()
    for node in nodes_below(ROOT / "cli" / "clusterctl"):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        words = ast.unparse(node.func.value).split(".")
        is_client = words[-2:-1] in (["clients"], ["self"]) or words in (["ec2"], ["iam"])  # three have local names
        service = SERVICES.get(words[-1]) if is_client else None
        if service is not None and node.func.attr == "get_paginator":
            found.add(f"{service}:{camel(str(ast.literal_eval(node.args[0])))}")
        elif service is not None and node.func.attr not in NO_CALLS:
            found.add(f"{service}:{camel(node.func.attr)}")
    return found


def nodes_below(folder: Path) -> Iterator[ast.AST]:
    for _, tree in modules(folder):
        yield from ast.walk(tree)


def modules(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def camel(operation: str) -> str:
    """`delete_vpc_endpoints` is `DeleteVpcEndpoints`."""
    return "".join(part.capitalize() for part in operation.split("_"))


def test_the_rights_to_look_change_nothing() -> None:
    rows = json.loads((EXAMPLES / "policy.json").read_text())["Statement"]
    (look,) = [row for row in rows if row["Sid"] == "Look"]
    assert [action for action in look["Action"] if not READS.fullmatch(action)] == []

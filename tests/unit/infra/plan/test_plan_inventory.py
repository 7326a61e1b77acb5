"""The inventory that a plan gives before any machine exists."""

from __future__ import annotations

import json
from typing import Any

from clusterctl_infra.outputs import REHEARSAL_ACCOUNT_ID, inventory_from_json, inventory_to_json
from clusterctl_infra.plan.inventory import inventory

from tests.unit.infra.plan.plan_cases import a_config, a_plan

ACCOUNT = "123456789012"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDF5Enku12zUwBW5ahhJptZaLxt91pQw1BKukbxF9+fA ada"


def test_the_stand_in_s_account_makes_it_a_rehearsal_reached_by_private_addresses() -> None:
    made = inventory(a_config(), a_plan(), account_id=REHEARSAL_ACCOUNT_ID)
    assert (made.name, made.cluster, made.rehearsal) == ("train", "train@rehearsal", True)
    assert (made.ssh.address, made.ssh.key_file) == ("private", "train@rehearsal/id_ed25519")


def test_on_aws_public_nodes_are_dialled_by_their_public_address() -> None:
    made = inventory(a_config(), a_plan(), account_id=ACCOUNT)
    assert (made.cluster, made.rehearsal, made.ssh.address) == ("train", False, "public")
    private = {"mode": "private"}
    assert inventory(a_config(access=private), a_plan(access=private), account_id=ACCOUNT).ssh.address == "private"


def test_on_aws_private_nodes_are_reached_through_session_manager() -> None:
    private = {"mode": "private"}
    made = inventory(a_config(access=private), a_plan(access=private), account_id=ACCOUNT)
    assert made.ssh.proxy_command == (
        *("aws", "ssm", "start-session", "--region", "us-west-2", "--target", "{instance_id}"),
        *("--document-name", "AWS-StartSSHSession", "--parameters", "portNumber={port}"),
    )


def test_a_bastion_is_reached_by_a_persons_own_ssh_settings() -> None:
    access = {"mode": "private", "bastion": "ada@bastion.example.com", "ssh_from": ["10.9.0.5/32"]}
    network = {"adopt": {"vpc_id": "vpc-0a1b2c3d", "node_subnet_id": "subnet-0a1b2c3d"}}
    config, planned = a_config(access=access, network=network), a_plan(access=access, network=network)
    made = inventory(config, planned, account_id=ACCOUNT)
    assert made.ssh.proxy_command == (
        *("ssh", "-W", "{host}:{port}", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "ada@bastion.example.com"),
    )


def test_neither_public_nor_rehearsed_nodes_need_a_command_from_the_plan() -> None:
    private = {"mode": "private"}
    assert inventory(a_config(), a_plan(), account_id=ACCOUNT).ssh.proxy_command is None
    rehearsed = inventory(a_config(access=private), a_plan(access=private), account_id=REHEARSAL_ACCOUNT_ID)
    assert rehearsed.ssh.proxy_command is None


def test_people_with_keys_of_their_own_get_no_key_file() -> None:
    access = {"mode": "public", "ssh_from": ["203.0.113.7/32"], "authorized_keys": [KEY]}
    made = inventory(a_config(access=access), a_plan(access=access), account_id=ACCOUNT)
    assert made.ssh.key_file is None
    assert made.ssh.public_keys == (KEY,)


def test_a_cluster_that_is_down_says_so() -> None:
    made = inventory(a_config(), a_plan(down=True), account_id=ACCOUNT)
    assert (made.run_nodes_down, made.nodes) == (True, ())


def test_the_inventory_survives_a_stack_s_outputs_which_leave_nulls_out() -> None:
    made = inventory(a_config(instance_type="m5.large"), a_plan(instance_type="m5.large"), account_id=ACCOUNT)
    rows = without_nulls(json.loads(json.dumps(inventory_to_json(made))))
    assert isinstance(rows, dict)
    assert inventory_from_json(rows, source="a test") == made


def without_nulls(value: object) -> object:
    """As the engine hands on what a program exports."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def test_workflow_storage_is_known_to_the_command_line_and_leaves_other_clusters_as_they_were() -> None:
    made = inventory(a_config(), a_plan(), account_id=ACCOUNT)
    assert "workflow_storage" not in inventory_to_json(made)
    storage = [{"mount": "/m", "s3": {"bucket": "models", "writable": True}}]
    given: dict[str, Any] = {"storage": storage, "workflow_storage": "s3://models/flows/"}
    known = inventory(a_config(**given), a_plan(**given), account_id=ACCOUNT)
    assert known.workflow_storage == "s3://models/flows"
    assert inventory_from_json(inventory_to_json(known), source="a test") == known

"""Boots that go wrong, by cloud-init, by the agent or by a step of it: the deadline holds in all of them."""

from __future__ import annotations

import time

import pytest
from clusterctl_rehearsal.machines.driver import MachineFile

from tests.integration.bootstrap.bootstrapped import Bootstrapped, iso, wait_until

SLOT = 1
FAILING = 3
WITHOUT_FABRIC = 4
REASON = "the fabric did not answer"
TIMERS = ("clusterctl-deadline.timer", "clusterctl-deadline-clock.timer")


@pytest.fixture(scope="module")
def machine(network: Bootstrapped) -> Bootstrapped:
    """Slot 1 becomes ready; slot 3 is made to fail; slot 4 has one EFA interface less than it must have."""
    fault = {"/var/lib/clusterctl/simulated-failure": MachineFile(content=f"{REASON}\n".encode())}
    network.boot(network.plan(FAILING, left_s=3600), fault)
    fewer = {"/var/lib/clusterctl/simulated-efa": MachineFile(content=b"31\n")}
    wanting = network.plan(WITHOUT_FABRIC, nodes=5, fabric="required", efa_interfaces=32, left_s=3600)
    network.boot(wanting, fewer)
    network.boot(network.plan(SLOT, left_s=3600))
    assert network.wait_until_settled(SLOT)["phase"] == "ready"
    return network


def test_a_bootstrap_that_fails_says_where_and_why_and_people_can_log_in(machine: Bootstrapped) -> None:
    status = machine.wait_until_settled(FAILING)
    assert status["phase"] == "failed"
    assert status["error"]["phase"] == "identity"
    assert REASON in status["error"]["message"]
    assert any(REASON in line for line in status["error"]["log"])
    assert machine.output(FAILING, "systemctl is-active clusterctl-node || true").strip() == "failed"
    assert_armed(machine, FAILING)


def test_a_required_fabric_that_is_not_all_there_fails_the_node_with_both_numbers(machine: Bootstrapped) -> None:
    status = machine.wait_until_settled(WITHOUT_FABRIC)
    assert (status["phase"], status["error"]["phase"]) == ("failed", "fabric")
    assert "31 of 32 (simulated)" in status["error"]["message"]
    assert [row["verdict"] for row in status["checks"]] == ["failed"]
    nccl = machine.output(WITHOUT_FABRIC, "cat /etc/clusterctl/nccl.env")
    assert "NCCL_NET='AWS Libfabric'\n" in nccl, "what runs there nevertheless does not fall back to TCP"


def test_a_bootstrap_that_failed_can_be_tried_again(machine: Bootstrapped) -> None:
    machine.output(FAILING, "sudo rm /var/lib/clusterctl/simulated-failure; sudo systemctl restart clusterctl-node")
    wait_until(lambda: machine.status(FAILING)["phase"] == "ready", lambda: str(machine.status(FAILING)), 30)
    assert machine.status(FAILING)["error"] is None


def test_an_agent_that_is_killed_begins_again(machine: Bootstrapped) -> None:
    """The drop-in holds each start back for a second, long enough to be hit."""
    slow = "[Service]\\nExecStart=\\nExecStart=/bin/sh -c 'sleep 1; exec /usr/local/bin/clusterctl-node boot'\\n"
    folder = "/run/systemd/system/clusterctl-node.service.d"
    machine.output(
        SLOT, f'sudo mkdir {folder}; printf "{slow}" | sudo tee {folder}/slow.conf; sudo systemctl daemon-reload'
    )
    machine.output(SLOT, "sudo rm /etc/clusterctl/status.json; sudo systemctl restart clusterctl-node")
    machine.output(SLOT, "sudo systemctl kill --signal=KILL clusterctl-node")
    wait_until(lambda: machine.status(SLOT)["phase"] == "ready", lambda: str(machine.status(SLOT)), 30)
    machine.output(SLOT, f"sudo rm -r {folder}; sudo systemctl daemon-reload")


def test_a_boot_without_cloud_init_is_guarded_by_what_the_first_one_kept(machine: Bootstrapped) -> None:
    deadline = iso(time.time() + 1800)
    assert machine.push(SLOT, generation=1, deadline=deadline).json["ok"]
    before = machine.status(SLOT)["boot_id"]
    machine.ssh(SLOT, "sudo touch /etc/cloud/cloud-init.disabled; sudo systemctl reboot")
    status = machine.wait_until_another_boot(SLOT, before)
    assert (status["phase"], status["deadline"], status["generation"]) == ("ready", deadline, 1)
    assert machine.output(SLOT, "systemctl is-active cloud-init || true").strip() == "inactive"
    assert machine.output(SLOT, "cat /run/clusterctl/imds") == "root\n"
    assert_armed(machine, SLOT)


def assert_armed(machine: Bootstrapped, slot: int) -> None:
    assert machine.output(slot, f"systemctl is-active {' '.join(TIMERS)}").split() == ["active", "active"]

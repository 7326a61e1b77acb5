"""The start barrier on machines: with the secret that cloud-init brought, and through a reboot of slot 0."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from clusterctl_bootstrap.cloud_config import AGENT_FOLDER

from tests.integration.bootstrap.bootstrapped import Bootstrapped, wait_until


class Waiting:
    """`clusterctl-node barrier` on one machine, over an SSH connection of its own, which ends with it."""

    def __init__(self, trio: Bootstrapped, slot: int, name: str) -> None:
        command = f"clusterctl-node barrier {name} --timeout 60s"
        self.child = subprocess.Popen(
            [*trio.ssh_argv(slot)[:-1], "-S", "none", trio.ssh_argv(slot)[-1], command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        out, err = self.child.communicate(timeout=90)
        return self.child.returncode, out, err


@pytest.fixture
def begun() -> Iterator[list[Waiting]]:
    """Sessions that end with the test."""
    sessions: list[Waiting] = []
    yield sessions
    for session in sessions:
        session.child.kill()
        session.child.communicate()


def guests_of(trio: Bootstrapped) -> int:
    """How many others are connected to the barrier on slot 0."""
    rows = trio.output(0, "ss -Htn state established '( sport >= :20000 and sport <= :27999 )'")
    return len(rows.splitlines())


def test_slot_0_may_reboot_while_the_others_wait(trio: Bootstrapped, begun: list[Waiting]) -> None:
    boot_id = trio.status(0)["boot_id"]
    begun += [Waiting(trio, slot, "start") for slot in (0, 1)]
    wait_until(lambda: guests_of(trio) == 1, lambda: f"{guests_of(trio)} guests", 20)
    trio.ssh(0, "sudo systemctl reboot")
    assert trio.wait_until_another_boot(0, boot_id)["phase"] == "ready"
    assert trio.output(0, "systemctl is-active clusterctl-watch") == "active\n", "what came with the membership stays"
    begun += [Waiting(trio, slot, "start") for slot in (0, 2)]
    ended = [session.ended() for session in begun[1:]]
    assert [code for code, _, _ in ended] == [0, 0, 0], ended
    assert {json.loads(printed)["barrier"] for _, printed, _ in ended} == {"start"}


def test_a_node_with_another_secret_believes_nothing_and_does_not_get_through(
    trio: Bootstrapped, begun: list[Waiting]
) -> None:
    begun.append(Waiting(trio, 0, "guarded"))
    trio.output(2, "cp /etc/clusterctl/barrier kept && echo another >/etc/clusterctl/barrier")
    unknown = "what answers there does not know the secret that this node knows"

    def refusal() -> str:
        refused = trio.ssh(2, "clusterctl-node barrier guarded --timeout 1s")
        assert refused.code == 1, refused
        return refused.err

    try:
        expected = f"barrier guarded: not met in time, missing: {trio.node(0)} ({unknown})\n"
        wait_until(lambda: refusal() == expected, refusal, 20)
    finally:
        trio.output(2, "cp kept /etc/clusterctl/barrier")


def test_who_may_not_read_the_secret_may_not_wait(trio: Bootstrapped) -> None:
    refused = trio.ssh(1, "sudo -u nobody clusterctl-node barrier start --timeout 1s")
    assert refused.code == 3
    assert "Permission denied" in refused.err


@pytest.mark.parametrize("verb", ["barrier start --timeout 1s", "apply"])
def test_a_node_without_a_membership_says_where_a_verb_comes_from(trio: Bootstrapped, verb: str) -> None:
    trio.output(1, f"cd {AGENT_FOLDER} && sudo mv later.py kept")
    try:
        answer = trio.ssh(1, f"clusterctl-node {verb}")
    finally:
        trio.output(1, f"cd {AGENT_FOLDER} && sudo mv kept later.py")
    name = verb.split()[0]
    assert (answer.code, answer.err) == (3, f"clusterctl-node: {name} comes with the membership: clusterctl up\n")

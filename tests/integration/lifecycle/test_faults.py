"""What breaks in the middle of a cluster's life, and what a person is told."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, alive, cgroups_of, namespaces, wait_until


def test_capacity_for_fewer_than_all_leaves_nothing_running(booted: Rehearsed) -> None:
    booted.write(machines="nspawn", settings={"capacity": {"p5.48xlarge": 1}})
    refused = booted.run("up", str(booted.folder))
    assert refused.exit_code == 1, refused.text
    assert refused.text.count("InsufficientInstanceCapacity") == 1, refused.text
    assert alive(booted.name) == []

    booted.write(machines="nspawn")
    booted.up()
    assert {row["state"] for row in booted.nodes().values()} == {"ready"}


def test_a_killed_machine_is_seen_and_its_slot_alone_remade(booted: Rehearsed) -> None:
    booted.up()
    ids, starts = booted.instance_ids(), booted.starts()
    victim, other = f"{booted.name}-1", f"{booted.name}-0"
    folder = cgroups_of(booted.name)
    assert folder is not None
    (folder / victim / "cgroup.kill").write_text("1")
    wait_until(lambda: alive(booted.name) == [other], what="the machine is gone", timeout_s=10)

    wait_until(lambda: booted.nodes()[victim]["state"] != "ready", what="status shows it", timeout_s=15)
    assert booted.nodes()[other]["state"] == "ready"

    booted.up()
    assert booted.instance_ids()[other] == ids[other]
    assert booted.instance_ids()[victim] != ids[victim]
    assert booted.starts()[other] == starts[other]
    assert {row["state"] for row in booted.nodes().values()} == {"ready"}


def test_replace_remakes_one_slot_with_its_name_and_address(booted: Rehearsed) -> None:
    booted.up()
    ids = booted.instance_ids()
    addresses = {name: row["private_ip"] for name, row in booted.nodes().items()}
    booted.ok("replace", "--node", "1", "--yes")
    replaced = booted.instance_ids()
    assert replaced[f"{booted.name}-0"] == ids[f"{booted.name}-0"]
    assert replaced[f"{booted.name}-1"] != ids[f"{booted.name}-1"]
    assert {name: row["private_ip"] for name, row in booted.nodes().items()} == addresses


def test_a_node_whose_bootstrap_fails_is_named_with_its_phase(booted: Rehearsed) -> None:
    booted.fault("fail-bootstrap", f"{booted.name}-1")
    done = booted.run("up", str(booted.folder))
    assert done.exit_code == 4, done.text
    assert f"{booted.name}-1" in done.text
    assert "simulated" in done.text
    assert booted.nodes()[f"{booted.name}-0"]["state"] == "ready"


def test_a_node_that_never_answers_is_waited_for_in_bounds(booted: Rehearsed) -> None:
    booted.up()
    booted.fault("freeze", f"{booted.name}-1")
    started = time.monotonic()
    nodes = booted.nodes()
    assert time.monotonic() - started < 30
    assert nodes[f"{booted.name}-0"]["state"] == "ready"
    assert nodes[f"{booted.name}-1"]["state"] != "ready"


def test_the_deadline_ends_the_machines_with_nobody_watching(booted: Rehearsed) -> None:
    booted.write(machines="nspawn", caps={"runtime": "45s"})
    booted.up()
    booted.ok("rehearse", "fault", "stop-region")
    wait_until(lambda: alive(booted.name) == [], what="all machines ended themselves", timeout_s=75)

    assert {row["state"] for row in booted.nodes().values()}.isdisjoint({"ready", "unknown"})
    refused = booted.run("up", str(booted.folder))
    assert refused.exit_code == 1, refused.text
    assert "deadline" in refused.text
    booted.down()
    assert namespaces(booted.name) == []


def test_a_reboot_keeps_the_deadline(booted: Rehearsed) -> None:
    booted.up()
    node = f"{booted.name}-1"
    asked = 'python3 -c \'import json; print(json.load(open("/etc/clusterctl/node.json"))["deadline"])\''
    before = booted.ok("ssh", "--node", "1", "--command", asked)
    start = booted.starts()[node]
    booted.run("ssh", "--node", "1", "sudo", "reboot")

    def is_back() -> bool:
        answered = booted.run("ssh", "--node", "1", "--connect-timeout", "3", "true").exit_code == 0
        return answered and booted.starts()[node] != start and booted.nodes()[node]["state"] == "ready"

    wait_until(is_back, what="the node is ready again", timeout_s=60)
    assert booted.ok("ssh", "--node", "1", "--command", asked) == before


def test_a_changed_host_key_is_refused(booted: Rehearsed) -> None:
    booted.up()
    changed = (
        "rm /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key; pkill -HUP -o sshd"
    )
    booted.run("ssh", "--node", "1", "sudo", "sh", "-c", changed)
    wait_until(
        lambda: booted.run("ssh", "--node", "1", "true").exit_code == 255, what="the new key is refused", timeout_s=20
    )
    refused = booted.run("ssh", "--node", "1", "true")
    assert "host key" in refused.text.lower()
    assert booted.run("ssh", "--node", "0", "true").exit_code == 0


def test_of_two_ups_at_once_the_second_names_the_first(booted: Rehearsed) -> None:
    with subprocess.Popen(
        [CLUSTERCTL, "up", str(booted.folder)],
        env=booted.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as first:
        runs = Path(booted.env["CLUSTERCTL_HOME"]) / "runs"
        wait_until(
            lambda: any(runs.glob("*.json")) or first.poll() is not None, what="the first has begun", timeout_s=30
        )
        second = booted.run("up", str(booted.folder))
        assert second.exit_code == 1, second.text
        assert str(first.pid) in second.text, second.text
        assert first.wait(timeout=120) == 0


def test_a_closed_pipe_does_not_wedge_the_next_up(recorded: Rehearsed) -> None:
    recorded.pulumi("stack", "select", "--create", "dev")
    subprocess.run(
        ["bash", "-c", "pulumi up --yes --skip-preview | head -1"],
        env=recorded.env,
        cwd=recorded.folder,
        timeout=120,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    recorded.up()
    assert len(set(recorded.instance_ids().values())) == 2

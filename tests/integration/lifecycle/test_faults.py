"""What breaks in the middle of a cluster's life, and what a person reads of it."""

from __future__ import annotations

import subprocess

from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, alive, namespaces, wait_until


def test_a_node_whose_bootstrap_fails_is_named_with_its_phase(booted: Rehearsed) -> None:
    booted.fault("fail-bootstrap", f"{booted.name}-1")
    done = booted.run_unshown("up", str(booted.folder), "--json")
    assert done.exit_code == 4, f"a node's trouble sets the exit code, although stdout cannot be written: {done.text}"
    assert f"{booted.name}-1" in done.text
    assert "simulated" in done.text
    assert booted.nodes()[f"{booted.name}-0"]["state"] == "ready"


def test_the_deadline_ends_the_machines_with_nobody_watching(booted: Rehearsed) -> None:
    booted.write(machines="nspawn", caps={"runtime": "60s"})
    booted.up()
    booted.ok("rehearse", "fault", "stop-region")
    wait_until(lambda: alive(booted.name) == [], what="all machines ended themselves", timeout_s=90)

    assert {row["state"] for row in booted.nodes().values()}.isdisjoint({"ready", "unknown"})
    refused = booted.run("up", str(booted.folder))
    assert refused.exit_code == 1, refused.text
    assert "deadline" in refused.text
    booted.down()
    assert namespaces(booted.name) == []


def test_of_two_ups_at_once_the_second_names_the_first(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"latency_ms": 100})
    with subprocess.Popen(
        [CLUSTERCTL, "up", str(recorded.folder)],
        env=recorded.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as first:
        runs = recorded.home / "runs"
        wait_until(
            lambda: any(runs.glob("*.json")) or first.poll() is not None, what="the first has begun", timeout_s=30
        )
        second = recorded.run("up", str(recorded.folder))
        assert second.exit_code == 1, second.text
        assert str(first.pid) in second.text, second.text
        assert first.wait(timeout=120) == 0


def test_a_closed_pipe_does_not_wedge_the_next_up(recorded: Rehearsed) -> None:
    recorded.keep_steps()  # SIGPIPE ends the engine half-way
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

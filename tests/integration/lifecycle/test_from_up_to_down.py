"""The main job, on booted machines: up, every rank works together, down, nothing left."""

from __future__ import annotations

from clusterctl_rehearsal.region.torch_share import IN_MACHINES

from tests.integration.rehearsed import ROOT, Rehearsed, alive, namespaces, wait_until


def test_a_cluster_comes_up_works_together_and_goes_without_a_trace(booted: Rehearsed) -> None:
    booted.up()
    assert {row["state"] for row in booted.nodes().values()} == {"ready"}

    checks = [check for row in booted.nodes().values() for check in row["checks"]]
    assert [(check["name"], check["verdict"]) for check in checks] == [("EFA interfaces", "simulated")] * 2
    assert {check["detail"] for check in checks} == {"32 of 32 (simulated)"}

    hostnames = booted.ok("ssh", "--node", "all", "hostname")
    assert f"{booted.name}-0" in hostnames
    assert f"{booted.name}-1" in hostnames

    smi = booted.run("ssh", "--node", "1", "nvidia-smi")
    assert smi.exit_code == 0
    assert "H100" in smi.stdout
    assert "simulated" in smi.stdout.lower()

    assert booted.ok("ssh", "--sudo", "--gather", "id", "-un").split()[-1] == "root"
    ended = booted.run("ssh", "--node", "0", "--sudo", "--timeout", "2s", "exec sleep 4321")
    assert "was ended" in ended.stderr
    wait_until(
        lambda: booted.ok("ssh", "--node", "0", "pgrep -f 'sleep 432[1]' || echo none") == "none\n",
        what="the command is ended on the node, too",
        timeout_s=30,
    )

    has_torch = booted.run("ssh", "--node", "0", "test", "-d", IN_MACHINES).exit_code == 0
    file = "job.yaml" if has_torch else "ring.yaml"
    job = booted.run("run", str(ROOT / "examples/all_reduce" / file), timeout_s=240)
    assert job.exit_code == 0, job.text
    assert job.stdout.count("sum 3, all ranks took part") == 2, job.text
    assert "[W" not in job.text, "warnings that mean nothing here"

    booted.down()
    assert alive(booted.name) == []
    assert namespaces(booted.name) == []
    again = booted.run("down", str(booted.folder))
    assert again.exit_code == 0, again.text


def test_plain_pulumi_up_makes_the_same_resources(booted: Rehearsed) -> None:
    assert booted.pulumi("stack", "select", "--create", "dev").exit_code == 0
    made = booted.pulumi("up", "--yes", "--skip-preview", "--parallel", "16")
    assert made.exit_code == 0, made.text
    assert alive(booted.name) == [f"{booted.name}-0", f"{booted.name}-1"]

    unchanged = booted.pulumi("preview", "--expect-no-changes")
    assert unchanged.exit_code == 0, unchanged.text

    booted.up()  # delivers the membership to the same machines
    assert {row["state"] for row in booted.nodes().values()} == {"ready"}
    gone = booted.pulumi("destroy", "--yes", "--skip-preview", "--parallel", "16")
    assert gone.exit_code == 0, gone.text
    assert alive(booted.name) == []

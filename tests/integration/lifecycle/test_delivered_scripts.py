"""Scripts that user-data has no room for: brought by `up` before the node is ready, and by nobody else."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess

from clusterctl.lifecycle.script_delivery import AWAITING

from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, wait_until

SCRIPTS = "/var/lib/clusterctl/scripts"


def large(text: str) -> str:
    """A script of more than 20 KB that cannot be compressed into user-data."""
    noise = random.Random(7)
    return "#!/bin/sh\n" + text + "".join(f"# {noise.randbytes(30).hex()}\n" for _ in range(320))


def write_setup(cluster: Rehearsed, text: str) -> None:
    """Writes setup.sh anew."""
    content = large(text)
    assert len(content) > 20_000
    (cluster.folder / "setup.sh").write_text(content)


def wait_for_phase(cluster: Rehearsed, phase: str) -> None:
    """Returns when both nodes are in it, by their own word and then by `status`."""
    nodes = [f"{cluster.name}-0", f"{cluster.name}-1"]
    in_it = dict.fromkeys(nodes, phase)
    wait_until(
        lambda: {node: cluster.agent_status(node).get("phase") for node in nodes} == in_it,
        what=f"both nodes are in the phase: {phase}",
        timeout_s=120,
    )
    wait_until(
        lambda: {name: row["phase"] for name, row in cluster.nodes().items()} == in_it,
        what="status says so",
        timeout_s=30,
    )


def on_each(cluster: Rehearsed, command: str) -> list[str]:
    """What the command prints on each node."""
    rows = [json.loads(line) for line in cluster.ok("ssh", "--node", "all", "--json", "--", command).splitlines()]
    return [row["stdout"] for row in rows if "stdout" in row]


def test_a_node_waits_for_its_scripts_until_up_brings_them_and_never_again(booted: Rehearsed) -> None:
    write_setup(booted, "echo first >>/root/ran\necho printed by setup\n")
    (booted.folder / "tune.sh").write_text("#!/bin/sh\necho tuned >>/root/ran\n")
    booted.write(machines="nspawn", scripts=["setup.sh", {"run": "tune.sh", "when": "boot"}])
    planned = booted.ok("plan", str(booted.folder))
    assert "setup.sh, tune.sh: no room in user-data; clusterctl up sends them to each node over SSH" in planned

    assert booted.pulumi("stack", "select", "--create", "dev").exit_code == 0
    made = booted.pulumi("up", "--yes", "--skip-preview")
    assert made.exit_code == 0, made.text
    wait_for_phase(booted, AWAITING)
    shown = booted.run("status").stdout
    assert AWAITING in shown
    assert "2 nodes have not been told the current list of nodes; next: clusterctl up" in shown

    booted.up()
    assert on_each(booted, "sudo cat /root/ran") == ["first\ntuned\n"] * 2
    kept = on_each(booted, f"sudo find {SCRIPTS} -printf '%u %m %f\\n' | sort")
    assert kept == ["root 700 scripts\nroot 700 setup.sh\nroot 700 tune.sh\n"] * 2
    assert "printed by setup" in booted.ok("logs", "setup.sh")

    second = f"{booted.name}-1"
    booted.fault("reboot", second)
    wait_until(
        lambda: booted.on_disk(second, "/root/ran") == "first\ntuned\ntuned\n",
        what="the boot script runs again",
        timeout_s=60,
    )
    wait_until(lambda: booted.agent_status(second).get("phase") == "ready", what="it is ready again", timeout_s=60)
    wait_until(lambda: booted.nodes()[second]["state"] == "ready", what="status says so", timeout_s=60)
    assert AWAITING not in booted.on_disk(second, "/etc/clusterctl/status.json")

    before = booted.instance_ids()
    booted.ok("replace", "--node", "1", "--yes")
    assert on_each(booted, "sudo cat /root/ran") == ["first\ntuned\n"] * 2
    write_setup(booted, "echo second >>/root/ran\n")
    changed = booted.run("up", str(booted.folder))
    assert changed.exit_code == 0, changed.text
    assert "scripts" in changed.text
    assert on_each(booted, "sudo cat /root/ran") == ["second\ntuned\n"] * 2
    assert set(booted.instance_ids().values()).isdisjoint(before.values())


def test_an_up_that_was_killed_is_gone_on_with_and_a_script_that_fails_is_named(booted: Rehearsed) -> None:
    booted.keep_steps()
    write_setup(booted, "echo looking for the tokenizer\nexit 3\n")
    booted.write(machines="nspawn", scripts=["setup.sh"])
    up = subprocess.Popen(
        [CLUSTERCTL, "up", str(booted.folder)],
        env=booted.env,
        cwd=booted.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: has_machine(booted), what="the engine makes a machine", timeout_s=90)
    finally:
        os.killpg(up.pid, signal.SIGKILL)
        up.wait()

    failed = booted.run("up", str(booted.folder))
    assert failed.exit_code == 4, failed.text
    for line in (f"{booted.name}-1: failed in scripts: setup.sh: exit 3 after ", "setup.sh: looking for the tokenizer"):
        assert line in failed.text

    write_setup(booted, "echo third >/root/ran\n")
    booted.up()
    assert on_each(booted, "sudo cat /root/ran") == ["third\n"] * 2


def has_machine(cluster: Rehearsed) -> bool:
    return any(row.token == "aws:ec2/instance:Instance" for row in cluster.resources())


def test_extend_brings_scripts_too_with_the_new_deadline(booted: Rehearsed) -> None:
    write_setup(booted, "echo extended >>/root/ran\n")
    booted.write(machines="nspawn", scripts=["setup.sh"])
    assert booted.pulumi("stack", "select", "--create", "dev").exit_code == 0
    made = booted.pulumi("up", "--yes", "--skip-preview")
    assert made.exit_code == 0, made.text
    wait_for_phase(booted, AWAITING)
    booted.ok("extend", "2h", "--yes")
    wait_until(
        lambda: {booted.agent_status(node).get("phase") for node in booted.instance_ids()} == {"ready"},
        what="both agents are ready",
        timeout_s=120,
    )
    wait_until(lambda: {row["state"] for row in booted.nodes().values()} == {"ready"}, what="ready", timeout_s=30)
    assert on_each(booted, "sudo cat /root/ran") == ["extended\n"] * 2

"""A machine that read its user-data: what it knows, who may do what on it, and how it learns of changes."""

from __future__ import annotations

import json
import shlex
import subprocess
import time

import pytest
from clusterctl_bootstrap.cloud_config import cloud_config
from clusterctl_bootstrap.node.efa import COMMANDS

from tests.integration.bootstrap.bootstrapped import CLUSTER_ID, OWN, SLOT, Bootstrapped, access, iso, wait_until

TIMER = "clusterctl-deadline.timer"


def test_every_phase_was_passed_and_nothing_failed(machine: Bootstrapped) -> None:
    status = machine.status(SLOT)
    assert status["error"] is None
    assert [row["phase"] for row in status["history"]][-1] == "ready"
    assert status["version"] == 1
    assert status["boot_id"]
    assert status["agent"]
    assert machine.output(SLOT, "systemctl --failed --no-legend") == ""
    assert machine.output(SLOT, "systemctl is-active clusterctl-node.service") == "active\n"


def test_the_node_contract_is_written(machine: Bootstrapped) -> None:
    name = machine.name
    node = json.loads(machine.output(SLOT, "cat /etc/clusterctl/node.json"))
    expected = {"slot": SLOT, "rank": SLOT, "name": f"{name}-{SLOT}", "nodes": 4, "gpus_per_node": 8}
    assert {key: node[key] for key in expected} == expected
    assert (node["private_ip"], node["master_addr"]) == ("10.0.8.2", "10.0.8.0")
    hostfile = machine.output(SLOT, "cat /etc/clusterctl/hostfile").splitlines()
    assert hostfile == [f"{name}-{slot} slots=8" for slot in range(4)]
    assert machine.output(SLOT, f"getent ahostsv4 {name}-3").split()[0] == "10.0.8.3"
    assert machine.output(SLOT, "hostname; getent ahostsv4 $(hostname)").split()[:2] == [f"{name}-{SLOT}", "10.0.8.2"]


SESSIONS = {
    "an ssh command": "env -0",
    "a login shell": "env -i HOME=$HOME bash -lc 'env -0'",
    "a login shell of root": "sudo -i env -0",
    "a unit": "sudo systemd-run --quiet --pipe --wait -p EnvironmentFile=/etc/clusterctl/env env -0",
}


@pytest.mark.parametrize("command", SESSIONS.values(), ids=SESSIONS.keys())
def test_every_session_has_the_environment(machine: Bootstrapped, command: str) -> None:
    seen = dict(row.partition("=")[::2] for row in machine.output(SLOT, command).split("\0"))
    expected = {
        "NODE_RANK": "2",
        "FLOW_NODE_RANK": "2",
        "NPROC_PER_NODE": "8",
        "MASTER_ADDR": "10.0.8.0",
        "SATURN_JOB_RANK": "2",
        "SKYPILOT_NUM_NODES": "4",
        "DSTACK_GPUS_NUM": "32",
        "JAX_COORDINATOR_ADDRESS": "10.0.8.0:8476",
        "GLOO_SOCKET_IFNAME": "host0",
        "NCCL_SOCKET_IFNAME": "=host0",
        "CLUSTERCTL_ID": CLUSTER_ID,
        **OWN,
    }
    assert {name: seen.get(name) for name in expected} == expected


def test_the_names_of_saturns_guide_resolve_to_the_ranks(machine: Bootstrapped) -> None:
    name = "${SATURN_JOB_RUN}-3.${SATURN_INTERNAL_SUBDOMAIN}.${SATURN_NAMESPACE}.svc.cluster.local"
    asked = machine.output(SLOT, f"getent ahostsv4 {name} $SATURN_JOB_LEADER").splitlines()
    assert [row.split()[0] for row in asked if "STREAM" in row] == ["10.0.8.3", "10.0.8.0"]


def test_slurms_names_are_there_for_scripts_that_ask(machine: Bootstrapped) -> None:
    asked = machine.output(SLOT, "echo ${SLURM_PROCID:-none}; . /etc/clusterctl/slurm.env; echo $SLURM_PROCID")
    assert asked == "none\n2\n"


WITHOUT_EFA = {
    "libfabric": (127, "fi_info"),
    "locked memory": (1, ""),
    "huge pages": (1, "0"),
    "fabric manager": (9, "no NVSwitch"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_efa_needs_is_asked_in_words_that_a_machine_understands(machine: Bootstrapped, name: str) -> None:
    code, message = WITHOUT_EFA[name]
    answer = machine.ssh(SLOT, f"sudo sh -c {shlex.quote(COMMANDS[name])}")
    assert answer.code == code, answer
    assert message in (answer.out + answer.err).splitlines()[-1]


def test_a_machine_without_efa_is_not_told_to_have_it(machine: Bootstrapped) -> None:
    assert machine.status(SLOT)["checks"] == [
        {"name": "EFA interfaces", "verdict": "not applicable", "detail": "none planned"}
    ]


def test_only_root_reaches_the_metadata_service(machine: Bootstrapped) -> None:
    ask = "curl -s -m 3 -o /dev/null -w %{http_code} http://169.254.169.254/latest/user-data"
    assert machine.output(SLOT, f"sudo {ask}") == "200"
    assert machine.ssh(SLOT, ask).out == "000"


def test_the_host_has_the_declared_key_and_no_other(machine: Bootstrapped) -> None:
    keys = machine.output(SLOT, "ls /etc/ssh/ssh_host_*").split()
    assert keys == ["/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key.pub"]


def test_what_is_secret_is_readable_by_root_alone(machine: Bootstrapped) -> None:
    """User-data, with the host key in it, lies in several places after cloud-init."""
    found = machine.output(SLOT, "sudo grep -rlF 'OPENSSH PRIVATE KEY' /var/lib/cloud /run/cloud-init /etc/ssh || true")
    assert "/etc/ssh/ssh_host_ed25519_key" in found.split()
    readable = machine.output(SLOT, f"for f in {' '.join(found.split())}; do [ -r $f ] && echo $f; done; true")
    assert readable == ""


def test_the_last_stage_waits_as_root_under_a_name_that_shutdown_spares(machine: Bootstrapped) -> None:
    rows = machine.output(SLOT, "ps -eo user=,args=").splitlines()
    assert [row.split()[0] for row in rows if "@clusterctl-last" in row and "ps -eo" not in row] == ["root"]


def test_cloud_init_accepts_the_config_it_was_given(machine: Bootstrapped) -> None:
    config = cloud_config(machine.plan(SLOT, left_s=3600, env=OWN), access(SLOT))
    answer = machine.ssh(SLOT, "cat >config && cloud-init schema --config-file config", stdin=config)
    assert answer.code == 0, answer.out + answer.err
    machine.output(SLOT, "cloud-init status --wait")
    result = json.loads(machine.output(SLOT, "cat /run/cloud-init/result.json"))
    assert result["v1"]["errors"] == []


STAGES = {
    "init-local": "cloud-init-local.service",
    "init": "cloud-init.service",
    "modules:config": "cloud-config.service",
    "modules:final": "cloud-final.service",
}


@pytest.mark.parametrize(("stage", "unit"), STAGES.items(), ids=STAGES.keys())
def test_a_stage_of_cloud_init_runs_in_its_own_unit(machine: Bootstrapped, stage: str, unit: str) -> None:
    """It logs from its unit's control group, whichever process has loaded cloud-init's modules."""
    machine.output(SLOT, "cloud-init status --wait")
    found = machine.output(SLOT, f"sudo journalctl --no-pager -o json _SYSTEMD_UNIT={unit}").splitlines()
    messages = [row["MESSAGE"] for row in map(json.loads, found) if row["SYSLOG_IDENTIFIER"] == "cloud-init"]
    assert any(f"running '{stage}'" in text for text in messages), messages


def test_no_process_of_cloud_init_is_left_after_its_last_stage(machine: Bootstrapped) -> None:
    machine.output(SLOT, "cloud-init status --wait")
    wait_until(
        lambda: "cloud-init" not in machine.output(SLOT, "ps -eo comm=").split(),
        lambda: machine.output(SLOT, "ps -ef"),
        timeout_s=20,
    )
    assert "socket" not in machine.output(SLOT, "ls /run/cloud-init")


def test_openssh_reads_every_derived_key(machine: Bootstrapped) -> None:
    pair = access(SLOT)
    shown = machine.output(SLOT, "umask 077; cat >k && ssh-keygen -y -f k; rm k", stdin=pair.host_private_key)
    assert shown.split()[:2] == pair.host_public_key.split()[:2]


def test_a_push_reaches_new_sessions_and_every_file(machine: Bootstrapped, generation: int) -> None:
    env = {"ADDED": "yes"}
    pushed = machine.push(SLOT, generation=generation, nodes=6, env=env)
    assert pushed.json == {"ok": True, "generation": generation}
    asked = machine.output(SLOT, "echo $NNODES $WORLD_SIZE $CLUSTERCTL_GENERATION $ADDED; printenv GREETING || true")
    assert asked == f"6 48 {generation} yes\n"
    assert machine.output(SLOT, "bash -lc 'echo $NNODES'") == "6\n"
    assert len(machine.output(SLOT, "cat /etc/clusterctl/hostfile").splitlines()) == 6
    assert machine.output(SLOT, f"getent ahostsv4 {machine.name}-5").split()[0] == "10.0.8.5"
    assert machine.status(SLOT)["generation"] == generation
    assert machine.status(SLOT)["phase"] == "ready"


def test_a_push_moves_the_deadline_both_ways(machine: Bootstrapped, generation: int) -> None:
    for number, left_s in enumerate((7200, 900)):
        moment = time.time() + left_s
        pushed = machine.push(SLOT, generation=generation + number, deadline=iso(moment))
        assert pushed.json["ok"], pushed
        assert machine.status(SLOT)["deadline"] == iso(moment)
        assert abs(armed_for_s(machine) - left_s) < 10


def test_a_daemon_reload_does_not_move_the_deadline(machine: Bootstrapped) -> None:
    before = armed_at(machine)
    machine.output(SLOT, "sudo systemctl daemon-reload; sudo systemctl daemon-reexec")
    assert abs(armed_at(machine) - before) < 1


def test_a_job_that_ignores_sigterm_is_given_two_seconds(machine: Bootstrapped) -> None:
    assert machine.output(SLOT, "systemctl show --value -p DefaultTimeoutStopUSec") == "2s\n"


def test_a_push_that_is_refused_changes_nothing(machine: Bootstrapped, generation: int) -> None:
    look = "sudo sha256sum /etc/clusterctl/* /var/lib/clusterctl/*"
    before = machine.output(SLOT, look)
    answer = machine.push(SLOT, generation=generation, cluster_id="ba9876543210")
    assert answer.code == 1
    assert answer.json["ok"] is False
    assert "cluster_id" in answer.json["error"]
    assert machine.output(SLOT, look) == before


def test_a_user_without_rights_is_told_so(machine: Bootstrapped, generation: int) -> None:
    machine.deliver_modules(SLOT)
    answer = machine.ssh(SLOT, "clusterctl-node apply", stdin=json.dumps({"generation": generation}))
    assert answer.code == 1
    assert "Traceback" not in answer.err


def test_a_follower_sees_the_status_at_once_and_each_change(machine: Bootstrapped, generation: int) -> None:
    with subprocess.Popen(
        [*machine.ssh_argv(SLOT), "clusterctl-node status --follow"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as follower:
        assert follower.stdin is not None
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["generation"] == generation - 1
        machine.push(SLOT, generation=generation)
        assert json.loads(follower.stdout.readline())["generation"] == generation
        follower.stdin.close()
        assert follower.wait(timeout=10) == 0


def test_a_second_boot_of_the_agent_changes_nothing(machine: Bootstrapped) -> None:
    look = "sudo sha256sum /etc/clusterctl/[!s]* /etc/hosts /var/lib/clusterctl/* ~/.ssh/*"
    before = machine.output(SLOT, look)
    machine.output(SLOT, "sudo clusterctl-node boot")
    assert machine.output(SLOT, look) == before
    assert machine.status(SLOT)["phase"] == "ready"


def test_a_reboot_keeps_the_membership_and_the_deadline(machine: Bootstrapped, generation: int) -> None:
    deadline = iso(time.time() + 2700)
    assert machine.push(SLOT, generation=generation, nodes=5, deadline=deadline).json["ok"]
    before = machine.status(SLOT)["boot_id"]
    machine.ssh(SLOT, "sudo systemctl reboot")
    status = machine.wait_until_another_boot(SLOT, before)
    assert (status["phase"], status["generation"], status["deadline"]) == ("ready", generation, deadline)
    assert machine.output(SLOT, "echo $NNODES") == "5\n"
    assert abs(armed_for_s(machine) - 2700) < 60


def armed_at(machine: Bootstrapped) -> float:
    """When the counting timer fires, in seconds of the machine's monotonic clock."""
    span = machine.output(SLOT, f"systemctl show --value -p NextElapseUSecMonotonic {TIMER}").strip()
    assert span != "infinity", machine.output(SLOT, "systemctl status --no-pager 'clusterctl*'; ls /run/clusterctl")
    return seconds(span)


def armed_for_s(machine: Bootstrapped) -> float:
    """How long until the counting timer fires."""
    at = armed_at(machine)
    return at - float(machine.output(SLOT, "cat /proc/uptime").split()[0])


UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800, "month": 2629800}


def seconds(span: str) -> float:
    """systemd's `2h 31min 55.272827s` as seconds (systemd.time(7))."""
    total = 0.0
    for word in span.split():
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        total += float(digits) * UNITS_S[word[len(digits) :]]
    return total

"""Jobs on booted machines: services of their own, ranks without rights, and nothing left of a killed keeper."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl_rehearsal.region.torch_share import IN_MACHINES

from tests.integration.jobs.container_image import MAKE_IMAGE
from tests.integration.jobs.installed import need_torch
from tests.integration.jobs.job_folders import folder_with, new_name
from tests.integration.jobs.left_of_job import output_in_the_end
from tests.integration.rehearsed import Rehearsed

HOSTILE = """\
import os, subprocess
for argv in (["sudo", "-n", "true"], ["systemctl", "stop", "clusterctl-job-" + os.environ["CLUSTERCTL_JOB"]]):
    print(argv[0], "works" if subprocess.run(argv, capture_output=True).returncode == 0 else "refused")
name = os.environ["CLUSTERCTL_JOB"]
for path in ("/etc/clusterctl/ssh_key", "/etc/clusterctl/barrier", "/run/clusterctl/job-keys/" + name):
    try:
        print(path, "is open", len(open(path).read()))
    except OSError as e:
        print(path, "is closed")
for path in ("/var/lib/clusterctl/jobs/%s/state.json" % name, "/run/clusterctl/job-lease/%s.json" % name):
    print(path, "can be written" if os.access(path, os.W_OK) else "is safe")
print("sessions are", os.path.isdir("/run/user") and os.access("/run/user", os.R_OK) and "open" or "hidden")
print("user", os.getuid(), os.environ["USER"])
"""
ENTERED = """\
import json, os, subprocess, sys, time
ranks = "/var/lib/clusterctl/jobs/%s/attempt-1/ranks/" % os.environ["CLUSTERCTL_JOB"]
tools = os.environ["CLUSTERCTL_JOB_DIR"] + "/tools"
os.mkdir(tools)
with open(tools + "/id", "w") as file:
    file.write("#!/bin/sh\\necho planted; exec /usr/bin/id -u\\n")
os.chmod(tools + "/id", 0o755)
planted = {"RANK": "7", "PATH": tools, "LD_PRELOAD": tools + "/none.so"}
subprocess.Popen(["/bin/sleep", "600"], env={**os.environ, **planted})
with open("/proc/self/stat") as file:
    start = int(file.read().rpartition(")")[2].split()[19])
with open("/proc/1/stat") as file:
    first = int(file.read().rpartition(")")[2].split()[19])
with open(ranks + "7.pid", "w") as file:
    json.dump([os.getpid(), start], file)
with open(ranks + "8.pid", "w") as file:
    json.dump([1, first], file)
os.symlink("/etc/shadow", ranks + "9.pid")
os.mkfifo(ranks + "10.pid")
os.symlink("/etc/shadow", "/run/clusterctl/job-secrets/%s/STOLEN" % os.environ["CLUSTERCTL_JOB"])
print("up", flush=True)
time.sleep(600)
"""
"""Plants ranks for `job exec --rank`, one with programs and a search path of its own, three that are none; and a link
among its secrets, which root would read."""
INSIDE = """\
/usr/bin/id -u; grep -E 'NoNewPrivs|CapEff|CapPrm' /proc/self/status | tr -d '\\t'
echo "own: $OWN, stolen: $STOLEN"
sudo -n true 2>/dev/null && echo sudo works
for path in /etc/clusterctl/ssh_key /etc/clusterctl/barrier /run/user /etc/shadow; do
    ls $path/ 2>/dev/null || cat $path 2>/dev/null && echo $path is open
done
true
"""
ORPHANS = """\
import subprocess, time
subprocess.Popen(["setsid", "sleep", "98765"], start_new_session=True)
print("up", flush=True)
time.sleep(600)
"""

HUNGRY = """\
import os, time
print("up", flush=True)
while not os.path.exists("/tmp/eat"):
    time.sleep(0.1)
eaten = [bytearray(10 << 20) for _ in range(10000 if os.environ["RANK"] == "1" else 0)]
time.sleep(600)
"""
FILLING = """\
import os, time
if os.environ["RANK"] == "1":
    with open(os.environ["CLUSTERCTL_JOB_DIR"] + "/big", "wb") as file:
        while True:
            file.write(b"x" * 512)
time.sleep(600)
"""
"""The disk is full before the job says its first word."""
SHORT_OF_MEMORY = """\
set -e
unit=system.slice/clusterctl-job-%s.service
if [ -d /sys/fs/cgroup/memory ]; then  # version 1, which machines see read-only
    mount -o remount,bind,rw /sys/fs/cgroup/memory
    mkdir -p /sys/fs/cgroup/memory/short
    echo 120M > /sys/fs/cgroup/memory/short/memory.limit_in_bytes
    for pid in $(cat /sys/fs/cgroup/systemd/$unit/cgroup.procs); do
        echo $pid > /sys/fs/cgroup/memory/short/cgroup.procs
    done
else
    systemctl set-property --runtime ${unit##*/} MemoryMax=120M MemorySwapMax=0
fi
touch /tmp/eat
"""
SMALL_DISK = "cd /var/lib/clusterctl && mkdir -p jobs && mount -t tmpfs -o size=3M,mode=755 tmpfs jobs"


IN_CONTAINER = """\
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("container", os.environ["container"], "user", os.getuid(), "home", os.environ["HOME"])
print("key is", "there" if os.path.exists("/etc/clusterctl/ssh_key") else "outside", repr(os.environ["LINES2"]))
kept = os.environ["CLUSTERCTL_JOB_DIR"] + "/kept-"
open(kept + os.environ["RANK"], "w").write(os.environ["TOKEN"][::-1])
if sys.argv[1] == "stay":
    subprocess.Popen(["sleep", "98764"], start_new_session=True)
    print("up", flush=True)
    time.sleep(600)
while not os.path.exists(kept + "0"):
    time.sleep(0.1)
sys.exit(7 if os.environ["RANK"] == "1" else 0)
"""
LOOK = """\
import os
print("rank", os.environ["RANK"], os.environ["TOKEN"], repr(os.environ["LINES2"]), "user", os.getuid(), end=" ")
limits = dict(line.split(":", 1) for line in open("/proc/self/status"))
print("in", os.environ["container"], os.getcwd(), limits["NoNewPrivs"].strip())
"""
BY_TORCHRUN = """\
import os, time, torch, torch.distributed
torch.distributed.init_process_group("gloo")
total = torch.tensor([torch.distributed.get_rank() + 1])
torch.distributed.all_reduce(total)
print("sum", int(total), "in", os.environ["container"], flush=True)
while not os.path.exists(os.environ["CLUSTERCTL_JOB_DIR"] + "/go"):
    time.sleep(0.1)
torch.distributed.destroy_process_group()
"""
TORCH_CONF = "/etc/containers/containers.conf.d/torch.conf"
WITH_TORCH = (
    "mkdir -p /etc/containers/containers.conf.d && "
    f"printf '[containers]\\nvolumes=[\"{IN_MACHINES}:{IN_MACHINES}:ro\"]\\n' > {TORCH_CONF}"
)
"""Every container has the machines' torch: as a part of the image it would be 5 GB."""
GO = """\
import os
print(os.environ["RANK"], os.environ["LOCAL_RANK"])
open(os.environ["CLUSTERCTL_JOB_DIR"] + "/go", "w").close()
"""


@pytest.fixture
def cluster(booted_pair: Rehearsed) -> Rehearsed:
    """Two booted machines that are up."""
    return booted_pair


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to start jobs from."""
    return folder_with(
        tmp_path,
        {
            "hostile.py": HOSTILE,
            "orphans.py": ORPHANS,
            "entered.py": ENTERED,
            "hungry.py": HUNGRY,
            "filling.py": FILLING,
            "contained.py": IN_CONTAINER,
            "by_torchrun.py": BY_TORCHRUN,
        },
    )


def test_a_job_can_neither_become_root_nor_reach_other_nodes_nor_end_its_supervisor(
    cluster: Rehearsed, work: Path
) -> None:
    setup = "for f in ssh_key barrier; do cat /etc/clusterctl/$f && exit 1; done; ls /run/user && exit 1; true"
    done = cluster.run(*("run", "--launcher", "plain", "--setup", setup, "--workdir", str(work), "--", "hostile.py"))
    assert done.exit_code == 0, done.text
    for line in (
        "sudo refused",
        "systemctl refused",
        "ssh_key is closed",
        "barrier is closed",
        "sessions are hidden",
        "user 1000 ubuntu",
    ):
        assert done.stdout.count(line) == 2, done.text
    assert "is open" not in done.stdout
    assert done.stdout.count(" is safe") == 4, done.text


def test_a_user_without_sudo_reads_nothing_of_a_job(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    cluster.ok("run", "--launcher", "plain", "--name", name, "--workdir", str(work), "--node", "0", "--", "true")
    folder = f"/var/lib/clusterctl/jobs/{name}"
    read = f"cat {folder}/spec.json {folder}/attempt-1/output* {folder}/code/hostile.py; ls {folder}"
    line = f"setpriv --reuid nobody --regid nogroup --clear-groups sh -c '{read}'; true"
    assert cluster.ok("ssh", "--node", "0", "--sudo", "--command", line) == ""
    assert "hostile.py" in cluster.ok("ssh", "--node", "0", "--command", f"ls {folder}/code")


def test_a_command_inside_a_job_has_no_more_rights_than_the_job_whatever_the_job_plants(
    cluster: Rehearsed, work: Path
) -> None:
    name = new_name()
    options = ("--launcher", "plain", "--name", name, "--grace", "1s", "--detach", "--workdir", str(work))
    cluster = replace(cluster, env={**cluster.env, "OWN": "s3cret"})
    cluster.ok("run", *options, "--node", "0", "--secret", "OWN", "--", "entered.py")
    cluster.wait_for_output(name, "up")
    no_rights = ["1000", "CapPrm:0000000000000000", "CapEff:0000000000000000", "NoNewPrivs:1"]
    for rank in ((), ("--rank", "0")):
        output = cluster.ok("job", "exec", name, *rank, "--", "sh", "-c", INSIDE)
        assert output.splitlines() == [*no_rights, "own: s3cret, stolen: "]
    enter = f"sudo -n python3 -IS $(ls -d /var/lib/clusterctl/jobs/programs/*) exec {name}"
    planted = cluster.run("ssh", "--node", "0", "--command", f"{enter} 7 id")
    assert planted.stdout.split() == ["planted", "1000"], planted.text
    for number in (8, 9, 10):
        done = cluster.run("ssh", "--node", "0", "--command", f"{enter} {number} /usr/bin/id -u")
        assert done.exit_code == 1, done.text
        assert done.stdout == "", done.text
        assert "root:" not in done.text
    cluster.ok("job", "cancel", name)


def test_a_killed_keeper_takes_all_of_the_job_with_it(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    options = ("--launcher", "plain", "--name", name, "--grace", "1s", "--detach", "--workdir", str(work))
    cluster.ok("run", *options, "--", "orphans.py")
    cluster.wait_for_output(name, "up", times=2)
    assert cluster.ok("ssh", "--node", "all", "--command", f"ls /run/clusterctl/jobs/{name}").count(name) == 2
    cluster.ok("ssh", "--node", "1", "--sudo", "--command", f"pkill -KILL -f '[k]eep {name}'")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 255, waited.text
    assert f"{name}: lost: Node 1 ({cluster.name}-1)" in waited.stderr
    states = {node["slot"]: node["state"] for node in json.loads(cluster.ok("job", "show", name, "--json"))["nodes"]}
    assert states == {0: "lost", 1: "lost"}
    left = "pgrep -f 'sleep 9876[5]'; ls /run/clusterctl/jobs; ls /run/clusterctl/job-lease; true"
    assert output_in_the_end(cluster, left) == ""


def test_check_names_the_pair_that_does_not_hear_each_other(cluster: Rehearsed) -> None:
    first, second = f"{cluster.name}-0", f"{cluster.name}-1"
    assert json.loads(cluster.run("check", "--json").stdout)["pairs"] == []
    cluster.fault("partition", first, second)
    try:
        done = cluster.run("check", "--timeout", "1s")
        assert done.exit_code == 4, done.text
        assert f"{first}: does not reach {second} (any port: no answer)" in done.stdout
        assert f"{second}: does not reach {first} (any port: no answer)" in done.stdout
    finally:
        cluster.fault("plug", first)


def test_ranks_run_in_containers_of_an_image_and_nothing_of_them_is_left(cluster: Rehearsed, work: Path) -> None:
    cluster.ok("ssh", "--node", "0", "--sudo", "--command", MAKE_IMAGE)
    name = new_name()
    cluster = replace(cluster, env={**cluster.env, "TOKEN": "drowssap"})
    flags = ("--image", "test/python:1", "--launcher", "plain", "--node", "0", "--nproc", "2", "--workdir", str(work))
    options = (*flags, "--secret", "TOKEN", "--env", "LINES2=a\nb", "--grace", "1s")
    done = cluster.run("run", *options, "--name", name, "--", "contained.py", "go")
    assert done.exit_code == 7, done.text
    home = f"/var/lib/clusterctl/jobs/{name}/work"
    assert done.stdout.count(f"container podman user 1000 home {home}") == 2, done.text
    assert done.stdout.count("key is outside 'a\\nb'") == 2, done.text
    assert f"{name}: failed: Node 0 ({cluster.name}-0): rank 1 (local rank 1) exited with code 7" in done.stderr
    assert cluster.ok("ssh", "--node", "0", "--command", f"cat {home}/kept-0") == "password"

    stubborn = f"{name}-stays"
    cluster.ok("run", *options, "--name", stubborn, "--detach", "--", "contained.py", "stay")
    cluster.wait_for_output(stubborn, "up", times=2)
    look = ("job", "exec", stubborn, "--rank", "1", "--", "python3", "-c", LOOK)
    entered = cluster.ok(*look)
    assert entered == f"rank 1 drowssap 'a\\nb' user 1000 in podman /var/lib/clusterctl/jobs/{stubborn}/code 1\n"
    missing = cluster.run("job", "exec", stubborn, "--", "nosuch")
    assert (missing.exit_code, "nosuch" in missing.stderr) == (127, True), missing.text
    visible = cluster.ok("ssh", "--node", "0", "--sudo", "--command", "podman inspect $(podman ps -q); ps -eo args")
    assert stubborn in visible
    assert "drowssap" not in visible
    cluster.ok("ssh", "--node", "0", "--sudo", "--command", f"pkill -KILL -f '[k]eep {stubborn}'")
    assert cluster.run("job", "wait", stubborn).exit_code == 255
    left = "podman ps --all --quiet; pgrep -f 'sleep 9876[4]'; true"
    assert output_in_the_end(cluster, left, "--sudo", node="0") == ""


@pytest.mark.torch
def test_torchrun_runs_in_a_container_and_a_command_beside_one_of_its_ranks(cluster: Rehearsed, work: Path) -> None:
    need_torch()
    cluster.ok("ssh", "--node", "0", "--sudo", "--command", f"{WITH_TORCH} && {MAKE_IMAGE}")
    name = new_name()
    options = ("--image", "test/python:1", "--node", "0", "--nproc", "2", "--name", name, "--workdir", str(work))
    cluster.ok("run", *options, "--detach", "--", "by_torchrun.py")
    try:
        cluster.wait_for_output(name, "sum 3 in podman", times=2, timeout_s=120)
        assert cluster.ok("job", "exec", name, "--rank", "1", "--", "python3", "-c", GO) == "1 1\n"
        waited = cluster.run("job", "wait", name)
    finally:
        left = cluster.ok("ssh", "--node", "0", "--sudo", "--command", f"rm {TORCH_CONF}; podman ps --all --quiet")
    assert waited.exit_code == 0, waited.text
    assert left == ""


def test_an_image_that_no_registry_gives_starts_nothing(cluster: Rehearsed, work: Path) -> None:
    options = ("--image", "registry.invalid/a:1", "--launcher", "plain", "--node", "1", "--workdir", str(work))
    done = cluster.run("run", *options, "--", "contained.py", "go")
    assert done.exit_code == 1, done.text
    assert "was not started: Node 1" in done.stderr
    assert "podman pull: " in done.stderr
    assert "registry.invalid" in done.stderr
    assert (
        cluster.ok("ssh", "--node", "1", "--command", "ls -A /run/clusterctl/job-lease 2>/dev/null; true").strip() == ""
    )


def test_a_rank_that_the_kernel_kills_for_memory_is_told_as_that(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    options = ("--launcher", "plain", "--name", name, "--grace", "1s", "--detach", "--workdir", str(work))
    cluster.ok("run", *options, "--", "hungry.py")
    cluster.ok("ssh", "--node", "1", "--sudo", "--command", SHORT_OF_MEMORY % name)
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 128 + 9, waited.text
    cause = f"Node 1 ({cluster.name}-1): rank 1 (local rank 0) was killed: the node had no memory left"
    assert f"{name}: failed: {cause}" in waited.stderr


def test_a_full_disk_ends_the_job_and_says_so_and_its_output_is_kept(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    cluster.ok("ssh", "--node", "1", "--sudo", "--command", SMALL_DISK)
    try:
        options = ("--launcher", "plain", "--name", name, "--grace", "1s", "--workdir", str(work))
        done = cluster.run("run", *options, "--", "filling.py")
        assert done.exit_code == 1, done.text
        assert f"{name}: failed: Node 1 ({cluster.name}-1): rank 1 (local rank 0) exited with code 1" in done.stderr
        assert "No space left on device" in done.stderr
        left = "ls /run/clusterctl/jobs; ls /run/clusterctl/job-lease; pgrep -f '[f]illing.py'; true"
        assert cluster.ok("ssh", "--node", "all", "--sudo", "--command", left).strip() == ""
    finally:
        cluster.ok("ssh", "--node", "1", "--sudo", "--command", "umount --lazy /var/lib/clusterctl/jobs")
    kept = cluster.home / "jobs" / f"{cluster.name}@rehearsal" / name / "node-1" / "attempt-1" / "output.000001"
    assert "No space left on device" in kept.read_text()

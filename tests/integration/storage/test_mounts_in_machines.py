"""Mounts on booted nodes: there, shared, labelled as simulated, there again after a reboot; and mounts that fail."""

from __future__ import annotations

import json

from clusterctl_bootstrap.cloud_config import cloud_config
from clusterctl_bootstrap.node_plan import MountPlan

from tests.integration.bootstrap.bootstrapped import access, wait_until
from tests.integration.storage.stored import (
    CLIENTLESS,
    CLIENTS,
    LATE,
    LATECOMER,
    LOCAL,
    ODD,
    SCRIPTS,
    SETS,
    SHARED,
    SOURCELESS,
    UNPACKED,
    UNSCRIPTED,
    Stored,
)


def found(cluster: Stored, slot: int, path: str) -> list[str]:
    """Type and source of what is mounted at `path`."""
    return cluster.network.output(slot, f"findmnt -rno FSTYPE,SOURCE '{path}'").split()


def test_every_mount_is_there_and_says_that_it_is_simulated(cluster: Stored) -> None:
    assert found(cluster, 1, SHARED.path)[0] == "fuse.simulated-lustre"
    assert found(cluster, 1, SHARED.path)[1].endswith(SHARED.source)
    assert found(cluster, 1, ODD.path)[0] == "fuse.simulated-nfs4"
    assert found(cluster, 1, SETS.path) == ["fuse.simulated-mount-s3", "mountpoint-s3"]
    assert "simulated-nvme" in found(cluster, 1, LOCAL.path)[1]


def test_what_one_node_writes_another_reads_without_root(cluster: Stored) -> None:
    for path in (SHARED.path, ODD.path):
        cluster.network.output(0, f"echo from-0 >'{path}/note'")
        assert cluster.network.output(1, f"cat '{path}/note'") == "from-0\n"
        assert cluster.network.output(1, f"stat -c %U '{path}/note'") == "ubuntu\n"


def test_a_bucket_shows_its_prefix_and_cannot_be_written(cluster: Stored) -> None:
    assert cluster.network.output(1, "ls /data; cat /data/a.txt") == "a.txt\nhello"
    assert "Read-only file system" in cluster.network.ssh(1, "sudo touch /data/x").err


def test_what_one_node_writes_to_a_bucket_another_reads(cluster: Stored) -> None:
    cluster.network.output(0, "echo from-0 >/results/epoch-1")
    assert cluster.network.output(1, "cat /results/epoch-1") == "from-0\n"


def test_a_lock_on_one_node_holds_on_the_other(cluster: Stored) -> None:
    held = "flock /shared/lock sh -c 'touch /shared/held; while [ -e /shared/held ]; do sleep 0.05; done'"
    cluster.network.output(0, f"nohup {held} >/dev/null 2>&1 &")
    wait_until(lambda: cluster.network.ssh(1, "test -e /shared/held").code == 0, lambda: "no lock was taken", 30)
    assert cluster.network.ssh(1, "flock --nonblock /shared/lock true").code == 1
    cluster.network.output(1, "rm /shared/held; flock --timeout 10 /shared/lock true")


def test_local_disks_are_not_shared(cluster: Stored) -> None:
    cluster.network.output(0, "echo mine >/scratch/note")
    assert cluster.network.ssh(1, "test -e /scratch/note").code == 1


def test_the_note_of_slot_0_is_that_of_this_boot(cluster: Stored) -> None:
    boot_id = cluster.network.status(0)["boot_id"]
    assert cluster.network.output(1, "cat /shared/.clusterctl-*").split()[2:] == [boot_id]


def test_a_unit_of_a_persons_own_can_wait_for_a_mount(cluster: Stored) -> None:
    run = f"systemd-run --quiet --wait -p RequiresMountsFor={SHARED.path} -p After=network.target"
    cluster.network.output(1, f"sudo {run} test -e {SHARED.path}/.clusterctl-*")
    assert cluster.network.output(1, "systemctl is-active shared.mount") == "active\n"


def test_cloud_init_accepts_a_config_with_mounts_and_scripts(cluster: Stored) -> None:
    config = cloud_config(cluster.plan(1, SHARED, ODD, LOCAL, scripts=SCRIPTS), access(1))
    answer = cluster.network.ssh(1, "cat >config && cloud-init schema --config-file config", stdin=config)
    assert answer.code == 0, answer.out + answer.err


def test_after_a_reboot_all_is_mounted_again_and_once_was_once(cluster: Stored) -> None:
    network = cluster.network
    first = network.status(1)
    network.output(1, "echo kept >/scratch/kept; echo kept >/shared/kept")
    network.ssh(1, "sudo systemctl reboot")
    status = network.wait_until_another_boot(1, first["boot_id"])
    assert (status["phase"], status["deadline"]) == ("ready", first["deadline"]), status
    assert network.output(1, "cat /scratch/kept /shared/kept") == "kept\nkept\n"
    assert found(cluster, 1, ODD.path)[0] == "fuse.simulated-nfs4"
    ran = network.output(1, "cat /var/tmp/ran").splitlines()
    folder = "/var/lib/clusterctl/scripts"
    assert ran == ["early", f"1 {folder}/setup.sh", f"1 {folder}/each-boot.sh", f"1 {folder}/each-boot.sh"]
    wait_until(lambda: network.ssh(1, "test -e /var/tmp/late").code == 0, lambda: "late.sh did not run", 30)
    assert "setup.sh: exit 0 after " in network.output(1, "cat /var/log/clusterctl.log")


def test_a_file_system_that_dns_learns_of_late_is_waited_for(cluster: Stored) -> None:
    source = f"{LATE}.efs.us-west-2.amazonaws.com:/"
    late = MountPlan(path="/late", kind="efs", source=source, writable=False)
    cluster.boot(cluster.plan(LATECOMER, late, scripts=(CLIENTS,)))
    log = "grep -c 'Failed to resolve server' /var/log/clusterctl.log"
    wait_until(lambda: cluster.network.ssh(LATECOMER, log).code == 0, lambda: cluster.network.console(LATECOMER), 30)
    (cluster.shares / LATE).mkdir()
    assert cluster.network.wait_until_settled(LATECOMER)["phase"] == "ready"
    refused = cluster.network.ssh(LATECOMER, "sudo touch /late/x")
    assert "Read-only file system" in refused.err


def test_packages_of_a_rehearsal_are_said_to_be_simulated(cluster: Stored) -> None:
    log = cluster.network.output(1, "sudo cat /var/log/clusterctl/packages.log")
    assert "SIMULATED: a node on AWS would install htop here" in log


def test_packages_that_cannot_be_had_fail_the_node(cluster: Stored) -> None:
    """The real apt-get, in a machine without a way out."""
    status = cluster.network.wait_until_settled(UNPACKED)
    assert (status["phase"], status["error"]["phase"]) == ("failed", "packages")
    assert "packages: exit 1 after " in status["error"]["message"]
    assert "Unable to locate package htop" in str(status["error"])


def test_nodes_install_the_clients_of_their_mounts(cluster: Stored) -> None:
    """No machine is born with one; packages of a rehearsal are stand-ins."""
    log = cluster.network.output(1, "sudo cat /var/log/clusterctl/mount-clients.log")
    kernel = cluster.network.output(1, "uname -r").strip()
    for package in (f"lustre-client-modules-{kernel}", "nfs-common", "./mount-s3-"):
        assert f"SIMULATED: a stand-in for {package}" in log


def test_a_client_that_is_not_to_be_had_fails_the_node_with_the_line(cluster: Stored) -> None:
    """The real curl, in a machine without a way out."""
    status = cluster.network.wait_until_settled(SOURCELESS)
    assert (status["phase"], status["error"]["phase"]) == ("failed", "mount clients")
    assert "mount-clients: exit 6 after " in status["error"]["message"]
    assert "Could not resolve host: fsx-lustre-client-repo-public-keys.s3" in status["error"]["message"]


def test_an_image_without_the_client_fails_the_node_with_the_reason(cluster: Stored) -> None:
    status = cluster.network.wait_until_settled(CLIENTLESS)
    assert (status["phase"], status["error"]["phase"]) == ("failed", "mounts")
    assert "/shared: there is no /sbin/mount.lustre" in status["error"]["message"]


def test_a_script_that_fails_fails_the_node_with_its_last_lines(cluster: Stored) -> None:
    status = cluster.network.wait_until_settled(UNSCRIPTED)
    assert (status["phase"], status["error"]["phase"]) == ("failed", "scripts")
    assert "broken.sh: exit 1 after " in status["error"]["message"]
    assert any("broken.sh: so far" in line for line in status["error"]["log"]), json.dumps(status["error"])

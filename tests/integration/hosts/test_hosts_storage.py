"""What hosts mount, install and run, and what of that `down` takes back."""

from __future__ import annotations

from pathlib import Path

from tests.integration.hosts.foreign import ANSWER_S, BOTH, Foreign, address
from tests.integration.rehearsed import wait_until

STORAGE = """\
storage:
- {mount: /shared, nfs: {source: "fileserver:/export"}}
- {mount: /mnt/lab/fast, lustre: {source: "fastserver@tcp:/fast", writable: false}}
"""
SETUP = "#!/bin/sh\nset -e\nmountpoint -q /shared\necho $NODE_RANK >>/var/tmp/ran\n"
CLIENT = "sudo cp /usr/local/lib/clusterctl-rehearsal/mount.lustre /usr/sbin/"


def test_what_lies_at_a_mount_or_is_missing_for_it_is_told_before_anything(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH, more=STORAGE))
    theirs = (
        "sudo mkdir -p /shared /mnt/lab/fast && sudo touch /shared/theirs && sudo mount -t tmpfs none /mnt/lab/fast"
    )
    assert net.ssh(2, theirs).returncode == 0
    try:
        before = net.snapshot(1)
        done = net.clusterctl("up", stack, "--yes")
        kept = net.ssh(2, "ls /shared; findmnt -n -o FSTYPE /mnt/lab/fast").stdout
    finally:
        net.ssh(2, "sudo umount /mnt/lab/fast; sudo rm -r /shared /mnt/lab")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("there is no /sbin/mount.nfs, the client of NFS: install it, or list it under pack") == 2
    assert "nfs-common on Ubuntu and Debian" in done.stderr
    assert f"lab-1 ({address(2)}): /shared: something lies there, which a mount would hide" in done.stderr
    assert f"lab-1 ({address(2)}): /mnt/lab/fast: something is mounted there already" in done.stderr
    assert "/etc/fstab" not in done.stderr
    assert (net.snapshot(1), kept) == (before, "theirs\ntmpfs\n")


def test_mounts_packages_and_scripts_of_hosts_from_up_to_down(net: Foreign, tmp_path: Path) -> None:
    """The first host has an empty /shared of its own, which stays."""
    for name in ("fileserver", "fastserver"):
        (net.shares / name).mkdir(exist_ok=True)
    (net.shares / "fastserver/set").write_text("hello")
    (net.shares / "fileserver").chmod(0o1777)
    assert net.ssh(1, "sudo mkdir /shared").returncode == 0
    assert net.ssh(1, CLIENT).returncode == net.ssh(2, CLIENT).returncode == 0
    before = [net.snapshot(number) for number in (1, 2)]
    more = "packages: [nfs-common]\nscripts: [setup.sh]\n"
    stack = net.write_stack(tmp_path / "lab", hosts=BOTH, more=STORAGE + more)
    (stack / "setup.sh").write_text(SETUP)
    try:
        net.ok("up", str(stack), "--yes")
        seen = net.ok("ssh", "--node", "0", "findmnt -n -o FSTYPE /shared; findmnt -n -o FSTYPE,OPTIONS /mnt/lab/fast")
        assert seen.startswith("fuse.simulated-nfs\nfuse.simulated-lustre ro,"), seen
        net.ok("ssh", "--node", "0", "echo from 0 >/shared/note")
        assert net.ok("ssh", "--node", "1", "cat /shared/note /mnt/lab/fast/set /var/tmp/ran") == "from 0\nhello1\n"
        assert net.clusterctl("ssh", "--node", "1", "touch /mnt/lab/fast/mine").returncode == 1
        # A mount that is taken out of the file goes, and a script that was changed runs again.
        net.write_stack(tmp_path / "lab", hosts=BOTH, more=STORAGE.partition("- {mount: /mnt")[0] + more)
        (stack / "setup.sh").write_text(SETUP.replace("$NODE_RANK", "again"))
        net.ok("up", str(stack), "--yes")
        assert net.ok("ssh", "--node", "1", "cat /var/tmp/ran; ls /mnt; mountpoint /shared") == (
            "1\nagain\n/shared is a mountpoint\n"
        )
        net.driver.reboot(net.name, "gpu-2")
        wait_until(
            lambda: net.ssh(2, "mountpoint -q /shared && grep -q ready /etc/clusterctl/status.json").returncode == 0,
            what="the mount after another boot",
            timeout_s=ANSWER_S,
        )
        assert net.ssh(2, "cat /var/tmp/ran").stdout == "1\nagain\n"
        assert net.ssh(2, "sudo systemd-run --unit busy sh -c 'cd /shared && exec sleep infinity'").returncode == 0
        done = net.clusterctl("down", str(stack), "--yes")
        assert done.returncode == 4, done.stderr
        assert f"{address(2)}: /shared cannot be unmounted, something uses it: fuser -vm /shared" in done.stderr
        assert net.ssh(2, "sudo systemctl stop busy").returncode == 0
        net.ok("down", str(stack), "--yes")
        assert [net.snapshot(number) for number in (1, 2)] == before
        left = "cat /proc/mounts | grep -c fuse.simulated; ls -d /shared /mnt/*; ls /etc/systemd/system/*.mount"
        assert [net.ssh(number, left).stdout for number in (1, 2)] == ["0\n/shared\n", "0\n"]
        assert (net.shares / "fileserver/note").read_text() == "from 0\n"
        assert [path.name for path in (net.shares / "fileserver").iterdir()] == ["note"]
    finally:
        net.ssh(2, "sudo systemctl stop busy")
        for number in (1, 2):
            net.ssh(number, "sudo rm -f /usr/sbin/mount.lustre /usr/sbin/mount.nfs /usr/sbin/mount.nfs4 /var/tmp/ran")
        net.ssh(1, "sudo rmdir /shared")

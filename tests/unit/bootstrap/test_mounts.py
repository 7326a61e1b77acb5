"""The file systems of a node: what is asked of systemd, and how the result is checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.node.mounts import (
    MOUNTED_TIMEOUT_S,
    PEER_TIMEOUT_S,
    check,
    mount_all,
    mounted,
    network,
    unit_text,
)
from clusterctl_bootstrap.node.mounts import meet as meet_peers
from clusterctl_bootstrap.node.phase import PhaseFailed
from clusterctl_bootstrap.node_plan import MountPlan
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born

LUSTRE = MountPlan(path="/shared", kind="fsx-lustre", source="fs-0a.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh")
EFS = MountPlan(path="/home/all", kind="efs", source="fs-0b.efs.us-west-2.amazonaws.com:/")
BUCKET = MountPlan(path="/data", kind="s3", source="sets/imagenet/", options="region=us-west-2", writable=False)
KERNEL = {
    LUSTRE.path: "lustre 10.0.16.9@tcp:/abcdefgh",
    EFS.path: "nfs4 fs-0b.efs.us-west-2.amazonaws.com:/",
    BUCKET.path: "fuse mountpoint-s3",
}
"""Type and source as the kernel shows them."""
SIMULATED = "fuse.simulated-lustre /run/clusterctl-rehearsal/simulated/fs-0a.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh"


def row(path: str, shown: str) -> str:
    return f"36 35 98:0 / {path} rw,noatime shared:1 - {shown} rw,errors=continue\n"


def machine(root: Path, *mounts: MountPlan, slot: int = 2, seen: dict[str, str] | None = None) -> Path:
    """A node with these mounts whose kernel shows `seen`, and whose image has every client."""
    born(root, with_systemd=True, mounts=mounts, slot=slot)
    (root / "sbin").mkdir()
    for kind in ("lustre", "nfs4", "mount-s3"):
        (root / f"sbin/mount.{kind}").touch()
    (root / "proc/self").mkdir(parents=True)
    shown = KERNEL if seen is None else seen
    (root / "proc/self/mountinfo").write_text("".join(row(path, text) for path, text in shown.items()))
    return root


def systemd(outside: FakeOutside, *, starts: list[int] | None = None) -> FakeOutside:
    """`outside` with systemd's escaping; `starts`: exit codes of the first tries to mount, 0 after them."""
    codes = list(starts or [])

    def answer(argv: list[str]) -> tuple[int, str] | None:
        if argv[0] == "systemd-escape":
            return 0, argv[-1].strip("/").replace("/", "-") + ".mount"
        if argv[:2] == ["systemctl", "start"]:
            return (codes.pop(0) if codes else 0), ""
        return (0, "mount.nfs4: Failed to resolve server") if argv[0] == "journalctl" else None

    outside.answer = answer
    return outside


def test_each_file_system_has_a_unit_that_says_what_where_and_how(tmp_path: Path) -> None:
    mount_all(machine(tmp_path, LUSTRE, EFS, BUCKET), systemd(FakeOutside()))
    units = {path.name: path.read_text() for path in (tmp_path / "etc/systemd/system").iterdir()}
    assert sorted(units) == ["data.mount", "home-all.mount", "shared.mount"]
    assert units["shared.mount"].splitlines() == [
        "[Unit]",
        "After=dlami-nvme.service",
        "[Mount]",
        "Where=/shared",
        "What=fs-0a.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh",
        "Type=lustre",
        "Options=noatime,flock,_netdev",
        "MemoryHigh=25%",
    ]
    assert "What=s3://sets/imagenet/\nType=mount-s3\n" in units["data.mount"]
    assert "Options=nosuid,nodev,allow-other,region=us-west-2,ro,_netdev\n" in units["data.mount"]
    assert "Type=nfs4\nOptions=nfsvers=4.1," in units["home-all.mount"]


def test_a_plain_user_writes_to_a_bucket_that_is_writable() -> None:
    bucket = {"kind": "s3", "source": "results/", "options": "region=us-west-2", "writable": True}
    assert network(bucket)[2] == "nosuid,nodev,allow-other,dir-mode=0777,region=us-west-2,_netdev"


def test_a_percent_sign_is_no_specifier_of_systemds() -> None:
    assert "What=s3://b/100%%/\n" in unit_text("/data", "s3://b/100%/", "mount-s3", "ro")


def test_a_name_that_dns_does_not_know_yet_is_tried_again_less_and_less_often(tmp_path: Path) -> None:
    outside = systemd(FakeOutside(), starts=[32, 32, 32])
    mount_all(machine(tmp_path, EFS), outside)
    assert outside.slept_s == pytest.approx(1 + 2 + 4)


def test_a_mount_that_never_works_fails_in_bounds_with_what_the_helper_said(tmp_path: Path) -> None:
    outside = systemd(FakeOutside(), starts=[32] * 1000)
    with pytest.raises(PhaseFailed, match=r"after 240 s: home-all.mount: mount.nfs4: Failed to resolve server"):
        mount_all(machine(tmp_path, EFS), outside)
    assert MOUNTED_TIMEOUT_S < outside.slept_s < MOUNTED_TIMEOUT_S + 30


def test_an_image_without_the_client_fails_at_once_and_names_it(tmp_path: Path) -> None:
    root, outside = machine(tmp_path, LUSTRE), systemd(FakeOutside())
    (root / "sbin/mount.lustre").unlink()
    with pytest.raises(
        PhaseFailed, match=r"^/shared: there is no /sbin/mount.lustre: packages: or a script before-mounts"
    ):
        mount_all(root, outside)
    assert outside.commands == []


NFS = MountPlan(path="/data", kind="nfs", source="10.1.0.9:/export", options="hard", types=("nfs", "nfs4"))
FAST = MountPlan(path="/fast", kind="lustre", source="a@o2ib,b@tcp:/fs", options="flock", types=("lustre", "lustre"))


@pytest.mark.parametrize("version", ["nfs", "nfs4"])
def test_a_host_mounts_what_it_is_told_in_either_version_of_nfs(tmp_path: Path, version: str) -> None:
    seen = {NFS.path: f"{version} 10.1.0.9:/export", FAST.path: "lustre a@o2ib,b@tcp:/fs"}
    root = machine(tmp_path, NFS, FAST, seen=seen)
    (root / "sbin/mount.nfs").touch()
    mount_all(root, systemd(FakeOutside()))
    assert "What=10.1.0.9:/export\nType=nfs\nOptions=hard,_netdev\n" in unit(root, "data")
    assert "What=a@o2ib,b@tcp:/fs\nType=lustre\nOptions=flock,_netdev\n" in unit(root, "fast")


def test_nothing_is_written_to_a_server_of_somebody_s(tmp_path: Path) -> None:
    outside = systemd(FakeOutside())
    meet_peers(machine(tmp_path, NFS, FAST), outside)
    assert outside.commands == []


def unit(root: Path, name: str) -> str:
    return (root / f"etc/systemd/system/{name}.mount").read_text()


WRONG = {
    "nothing": ({}, "nothing of nowhere is mounted there"),
    "another kind": ({LUSTRE.path: "ext4 /dev/sda1"}, "ext4 of /dev/sda1 is mounted there"),
    "another file system": ({LUSTRE.path: "lustre 10.0.16.9@tcp:/zzzzzzzz"}, "lustre of 10.0.16.9@tcp:/zzzzzzzz"),
    "a simulated one of another kind": ({LUSTRE.path: SIMULATED.replace("lustre", "nfs4")}, "fuse.simulated-nfs4"),
}


@pytest.mark.parametrize(("seen", "reason"), WRONG.values(), ids=WRONG.keys())
def test_what_is_not_the_declared_file_system_is_named(tmp_path: Path, seen: dict[str, str], reason: str) -> None:
    with pytest.raises(PhaseFailed, match=r"^/shared: ") as caught:
        mount_all(machine(tmp_path, LUSTRE, seen=seen), systemd(FakeOutside()))
    assert reason in str(caught.value)
    assert "not lustre of tcp:/abcdefgh" in str(caught.value)


def test_a_stand_in_of_a_rehearsal_passes_under_its_own_name_alone() -> None:
    *_, seen_as, source = network({"kind": "fsx-lustre", "source": LUSTRE.source, "options": "", "writable": True})
    check(row("/shared", SIMULATED), "/shared", "lustre", seen_as, source)
    plain = SIMULATED.replace("fuse.simulated-lustre", "fuse.bindfs")
    with pytest.raises(PhaseFailed, match=r"fuse.bindfs of "):
        check(row("/shared", plain), "/shared", "lustre", seen_as, source)


def test_what_was_mounted_last_is_what_is_seen() -> None:
    assert mounted(row("/a", "ext4 /dev/x") + row("/a", "nfs4 b:/")) == {"/a": ("nfs4", "b:/")}


@given(
    path=st.text(min_size=1), source=st.text(min_size=1), optional=st.lists(st.sampled_from(["shared:1", "master:2"]))
)
def test_every_path_and_source_is_read_as_the_kernel_writes_it(path: str, source: str, optional: list[str]) -> None:
    """Linux 6.18, fs/proc_namespace.c, mangle(): these five characters, as octal (2026-11)."""

    def escaped(text: str) -> str:
        return "".join(f"\\{ord(character):03o}" if character in " \t\n\\#" else character for character in text)

    line = " ".join(["36 35 98:0 /", escaped("/" + path), "rw", *optional, "- nfs4", escaped(source), "rw"])
    assert mounted(f"{row('/', 'ext4 /dev/sda1')}{line}\n") == {
        "/": ("ext4", "/dev/sda1"),
        "/" + path: ("nfs4", source),
    }


def test_a_process_machine_mounts_nothing(tmp_path: Path) -> None:
    born(tmp_path, mounts=(LUSTRE,))
    outside = FakeOutside()
    mount_all(tmp_path, outside)
    meet_peers(tmp_path, outside)
    assert outside.commands == []


NONCE = "3f9c0a51b7de-1"


def test_slot_0_writes_a_note_that_names_cluster_run_generation_and_boot(tmp_path: Path) -> None:
    outside = FakeOutside()
    outside.answer = lambda argv: (0, f"{NONCE} 0 first-boot") if argv[0] == "cat" else None
    meet_peers(machine(tmp_path, LUSTRE, BUCKET, slot=0), outside)
    (write, read) = outside.commands
    assert write[3:] == [f"/shared/.clusterctl-{NONCE}", f"{NONCE} 0 first-boot\n", "fsx-lustre"]
    assert read == ["cat", f"/shared/.clusterctl-{NONCE}"]


def test_slot_0_says_in_bounds_why_it_cannot_write(tmp_path: Path) -> None:
    outside = FakeOutside()
    outside.answer = lambda argv: (1, "/shared: Read-only file system") if argv[0] == "sh" else None
    with pytest.raises(PhaseFailed, match=r"train-0 has not written /shared/.*: /shared: Read-only file system$"):
        meet_peers(machine(tmp_path, LUSTRE, slot=0), outside)
    assert MOUNTED_TIMEOUT_S < outside.slept_s < MOUNTED_TIMEOUT_S + 30


def test_slot_0_tries_again_until_it_may_write(tmp_path: Path) -> None:
    outside, codes = FakeOutside(), [1, 1, 0]
    outside.answer = lambda argv: (codes.pop(0), "denied") if argv[0] == "sh" else (0, f"{NONCE} 0 first-boot")
    meet_peers(machine(tmp_path, LUSTRE, slot=0), outside)
    assert codes == []


@pytest.mark.parametrize("found", ["cat: No such file or directory", "3f9c0a51b7de-10 0 another run"])
def test_another_slot_waits_in_bounds_and_names_whom_and_what_for(tmp_path: Path, found: str) -> None:
    outside = FakeOutside()
    outside.answer = lambda argv: (1, found)
    with pytest.raises(PhaseFailed, match=rf"train-0 has not written /shared/.clusterctl-{NONCE}: ") as caught:
        meet_peers(machine(tmp_path, LUSTRE), outside)
    assert found in str(caught.value)
    assert {argv[0] for argv in outside.commands} == {"cat"}, "only slot 0 writes"
    assert PEER_TIMEOUT_S < outside.slept_s < PEER_TIMEOUT_S + 30

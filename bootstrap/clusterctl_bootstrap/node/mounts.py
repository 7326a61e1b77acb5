"""Mounts the file systems of this node: starts a systemd unit for each, then checks what is mounted."""

import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import guard, hooks, nvme
from clusterctl_bootstrap.node.files import log, write_atomically
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.phase import PhaseFailed, wait

START_TIMEOUT_S = 100
MOUNTED_TIMEOUT_S = 240
PEER_TIMEOUT_S = 900
# Kind: what mount(8) calls it, what the kernel calls it, options.
# From FSx for Lustre's User Guide, "Mounting from an EC2 instance"; EFS's, "Recommended NFS mount options";
# mountpoint-s3's doc/CONFIGURATION.md (without nosuid,nodev mount(8) passes on what it refuses); all 2026-11.
NETWORK = {
    "fsx-lustre": ("lustre", "lustre", "noatime,flock"),
    "efs": ("nfs4", "nfs4", "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"),
    "s3": ("mount-s3", "fuse", "nosuid,nodev,allow-other"),
}
# An empty file system is opened to every user, as /tmp is: AWS makes it root's. mountpoint-s3 overwrites nothing, and a
# bucket may take hours to list.
WRITE = (
    '[ "$2" = s3 ] && [ -e "$0" ] && exit; cd "${0%/*}" && '
    '{ [ "$2" = s3 ] || [ "$(find . -mindepth 1 -print -quit)" ] || chmod 1777 . || :; } && echo "$1" >"$0"'
)


def mount_all(root: Path, outside: Outside) -> None:
    """Mounts every file system of the birth certificate and checks that it is what was declared. Raises PhaseFailed."""
    for mount in _mounts(root):
        path = mount["path"]
        if mount["kind"] != "nvme":
            what, kind, options, seen_as, source = network(mount)
            if not (root / "sbin" / ("mount." + kind)).exists():
                raise PhaseFailed(
                    "%s: there is no /sbin/mount.%s: packages: or a script before-mounts may install it" % (path, kind)
                )
        else:
            what, kind, options = nvme.volume(outside, mount["options"])
            # A disk that the image has mounted is bound: its own mount says what will be seen.
            seen_as, source = mounted(_mountinfo(root)).get(what, (kind, what))
        unit = outside.run(["systemd-escape", "--path", "--suffix=mount", path])[1]
        write_atomically(root / "etc/systemd/system" / unit, unit_text(path, what, kind, options))
        outside.run(["systemctl", "daemon-reload"])
        # DNS knows EFS's name a minute or two after its mount target, IAM a right some seconds after the role.
        wait(outside, MOUNTED_TIMEOUT_S, lambda: _start(root, outside, unit), 1, 2)  # noqa: B023  # runs here
        check(_mountinfo(root), path, kind, seen_as, source)
        if mount["kind"] == "nvme":
            outside.run(["chmod", "1777", path])


def meet(root: Path, outside: Outside) -> None:
    """Waits until slot 0 has written to each writable file system that nodes share and this node has read that.

    On hosts nothing is written: the server is somebody else's. Raises PhaseFailed.
    """
    known = facts_file.present(root)
    nonce = "%s-%s" % (known["cluster_id"], known.get("run"))
    for mount in _mounts(root):
        if mount["writable"] and mount["kind"] in NETWORK:
            note = "%s/.clusterctl-%s" % (mount["path"], nonce)
            text = "%s %s %s" % (nonce, known["generation"], (root / "run/clusterctl/boot-id").read_text())
            write = ["sh", "-c", WRITE, note, text, mount["kind"]]
            # A right to write may come some seconds after the role, too.
            timeout_s, argv = MOUNTED_TIMEOUT_S, write
            if known["slot"]:
                timeout_s, argv = PEER_TIMEOUT_S + hooks.longest_s(known), []
            name = known["cluster"] + "-0"
            wait(outside, timeout_s, lambda: _unread(outside, note, nonce, name, argv), 0.2, 1.3)  # noqa: B023


def network(mount: Dict[str, Any]) -> Tuple[str, str, str, str, str]:
    """What, type and options for mount(8); type and end of the source as the kernel will show them."""
    kind, seen_as, options = NETWORK.get(mount["kind"]) or (*mount["types"], "")
    what = mount["source"]
    # Lustre shows the server's address in place of its name; what follows the @ is the file system's own.
    source = what.split("@")[-1].rstrip("/")
    if mount["kind"] == "s3":
        what, source = "s3://" + what, "mountpoint-s3"
        options += ",dir-mode=0777" if mount["writable"] else ""  # all that a plain user needs for a new file
    words = [options, mount["options"], "" if mount["writable"] else "ro", "_netdev"]
    return what, kind, ",".join(word for word in words if word), seen_as, source


def unit_text(path: str, what: str, kind: str, options: str) -> str:
    """The systemd unit of a mount. A FUSE client runs in it, and may not take the memory that training needs.

    A person's unit may ask for the mount at boot, so it comes after the image's service that mounts the disks.
    """
    return (
        "[Unit]\nAfter=dlami-nvme.service\n[Mount]\nWhere=%s\nWhat=%s\nType=%s\nOptions=%s\nMemoryHigh=25%%\n"
        % tuple(text.replace("%", "%%") for text in (path, what, kind, options))
    )


def mounted(mountinfo: str) -> Dict[str, Tuple[str, str]]:
    """Path → type and source of what is mounted there last (proc(5), /proc/pid/mountinfo)."""
    found = {}
    for line in mountinfo.split("\n"):
        words = [re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), word) for word in line.split(" ")]
        if "-" in words[6:]:
            end = words.index("-", 6)
            found[words[4]] = (words[end + 1], words[end + 2])
    return found


def check(mountinfo: str, path: str, kind: str, seen_as: str, source: str) -> None:
    """Raises PhaseFailed when what is mounted at `path` is not what was declared.

    The stand-ins of a rehearsal show themselves as `fuse.simulated-…`, which nothing on AWS does.
    """
    found, found_source = mounted(mountinfo).get(path, ("nothing", "nowhere"))
    if found not in (kind, seen_as, "fuse.simulated-" + kind) or not found_source.rstrip("/").endswith(source):
        raise PhaseFailed("%s: %s of %s is mounted there, not %s of %s" % (path, found, found_source, seen_as, source))


def _mounts(root: Path) -> List[Dict[str, Any]]:
    """The mounts in the node's facts; none in a process machine, which has no systemd."""
    return facts_file.present(root).get("mounts") or [] if guard.applies(root) else []


def _mountinfo(root: Path) -> str:
    return (root / "proc/self/mountinfo").read_text(errors="surrogateescape")


def _start(root: Path, outside: Outside, unit: str) -> str:
    code, output = outside.run(["systemctl", "start", unit], START_TIMEOUT_S)
    if code:
        output = "%s: %s" % (unit, outside.run(["journalctl", "-qo", "cat", "-n4", "-u", unit])[1] or output)
        log(root, output)
    return output if code else ""


def _unread(outside: Outside, note: str, nonce: str, writer: str, write: List[str]) -> str:
    """Why the note is not there, empty if it is; the command `write`, if any, is run before."""
    code, output = outside.run(write) if write else (0, "")
    if not code:
        output = outside.run(["cat", note])[1]
    return "" if output.startswith(nonce + " ") else "%s has not written %s: %s" % (writer, note, output[-200:])

"""Makes a machine that exists a node, or takes back all that this wrote: `install` or `remove`, told by JSON on stdin.

Root runs it on the host, by its own Python (3.9 or newer) and the standard library. It changes no file that is there:
what it writes is new, or its own of before. Both may be cut short and done again. The answer is one line of JSON.
"""

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

RECEIPT = "/var/lib/clusterctl/host.json"
"""Written before all else: whose node this is, and which files came with it."""
BIRTH = "/var/lib/clusterctl/birth.json"
SSHD = "/etc/ssh/sshd_config.d/00-clusterctl.conf"
NODE_UNIT = "clusterctl-node.service"
FOLDERS = (
    *("/usr/local/lib/clusterctl", "/etc/clusterctl", "/etc/ssh/clusterctl", "/run/clusterctl"),
    *("/var/log/clusterctl", "/var/lib/clusterctl"),
)
"""Ours alone; the one with the receipt last, so that what is cut short is known and done again."""
WRITTEN_LATER = ("/etc/profile.d/clusterctl.sh", "/var/log/clusterctl.log")
"""By the agent."""
HOSTS_BEGIN, HOSTS_END = "# clusterctl: every node of the cluster", "# clusterctl: end"
COMMAND_S = 60


class Refused(Exception):
    """The host is left as it is; the text says why."""


def main(verb: str, told: Dict[str, Any]) -> Dict[str, Any]:
    """The answer: `ok`, whether anything `changed`, or the `error`."""
    os.umask(0o022)  # root's may keep others from the folders that are made
    try:
        return {"ok": True, "changed": install(told) if verb == "install" else remove(told)}
    except (Refused, OSError, KeyError, subprocess.SubprocessError) as e:
        return {"ok": False, "error": str(e) if isinstance(e, Refused) else "%s: %s" % (type(e).__name__, e)}


def install(told: Dict[str, Any]) -> bool:
    """Writes the files that are not there as they should be; True when one was written. Raises Refused."""
    refuse_another(told["cluster_id"])
    files = [*told["files"], {"path": SSHD, "content": sshd_text(told)}]
    known = set(receipt().get("files", ()))
    theirs = [each["path"] for each in files if os.path.lexists(each["path"]) and each["path"] not in known]
    if theirs:
        raise Refused("%s is there already and is not clusterctl's: move it away" % ", ".join(theirs))
    paths = sorted(known.union(each["path"] for each in files))
    text = json.dumps({"cluster_id": told["cluster_id"], "user": told["user"], "files": paths})
    write(RECEIPT, text + "\n", 0o644)
    written = [each["path"] for each in files if written_anew(each)]
    if SSHD in written or not has_reloaded_sshd():
        reload_sshd()
    if written or run("systemctl", "is-active", "--quiet", NODE_UNIT).returncode:
        for argv in (["daemon-reload"], ["enable", "--quiet", NODE_UNIT], ["restart", NODE_UNIT]):
            must("systemctl", *argv)
    return bool(written)


def remove(told: Dict[str, Any]) -> bool:
    """Takes back what `install` and the agent wrote; False when there was nothing. Raises Refused."""
    refuse_another(told["cluster_id"])
    found = receipt()
    if not found:
        return False
    stop_units()
    for path in (*found["files"], *WRITTEN_LATER, *of_user(found["user"])):
        if path not in (BIRTH, RECEIPT):
            Path(path).unlink(missing_ok=True)
    without_names(Path("/etc/hosts"))
    run("systemctl", "daemon-reload")
    reload_sshd()
    for folder in FOLDERS:
        if os.path.isdir(folder):
            shutil.rmtree(folder)
    return True


def of_user(name: str) -> List[str]:
    """What the agent wrote for the login user; nothing where there is no such user any more."""
    try:
        return [str(Path(pwd.getpwnam(name).pw_dir) / ".ssh/environment")]
    except KeyError:
        return []


def refuse_another(cluster_id: str) -> None:
    """Raises Refused where the machine is a node of another cluster."""
    for path in (BIRTH, RECEIPT):
        other = read(path).get("cluster_id", cluster_id)
        if other != cluster_id:
            raise Refused("it is a node of another cluster (id %s)" % other)


def receipt() -> Dict[str, Any]:
    """What was written before; empty for nothing."""
    return read(RECEIPT)


def read(path: str) -> Dict[str, Any]:
    """The object in a file; empty without one. Raises Refused for a file that holds none."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as e:
        raise Refused("%s cannot be read: %s" % (path, e)) from e
    if not isinstance(found, dict):
        raise Refused("%s holds no object" % path)
    return found


def written_anew(each: Dict[str, str]) -> bool:
    """Writes one file unless it is there as it should be."""
    path, content, mode = Path(each["path"]), each["content"], int(each.get("permissions", "0644"), 8)
    if path.is_file() and path.read_text(encoding="utf-8") == content:
        return False
    write(each["path"], content, mode)
    return True


def write(path: str, content: str, mode: int) -> None:
    """The file appears whole; the folders above it are made."""
    place, fresh = Path(path), Path(path + ".clusterctl-new")
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh.unlink(missing_ok=True)
    descriptor = os.open(str(fresh), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, stat.S_IRUSR | stat.S_IWUSR)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.replace(str(fresh), path)


def sshd_text(told: Dict[str, Any]) -> str:
    """The settings of sshd that nodes need, beside those that hold now for the login user.

    sshd takes the first value that it finds of each, so the files of keys that hold now are named again.
    """
    said = must(sshd(), "-T", "-C", "user=%s,host=localhost,addr=127.0.0.1" % told["user"])
    files: List[str] = []
    for line in said.splitlines():
        name, _, value = line.partition(" ")
        if name.lower() == "authorizedkeysfile":
            files = [word for word in value.split() if word != "none" and not word.startswith("/etc/ssh/clusterctl/")]
    keys = " ".join([*files, "/etc/ssh/clusterctl/keys-%u"])
    return "AuthorizedKeysFile %s\nPermitUserEnvironment %s\n" % (keys, ",".join(told["environment"]))


def sshd() -> str:
    """The SSH server's program. Raises Refused."""
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:/usr/bin")
    if found is None:
        raise Refused("there is no sshd in /usr/sbin")
    return found


def has_reloaded_sshd() -> bool:
    """Whether the settings that are on the disk hold: a run that was cut short may not have come to it."""
    return Path("/run/clusterctl-sshd").exists()


def reload_sshd() -> None:
    """Has the SSH server read its settings anew; connections stay. Raises Refused where it would not take them."""
    marker = Path("/run/clusterctl-sshd")
    marker.unlink(missing_ok=True)
    tested = run(sshd(), "-t")
    if tested.returncode:
        Path(SSHD).unlink(missing_ok=True)
        raise Refused("sshd does not take the settings, which are taken back: %s" % tested.stdout.strip()[-300:])
    if run("systemctl", "reload", "ssh.service").returncode:
        must("systemctl", "reload", "sshd.service")
    if Path(SSHD).exists():
        marker.touch()


def stop_units() -> None:
    """Ends the agent, and jobs with their supervisors: every unit of this name is clusterctl's."""
    said = run("systemctl", "list-units", "--all", "--plain", "--no-legend", "clusterctl-*").stdout
    units = [line.split()[0] for line in said.splitlines() if re.match(r"clusterctl-\S+ ", line)]
    run("systemctl", "disable", "--quiet", NODE_UNIT)
    if units:
        must("systemctl", "stop", *units)
    for unit in ("clusterctl-watch.service", "clusterctl-idle.service"):
        Path("/run/systemd/system", unit).unlink(missing_ok=True)


def without_names(hosts: Path) -> None:
    """/etc/hosts without the block of the cluster's names."""
    lines = hosts.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    if HOSTS_BEGIN not in lines:
        return
    begin = lines.index(HOSTS_BEGIN)
    end = lines.index(HOSTS_END, begin) if HOSTS_END in lines[begin:] else begin
    kept = "\n".join(lines[:begin] + lines[end + 1 :])
    fresh = hosts.with_name("hosts.clusterctl-new")
    fresh.write_text(kept, encoding="utf-8", errors="surrogateescape")
    shutil.copymode(str(hosts), str(fresh))
    os.replace(str(fresh), str(hosts))


def must(*argv: str) -> str:
    """The output of a command that has to succeed. Raises Refused."""
    done = run(*argv)
    if done.returncode:
        raise Refused("%s: exit %d: %s" % (" ".join(argv), done.returncode, done.stdout.strip()[-300:]))
    return done.stdout


def run(*argv: str) -> "subprocess.CompletedProcess[str]":
    """A command and what it said, within its time."""
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_S,
        check=False,
        encoding="utf-8",
        errors="replace",
    )


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.load(sys.stdin))))

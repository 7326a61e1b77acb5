"""Makes an existing machine a node (`install`), or takes back what that wrote (`remove`); the request is JSON on stdin.

Root runs it on the host, by its own Python (3.9 or newer) and the standard library. It replaces no file of the owner's:
what it writes is new, or its own from before. In /etc/hosts it takes back what the agent wrote. Both verbs may be
interrupted and repeated. The answer is one line of JSON.
"""

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set

from clusterctl.on_node.host import mounts
from clusterctl.on_node.host.commands import COMMAND_S, Refused, must, run

RECEIPT = "/var/lib/clusterctl/host.json"
"""Written before all else: whose node this is, and which files came with it."""
BIRTH = "/var/lib/clusterctl/birth.json"
SSHD = "/etc/ssh/sshd_config.d/00-clusterctl.conf"
KEYS = "/etc/ssh/clusterctl/keys-%u"
NODE_UNIT = "clusterctl-node.service"
UNITS = ("clusterctl-node.service", "clusterctl-watch.service", "clusterctl-idle.service", "clusterctl-job-*.service")
"""What the agent and jobs start; others of such a name, such as a timer for `clusterctl reap`, are the owner's."""
ENDS_CONTAINERS = "-containers.service"
"""The end of the name of a unit that a job leaves behind, to end its containers (on_node/job/keeper_service.py)."""
LIBRARY = "/usr/local/lib/clusterctl"
FOLDERS = (LIBRARY, "/etc/clusterctl", "/etc/ssh/clusterctl", "/run/clusterctl", "/var/log/clusterctl")
"""Folders that are ours alone, as is STATE, which is deleted last."""
STATE = "/var/lib/clusterctl"
WRITTEN_LATER = ("/etc/profile.d/clusterctl.sh", "/var/log/clusterctl.log")
"""Files that the agent writes."""
LOGIND = "/run/systemd/logind.conf.d/50-clusterctl-job.conf"
"""The file that the first job after a boot writes (on_node/job/keeper_service.py)."""
HOSTS_BEGIN, HOSTS_END = "# clusterctl: every node of the cluster", "# clusterctl: end"
HOSTS_ASIDE = "# clusterctl: put aside: "
"""Put before a line of the owner's that gave one of the cluster's names a loopback address."""
LOCK = "/run/clusterctl-host.lock"
LOCK_S = 30
CONTAINERS_S = 30
"""A job's processes have 10 s to end, and its containers are removed after that."""


def main(verb: str, request: Dict[str, Any]) -> Dict[str, Any]:
    """The answer: `ok`, whether anything `changed`, or the `error`."""
    os.umask(0o022)  # root's own might keep others out of the folders made here
    try:
        with alone(LOCK, LOCK_S):
            return {"ok": True, "changed": install(request) if verb == "install" else remove(request)}
    except (Refused, OSError, KeyError, subprocess.SubprocessError) as e:
        return {"ok": False, "error": str(e) if isinstance(e, Refused) else "%s: %s" % (type(e).__name__, e)}


@contextlib.contextmanager
def alone(place: str, wait_s: float) -> Iterator[None]:
    """Holds the lock, so that nobody else installs or removes, for any cluster; then deletes it. Raises Refused."""
    until = time.monotonic() + wait_s
    while True:
        descriptor = os.open(place, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, stat.S_IRUSR | stat.S_IWUSR)
        with os.fdopen(descriptor, "w") as file:
            if locked(file.fileno(), place):
                try:
                    yield
                finally:
                    os.unlink(place)
                return
        if time.monotonic() > until:
            raise Refused("another clusterctl changes it at this moment")
        time.sleep(0.2)


def locked(descriptor: int, place: str) -> bool:
    """Whether the lock is this process's; the file may have been deleted since it was opened."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    except (BlockingIOError, FileNotFoundError):
        return False


def install(request: Dict[str, Any]) -> bool:
    """Writes the files that are missing or differ; True when one was written. Raises Refused."""
    refuse_another(request["cluster_id"])
    found = receipt()
    known, users = set(found.get("files", ())), users_in(found)
    files = [*request["files"], {"path": SSHD, "content": sshd_text(request)}]
    paths = [each["path"] for each in files]
    new = [path for path in paths if path not in known]
    theirs = [path for path in (*new, *of_users({request["user"]} - users)) if os.path.lexists(path)]
    if theirs:
        raise Refused("%s is there already and is not clusterctl's: move it away" % ", ".join(theirs))
    wanted, had = request["mounts"], found.get("mounts", {})
    coming = sorted(set(wanted) - set(had))
    mounts.refuse_taken(coming)
    folders = sorted({*found.get("folders", ()), *mounts.missing_folders(coming)})
    write_receipt(request["cluster_id"], users | {request["user"]}, known.union(paths), {**wanted, **had}, folders)
    for path in sorted(path for path, what in had.items() if wanted.get(path) != what):
        mounts.unmount(path)
    needed = mounts.on_the_way(folders, wanted)
    mounts.remove_folders(set(folders) - set(needed))
    forget_done(files, Path(STATE))
    written = [each["path"] for each in files if write_if_changed(each)]
    for path in (*known.difference(paths), *of_users(users - {request["user"]})):
        Path(path).unlink(missing_ok=True)
    write_receipt(request["cluster_id"], {request["user"]}, paths, wanted, needed)
    if SSHD in written or not has_reloaded_sshd():
        reload_sshd(request)
    if written or run("systemctl", "is-active", "--quiet", NODE_UNIT).returncode:
        for argv in (["daemon-reload"], ["enable", "--quiet", NODE_UNIT], ["restart", NODE_UNIT]):
            must("systemctl", *argv)
    return bool(written)


def remove(request: Dict[str, Any]) -> bool:
    """Takes back what `install`, the agent and jobs wrote; False when nothing of this cluster is there."""
    found = receipt()
    if found.get("cluster_id") != request["cluster_id"]:
        return False
    stop_units()
    for path in sorted(found.get("mounts", ())):
        mounts.unmount(path)
    for path in (*found["files"], *WRITTEN_LATER, *of_users(users_in(found))):
        if path not in (BIRTH, RECEIPT):
            Path(path).unlink(missing_ok=True)
    without_names(Path("/etc/hosts"))
    run("systemctl", "daemon-reload")
    run("systemctl", "reset-failed", *UNITS)
    if os.path.exists(LOGIND):
        os.unlink(LOGIND)
        run("systemctl", "kill", "--kill-who=main", "--signal=HUP", "systemd-logind.service")
    reload_sshd()
    mounts.remove_folders(found.get("folders", ()))
    for folder in FOLDERS:
        if os.path.isdir(folder):
            shutil.rmtree(folder)
    delete_state(Path(STATE), delete)
    return True


def users_in(found: Dict[str, Any]) -> Set[str]:
    """The login users that the receipt names: more than one while a change of `ssh.user` goes on."""
    return set(found.get("users", ()))


def of_users(names: Iterable[str]) -> List[str]:
    """The files that the agent writes for these login users; none for a user that no longer exists."""
    found = []
    for name in sorted(names):
        with contextlib.suppress(KeyError):
            found.append(str(Path(pwd.getpwnam(name).pw_dir) / ".ssh/environment"))
    return found


def forget_done(files: Iterable[Dict[str, str]], state: Path) -> None:
    """Has scripts run again whose text has changed, and packages installed again if their list has.

    The scripts, and the marks that they have run, lie where the agent has them (node/hooks.py).
    """
    changed = {each["path"]: each["content"] for each in files if not is_up_to_date(each)}
    names = [Path(path).name for path in changed if Path(path).parent == state / "scripts"]
    birth = str(state / Path(BIRTH).name)
    if birth in changed and read(birth).get("packages") != json.loads(changed[birth]).get("packages"):
        names.append("packages")
    for name in names:
        (state / "done" / name).unlink(missing_ok=True)


def write_receipt(
    cluster_id: str, users: Iterable[str], paths: Iterable[str], mounted: Dict[str, str], folders: Iterable[str]
) -> None:
    """Writes down whose node this is, and what `remove` will take back."""
    row: Dict[str, Any] = {"cluster_id": cluster_id, "users": sorted(users), "files": sorted(paths)}
    row.update(mounts=mounted, folders=sorted(folders))
    write(RECEIPT, json.dumps(row) + "\n", 0o644)


def delete_state(folder: Path, delete: Callable[[Path], None]) -> None:
    """Deletes the folder; last, what says whose node this is, so that an interrupted `remove` can be repeated."""
    last = [Path(BIRTH).name, Path(RECEIPT).name]
    for path in sorted(folder.iterdir()):
        if path.name not in last:
            delete(path)
    kept = (folder / last[-1]).read_bytes()
    for name in last:
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:  # somebody wrote there just now
        (folder / last[-1]).write_bytes(kept)
        raise


def delete(path: Path) -> None:
    """Deletes a file or a whole folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(str(path))
    else:
        path.unlink()


def refuse_another(cluster_id: str) -> None:
    """Raises Refused where the machine is a node of another cluster."""
    for path in (BIRTH, RECEIPT):
        other = read(path).get("cluster_id", cluster_id)
        if other != cluster_id:
            raise Refused("it is a node of another cluster (id %s)" % other)


def receipt() -> Dict[str, Any]:
    """The receipt; empty if there is none."""
    return read(RECEIPT)


def read(path: str) -> Dict[str, Any]:
    """The object in a file; empty if there is no file. Raises Refused for a file without one."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as e:
        raise Refused("%s cannot be read: %s" % (path, e)) from e
    if not isinstance(found, dict):
        raise Refused("%s holds no object" % path)
    return found


def write_if_changed(each: Dict[str, str]) -> bool:
    """Writes a file if it is missing or differs; True when it was written."""
    if is_up_to_date(each):
        return False
    write(each["path"], each["content"], int(each.get("permissions", "0644"), 8))
    return True


def is_up_to_date(each: Dict[str, str]) -> bool:
    """Whether the file is there with this content."""
    path = Path(each["path"])
    return path.is_file() and path.read_bytes() == each["content"].encode()


def write(path: str, content: str, mode: int) -> None:
    """Writes a file, which appears complete, and makes the folders above it."""
    place, fresh = Path(path), Path(path + ".clusterctl-new")
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh.unlink(missing_ok=True)
    descriptor = os.open(str(fresh), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, stat.S_IRUSR | stat.S_IWUSR)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.replace(str(fresh), path)


def sshd_text(request: Dict[str, Any]) -> str:
    """The text of our file of settings for sshd, made from the settings that sshd has without that file.

    sshd takes the first value that it finds of a setting. So the files of keys that it reads now are named again, for
    the login user alone, when it comes from one of the nodes; the Match block ends with the file (sshd_config(5)).
    """
    argv = [sshd(), "-T", "-C", connection(request)]
    if os.path.exists(SSHD):  # hidden for this one process
        hide = 'mount --bind /dev/null "$0" && exec "$@"'
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, SSHD, *argv]
    return sshd_lines(must(*argv), request)


def connection(request: Dict[str, Any]) -> str:
    """A login from a node, as `sshd -T -C` wants it: with all that a Match block can test."""
    addresses = [request["addresses"][0]] * 3
    return "user=%s,host=%s,addr=%s,laddr=%s,lport=%d,rdomain=" % (request["user"], *addresses, request["port"])


def sshd_lines(settings: str, request: Dict[str, Any]) -> str:
    """The file's text; `settings`: what `sshd -T` prints without it. Pure."""
    rows = [line.partition(" ")[::2] for line in settings.splitlines()]
    files = [word for key, value in rows if key == "authorizedkeysfile" for word in value.split() if word != "none"]
    taken = [value for key, value in rows if key == "permituserenvironment" and value != "no"]
    lines = [
        # Not allowed within a Match block. An sshd that takes all variables already keeps doing so.
        *(["PermitUserEnvironment " + ",".join([*taken, *request["environment"]])] if "yes" not in taken else []),
        "Match User %s Address %s" % (request["user"], ",".join(request["addresses"])),
        "    AuthorizedKeysFile " + " ".join([*files, KEYS]),
    ]
    return "".join(line + "\n" for line in lines)


def sshd() -> str:
    """The SSH server's program. Raises Refused."""
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:/usr/bin")
    if found is None:
        raise Refused("there is no sshd in /usr/sbin")
    return found


def has_reloaded_sshd() -> bool:
    """Whether sshd has read the settings on the disk: an interrupted run may not have come to that."""
    return Path("/run/clusterctl-sshd").exists()


def reload_sshd(request: Optional[Dict[str, Any]] = None) -> None:
    """Has sshd read its settings again; connections stay. Raises Refused if it would not take them.

    `request`: that of `install`, after which our settings must be in force; None after they were removed.
    """
    marker = Path("/run/clusterctl-sshd")
    marker.unlink(missing_ok=True)
    tested = run(sshd(), "-t")
    if tested.returncode:
        Path(SSHD).unlink(missing_ok=True)
        raise Refused("sshd does not take the settings, which are taken back: %s" % tested.stdout.strip()[-300:])
    if request is not None and KEYS not in must(sshd(), "-T", "-C", connection(request)):
        Path(SSHD).unlink(missing_ok=True)
        raise Refused("sshd finds an AuthorizedKeysFile before that of %s: move it behind the Include" % SSHD)
    if run("systemctl", "reload", "ssh.service").returncode:
        must("systemctl", "reload", "sshd.service")
    if Path(SSHD).exists():
        marker.touch()


def stop_units() -> None:
    """Ends the agent, and jobs with their supervisors and containers."""
    run("systemctl", "disable", "--quiet", NODE_UNIT)
    until = time.monotonic() + CONTAINERS_S
    while True:
        units = running_units()
        # A job that is stopped starts the unit that ends its containers; that unit is left to do so.
        stopped = [unit for unit in units if not unit.endswith(ENDS_CONTAINERS) or time.monotonic() > until]
        if units and time.monotonic() > until + COMMAND_S:
            raise Refused("%s does not end" % ", ".join(units))
        if stopped:
            must("systemctl", "stop", *stopped)
        elif units:
            time.sleep(0.5)
        else:
            break
    for unit in ("clusterctl-watch.service", "clusterctl-idle.service"):
        Path("/run/systemd/system", unit).unlink(missing_ok=True)


def running_units() -> List[str]:
    """The units of the agent and of jobs that run or are about to: all that systemctl lists except failed ones."""
    rows = [
        line.split() for line in run("systemctl", "list-units", "--plain", "--no-legend", *UNITS).stdout.splitlines()
    ]
    return [row[0] for row in rows if row and row[0].startswith("clusterctl-") and "failed" not in row[2:3]]


def without_names(hosts: Path) -> None:
    """Takes the block of the cluster's names out of /etc/hosts, and restores the owner's lines that were put aside."""
    lines = hosts.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    begin = lines.index(HOSTS_BEGIN) if HOSTS_BEGIN in lines else len(lines)
    end = lines.index(HOSTS_END, begin) if HOSTS_END in lines[begin:] else begin
    owners = [*lines[:begin], *lines[end + 1 :]]
    kept = [line[len(HOSTS_ASIDE) :] if line.startswith(HOSTS_ASIDE) else line for line in owners]
    if kept == lines:
        return
    fresh = hosts.with_name("hosts.clusterctl-new")
    try:
        fresh.write_text("\n".join(kept), encoding="utf-8", errors="surrogateescape")
        shutil.copymode(str(hosts), str(fresh))
        os.replace(str(fresh), str(hosts))
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.load(sys.stdin))))

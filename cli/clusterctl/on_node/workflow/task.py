"""The main program of a workflow's task on its node: its files, its group, its command, what it has put out.

It is a job's only rank, as the login user, in a /tmp of the job's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

from clusterctl.on_node.workflow import barrier
from clusterctl.on_node.workflow.upload import NotUploaded, upload

FOLDER = "clusterctl-task"
WORDS = "task.json"
BIN, LAST_BIN = "bin", "last-bin"
"""Folders of programs before and behind all others of PATH."""
OWN_FAILURE = 125
"""As docker has it: what is around the command failed, not the command."""
CANNOT_RUN, NOT_FOUND = 126, 127
MOST_TRIES = 1000
MOST_SHOWN = 10
RESOLV_CONF = Path("/etc/resolv.conf")
MARK_START = "# clusterctl:"
"""How a task's own resolv.conf begins."""
VERSION = re.compile(r"[1-9]\d{0,8}")


class TaskFailed(Exception):
    """Something around the command went wrong."""


def main(folder: Path) -> int:
    """The exit code of the task's command, or `OWN_FAILURE`. `folder` holds `task.json` and the task's files."""
    words = json.loads((folder / WORDS).read_text())
    try:
        put_files(words["files"], folder)
        Path(words["output"]).mkdir(parents=True, exist_ok=True)
        link_inputs(words["inputs"])
        pass_barrier(words["barrier"], os.environ)
    except (OSError, TaskFailed, barrier.Failed) as e:
        print("clusterctl: %s" % e, flush=True)
        return OWN_FAILURE
    code = run(words["command"], folder)
    begins_anew = any(first <= code <= last for first, last in words["again"])
    failures = [keep_output(Path(words["output"]), output, begins_anew) for output in words["outputs"]]
    return code or (OWN_FAILURE if any(failures) else 0)


def keep_output(folder: Path, output: Mapping[str, Any], begins_anew: bool) -> bool:
    """Keeps one output and prints what became of it; True if that failed.

    Nothing goes into a bucket if the task starts again, because its next start could not replace it.
    """
    try:
        if "url" not in output:
            kept = keep(folder / output["path"], Path(output["dataset"]))
            print("clusterctl: %s is kept as %s" % (output["path"] or "{{output}}", kept), flush=True)
        elif begins_anew:
            print("clusterctl: %s: left to the task's next start" % output["url"], flush=True)
        else:
            count, left_out = upload(folder, Path(output["folder"]))
            told = "; left out, for they are no files: %s" % ", ".join(left_out[:MOST_SHOWN]) if left_out else ""
            files = "1 file" if count == 1 else "%d files" % count
            print("clusterctl: {{output}} is in %s: %s%s" % (output["url"], files, told), flush=True)
    except (OSError, TaskFailed, NotUploaded) as e:
        where = "%s: " % output["url"] if "url" in output else ""
        print("clusterctl: an output was not kept: %s%s" % (where, e), flush=True)
        return True
    return False


def put_files(files: Sequence[Mapping[str, str]], folder: Path) -> None:
    """Each file in its place. Raises OSError."""
    for file in files:
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / file["source"], path)
        path.chmod(0o755)


def link_inputs(inputs: Sequence[Mapping[str, str]]) -> None:
    """A link to each input, of a dataset to the version that is meant. Raises TaskFailed, OSError.

    Of a URL that is one file: a folder with a link to that.
    """
    for each in inputs:
        path = Path(each["path"]) if "path" in each else version_of(Path(each["dataset"]), each["version"])
        link = Path(each["link"])
        link.parent.mkdir(parents=True, exist_ok=True)
        if "url" in each and path.is_file():
            link.mkdir()
            link = link / path.name
        elif not path.is_dir():
            raise TaskFailed("input %s: %s is not there" % (link.name, each.get("url", path)))
        link.symlink_to(path)


def version_of(dataset: Path, version: str) -> Path:
    """The folder of this version, or of the newest where none is named. Raises TaskFailed."""
    if version:
        return dataset / version
    if not dataset.is_dir() or not versions(dataset):
        raise TaskFailed("%s: no version of this dataset was kept yet" % dataset)
    return dataset / str(max(versions(dataset)))


def pass_barrier(words: Dict[str, Any], environment: Mapping[str, str]) -> None:
    """Returns once all tasks of the group are there; at once for a group without a barrier. Raises Failed."""
    if not words:
        return
    names = words["names"]
    # The lead's job has a port for JAX that is free on its node, and no task's program has begun that could want it.
    port = words["port"] or int(environment["JAX_COORDINATOR_ADDRESS"].rpartition(":")[2])
    key = environment[barrier.KEY_VARIABLE]
    barrier.wait(len(names), words["rank"], words["connect"], port, float(words["timeout_s"]), key, names)


def run(command: Sequence[str], folder: Path) -> int:
    """The command's exit code, or 128 + its signal."""
    environment = dict(os.environ)
    environment["PATH"] = search_path(folder, environment.get("PATH", ""), has_names=has_name_server(RESOLV_CONF))
    # The command hears SIGTERM by itself, which goes to the whole process group; what it has put out is still kept.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        child = subprocess.Popen(list(command), env=environment, cwd="/tmp")
    except OSError as e:
        print("clusterctl: %s: %s" % (command[0], e.strerror), flush=True)
        return NOT_FOUND if isinstance(e, FileNotFoundError) else CANNOT_RUN
    status = child.wait()
    return 128 - status if status < 0 else status


def search_path(folder: Path, path: str, *, has_names: bool) -> str:
    """PATH, with ours behind all others; our nslookup stands first where no name server knows the nodes."""
    own, last = str(folder / BIN), str(folder / LAST_BIN)
    return os.pathsep.join([path, last, own] if has_names else [own, path, last])


def has_name_server(resolv_conf: Path) -> bool:
    """Whether programs that ask a name server learn the names of the nodes: the node's supervisor saw to it."""
    try:
        return resolv_conf.read_text(errors="replace").startswith(MARK_START)
    except OSError:
        return False


def keep(source: Path, dataset: Path) -> Path:
    """The dataset's new version, which holds a copy of the file or folder; whole, or not there. Raises OSError."""
    if not source.exists():
        raise TaskFailed("%s is not there" % source)
    dataset.mkdir(parents=True, exist_ok=True)
    beside = dataset / (".new-%s-%d" % (os.environ.get("CLUSTERCTL_JOB", ""), os.getpid()))
    try:
        if source.is_dir():
            shutil.copytree(source, beside, symlinks=True)
        else:
            beside.mkdir()
            shutil.copy2(source, beside / source.name)
        return _numbered(beside, dataset)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _numbered(beside: Path, dataset: Path) -> Path:
    """Renamed to the next number that nobody else takes meanwhile."""
    for _ in range(MOST_TRIES):
        version = dataset / str(1 + max(versions(dataset), default=0))
        try:
            # An empty folder is what rename(2) may replace, and mkdir gives it to one of two tasks alone.
            version.mkdir()
        except FileExistsError:
            continue
        os.rename(beside, version)
        return version
    raise TaskFailed("%s: no number for a new version was free" % dataset)


def versions(dataset: Path) -> Sequence[int]:
    """The numbers of a dataset's versions."""
    return [int(path.name) for path in dataset.iterdir() if VERSION.fullmatch(path.name)]


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent))

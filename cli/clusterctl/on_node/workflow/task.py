"""The main program of a workflow's task on its node: sees to its files, its group, its command, and its outputs.

It is a job's only rank, as the login user, in a /tmp of the job's own.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

from clusterctl.on_node.workflow import barrier
from clusterctl.on_node.workflow.checkpoint import Checkpoint
from clusterctl.on_node.workflow.command import Command
from clusterctl.on_node.workflow.inputs import NoInput, link_inputs
from clusterctl.on_node.workflow.outputs import keep_output, say
from clusterctl.on_node.workflow.upload import BadExpression, file_filter

FOLDER = "clusterctl-task"
WORDS = "task.json"
BIN, LAST_BIN = "bin", "last-bin"
"""Folders for PATH: of our nslookup, and of a torchrun, which comes last."""
OWN_FAILURE = 125
"""Docker's code for a failure around the command, not of the command itself."""
RESOLV_CONF = Path("/etc/resolv.conf")
MARK_START = "# clusterctl:"
"""How a task's own resolv.conf begins."""


class TaskFailed(Exception):
    """Something around the command went wrong."""


def main(folder: Path) -> int:
    """The exit code of the task's command, or `OWN_FAILURE`. `folder` holds `task.json` and the task's files."""
    words = json.loads((folder / WORDS).read_text())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may not be valid text
    try:
        refuse_missing(words["mounts"])
        for each in (*words["inputs"], *words["outputs"], *words["checkpoints"]):
            file_filter(each["regex"])  # now, and not after hours of work
        put_files(words["files"], folder)
        Path(words["output"]).mkdir(parents=True, exist_ok=True)
        link_inputs(words["inputs"])
        pass_barrier(words["barrier"], os.environ)
    except (OSError, TaskFailed, NoInput, BadExpression, barrier.Failed) as e:
        say(str(e))
        return OWN_FAILURE
    checkpoints = [Checkpoint(each, say) for each in words["checkpoints"]]
    for checkpoint in checkpoints:
        checkpoint.start()
    ended = Command(say).run(words["command"], command_environment(folder), "/tmp")
    begins_anew = any(first <= ended.code <= last for first, last in words["again"])
    how = {"job": os.environ.get("CLUSTERCTL_JOB", ""), "exit_code": ended.code, "begins_anew": begins_anew}
    how.update({"node_ends": ended.why} if ended.why else {})
    failures = [keep_output(Path(words["output"]), output, how) for output in words["outputs"]]
    failures += [checkpoint.finish() for checkpoint in checkpoints]
    return exit_code(ended.code, failures)


def exit_code(command: int, failures: Sequence[bool]) -> int:
    """The exit code of the task: its command's, or `OWN_FAILURE` where only keeping its outputs has failed."""
    return command or (OWN_FAILURE if any(failures) else 0)


def refuse_missing(mounts: List[str]) -> None:
    """Raises TaskFailed where a folder of the node that the task mounts is not there."""
    for path in mounts:
        if not os.path.exists(path):
            raise TaskFailed("volumeMounts: %s is not on this node" % path)


def put_files(files: Sequence[Mapping[str, str]], folder: Path) -> None:
    """Copies each file to its place. Raises OSError."""
    for file in files:
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / file["source"], path)
        path.chmod(0o755)


def pass_barrier(
    words: Dict[str, Any], environment: Mapping[str, str], wait: Callable[..., None] = barrier.wait
) -> None:
    """Returns once all tasks of the group are there; at once for a group without a barrier. Raises Failed."""
    if not words:
        return
    names = words["names"]
    # The lead's job has a port for JAX that is free on its node, and no task's program has begun that could want it.
    port = words["port"] or int(environment["JAX_COORDINATOR_ADDRESS"].rpartition(":")[2])
    key = environment[barrier.KEY_VARIABLE]
    wait(len(names), words["rank"], words["connect"], port, float(words["timeout_s"]), key, names)


def command_environment(folder: Path) -> Dict[str, str]:
    """The variables that the command begins with."""
    environment = dict(os.environ)
    environment["PATH"] = search_path(folder, environment.get("PATH", ""), has_names=has_name_server(RESOLV_CONF))
    return environment


def search_path(folder: Path, path: str, *, has_names: bool) -> str:
    """PATH with our folders last; but our nslookup is first where no name server knows the nodes."""
    own, last = str(folder / BIN), str(folder / LAST_BIN)
    return os.pathsep.join([path, last, own] if has_names else [own, path, last])


def has_name_server(resolv_conf: Path) -> bool:
    """Whether programs that ask a name server learn the names of the nodes: the job's keeper may have seen to it."""
    try:
        return resolv_conf.read_text(errors="replace").startswith(MARK_START)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent))

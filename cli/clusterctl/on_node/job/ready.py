"""What a job needs on one node before it starts, besides its files: its interpreter, and its setup command."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, Dict, List, Mapping, Optional, Tuple

from clusterctl.on_node.job import container, job_containers, lease, own_python
from clusterctl.on_node.job.job_environment import job_environment, job_folder
from clusterctl.on_node.job.keeper_service import HIDDEN
from clusterctl.on_node.job.launch import member_of
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.this_process import hide

POLL_S = 0.1
RENEW_S = 5.0
END_BYTES = 1024 * 1024
SETUPS = "var/lib/clusterctl/setups"
NOTHING = "run/clusterctl/nothing"


def answer_lock(layout: Layout, job: str, program: Path) -> Dict[str, Any]:
    """The verb `lock`: the job's requirements with each version, for which only its first node is asked."""
    os.umask(0o022)
    return Readying(layout, job, program).lock()


def answer_ready(layout: Layout, job: str, program: Path) -> Dict[str, Any]:
    """The verb `ready`: makes the job's interpreter and runs its setup command.

    Reads the lock as a line of JSON from stdin.
    """
    os.umask(0o022)
    return Readying(layout, job, program).make(str(json.loads(sys.stdin.buffer.readline())["lock"]))


class Readying:
    """Makes one job ready on this node, which is held for it: everything runs as the job's user, with a log."""

    def __init__(self, layout: Layout, job: str, program: Path) -> None:
        self._layout, self._job, self._program = layout, job, program
        self._spec = read_json(layout.spec(job))
        self._slot = int(read_json(layout.node_file)["slot"])
        self._user = pwd.getpwnam(self._spec["user"])
        self._rank = member_of(self._spec, self._slot)
        self._log = layout.attempt(job, self._spec["attempt"]) / "ready.log"
        has_image = bool(self._spec.get("image_id"))
        self._containers = job_containers.JobContainers(layout, self._spec, self._rank, program) if has_image else None

    def lock(self) -> Dict[str, Any]:
        """Resolves the requirements, on the job's first node alone; gives each with its version. Raises ValueError."""
        self._hide()
        self._make_folders()
        python = own_python.facts_of(self._named_python(), self.run)
        return {"lock": own_python.lock(self._layout, self._spec, python, self.run)}

    def make(self, lock_text: str) -> Dict[str, Any]:
        """Makes the job's environment and runs its setup command; gives the job's interpreter. Raises ValueError."""
        self._hide()
        self._make_folders()
        python = own_python.facts_of(self._named_python(), self.run)
        own_python.refuse_other_python(python[1], str(self._spec.get("requires_python") or ""))
        made = {}
        if self._spec.get("requirements"):
            place = own_python.environment_of(self._layout, self._spec, lock_text, python, self.run)
            own = own_python.made_by_image(self._layout, self._spec, place.name)
            python = own_python.facts_of(str(place / "bin/python"), self.run, making=own)
            made = {"environment": str(place)}
        if self._spec.get("requirements") or self._spec.get("python"):
            own_python.write_python(self._layout, self._job, python[0], version=python[1], **made)
        if self._spec.get("setup"):
            self._set_up(python)
        return {"interpreter": python[0], "version": python[1]}

    def _named_python(self) -> str:
        """The interpreter that was asked for: the image's where the job has one. Raises ValueError."""
        if self._containers is not None:
            return str(self._spec.get("python") or "python3")
        return own_python.find_python(self._spec.get("python"), self._user.pw_dir)

    def _set_up(self, python: List[str]) -> None:
        """Runs the setup command once on a node for the same command, files that it names, and interpreter.

        In an image it runs for each job, since what it changes lasts in the job's own folders only.
        """
        command = str(self._spec["setup"])
        if self._containers is not None:
            self._run_setup(command)
            return
        folder = job_folder(self._layout, self._spec)
        named = [folder / word for word in command.split() if not word.startswith(("/", "-"))]
        # Read by the job's user: what lies there may be a link to what only root may read, or to what has no end.
        # Relative paths, since `contents` has them: an absolute path would differ from job to job.
        files = [str(path.relative_to(folder)) for path in named if ".." not in path.parts and path.is_file()]
        _, contents = self.run(["sha256sum", "--", *files], keeps_output=True) if files else (0, "")
        mark = self._layout.root / SETUPS / own_python.digest(command, *python, contents)
        if mark.exists():
            return
        self._run_setup(command)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def _run_setup(self, command: str) -> None:
        code, output = self.run(["/bin/sh", "-c", command], is_contained=True)
        if code:
            raise ValueError("--setup exited with code %d: %s" % (code, own_python.last_of(output)))

    def _hide(self) -> None:
        """Hides what is hidden from the job itself: pip, and the setup command, run programs of others, too.

        In an image these see nothing but the container.
        """
        if os.getuid() == 0 and not self._spec["is_sudo"] and self._containers is None:
            hide(HIDDEN, self._layout.root / NOTHING)

    def _make_folders(self) -> None:
        """Makes the folder of environments for the login user, where it is not there yet."""
        place = own_python.environments(self._layout, self._spec)
        if self._spec.get("shared"):
            self.run(["mkdir", "-p", str(place)])
        elif not place.exists():
            place.mkdir(parents=True)
            os.chown(place, self._user.pw_uid, self._user.pw_gid)

    def run(
        self,
        argv: List[str],
        *,
        keeps_output: bool = False,
        stdin: Optional[str] = None,
        variables: Optional[Mapping[str, str]] = None,
        is_contained: bool = False,
        making: Optional[Path] = None,
    ) -> Tuple[int, str]:
        """Runs a program; its exit code, and the end of what it printed. Raises ValueError if the node is not held now.

        `stdin`: what it reads, if anything; `variables`: in addition to the job's; `is_contained`: in a container of
        the job's image, where it has one, which can write the folder `making`.
        """
        spec = self._spec
        environment = {**self.environment(), **(variables or {})}
        engine = self._containers if is_contained else None
        # The engine's command is root's.
        is_theirs = os.getuid() == 0 and engine is None
        if engine is not None:
            argv = engine.ready_argv(argv, {"PIP_NO_CACHE_DIR": "1", **environment}, making=making)
        else:
            become = [sys.executable, "-IS", str(self._program), "become", "yes" if spec["is_sudo"] else "no", "--"]
            argv = [*become, *argv]
        before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log, in_memory(stdin or "") as given:
            child = subprocess.Popen(
                argv,
                env=environment if engine is None else container.CLIENT_ENVIRONMENT,
                cwd=job_folder(self._layout, spec) if engine is None else "/",
                stdin=subprocess.DEVNULL if stdin is None else given,
                stdout=subprocess.PIPE if keeps_output else log,
                stderr=log,
                start_new_session=True,
                user=self._user.pw_uid if is_theirs else None,
                group=self._user.pw_gid if is_theirs else None,
                extra_groups=os.getgrouplist(self._user.pw_name, self._user.pw_gid) if is_theirs else None,
            )
            output = self._awaited(child)
        with self._log.open("rb") as log_file:
            log_file.seek(max(before, self._log.stat().st_size - END_BYTES))
            logged = log_file.read().decode("utf-8", "replace")
        return child.returncode, output if keeps_output and not child.returncode else logged

    def environment(self) -> Dict[str, str]:
        """The variables that the job's programs begin with; in a container the job's GPUs are counted from 0."""
        seen = self._spec if self._containers is None else container.renumbered(self._spec)
        return job_environment(self._layout, seen, self._rank)

    def _awaited(self, child: "subprocess.Popen[bytes]") -> str:
        """Waits for the child, and holds the node meanwhile; returns what the child printed to a pipe of ours."""
        renewed_s: Optional[float] = None
        while True:
            if renewed_s is None or time.monotonic() - renewed_s > RENEW_S:
                renewed_s = time.monotonic()
                if not lease.renew(self._layout, self._job):
                    child.kill()
                    container.remove_job(self._layout, self._job)
                    raise ValueError("%s has lost its lease on the node" % self._job)
            try:
                output, _ = child.communicate(timeout=POLL_S)
                return (output or b"").decode("utf-8", "replace")
            except subprocess.TimeoutExpired:
                continue


def in_memory(text: str) -> IO[bytes]:
    """A file on no disk that begins with this text, for a child's stdin.

    A pipe takes 64 KiB, and `communicate` with a timeout forgets what it has not written when that is over.
    """
    stream = os.fdopen(os.memfd_create("stdin"), "w+b")
    stream.write(text.encode())
    stream.seek(0)
    return stream

"""A job's image on its way to a node, with a login to its registry where that wants one.

A login is in a file that root alone may read, on tmpfs, for as long as the pull takes. Both engines read the format of
docker's `config.json`: docker from the folder that DOCKER_CONFIG names, podman from the file of `--authfile`
(containers-auth.json(5); Docker's reference of `docker login`, read 2026-11-26).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from clusterctl.on_node.job.container import CLIENT_ENVIRONMENT, LOOK_S, PODMAN, present_engine
from clusterctl.on_node.job.layout import Layout

PULL_S = 3600.0
LOGINS = "run/clusterctl/registry-logins"
FILE = "config.json"
DOCKER_HUB = "docker.io"
DOCKER_HUB_KEYS = ("https://index.docker.io/v1/", DOCKER_HUB)
"""What docker, and what podman, calls Docker Hub's registry."""
HIDDEN = "***"


def answer_pull(layout: Layout, image: str, has_login: str = "no") -> Dict[str, Any]:
    """The verb `pull`: the id of the image, which is on this node now.

    Reads the registry's login, if any, as a line of JSON from stdin.
    """
    exit_on_signals()
    login = str(json.loads(sys.stdin.buffer.readline())["login"]) if has_login == "yes" else ""
    return {"image_id": pulled_image(present_engine(), image, root=layout.root, login=login)}


def pulled_image(engine: str, image: str, *, root: Path, login: str = "") -> str:
    """The id of the image on this node, pulled if it is not there yet.

    `login`: USER:PASSWORD for its registry; empty: root's own logins are used. Raises ValueError, OSError.
    """
    found = _image_id(engine, image)
    if found:
        return found
    if login:
        with login_folder(root, image, login) as folder:
            _pull(engine, image, folder, login)
    else:
        _pull(engine, image, None, "")
    found = _image_id(engine, image)
    if not found:
        raise ValueError("%s pull %s: it says that it is there, and it is not" % (engine, image))
    return found


def registry_of(image: str) -> str:
    """The registry that a name of an image means: its first part where that is a host, else Docker Hub."""
    first, slash, _ = image.partition("/")
    return first if slash and (first == "localhost" or "." in first or ":" in first) else DOCKER_HUB


def exit_on_signals() -> None:
    """From now on SIGTERM and SIGHUP end this process by SystemExit, so that the login it wrote is deleted."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, leave)


def login_file(image: str, login: str) -> str:
    """The text of a file with a login to the image's registry alone."""
    registry = registry_of(image)
    row = {"auth": base64.b64encode(login.encode()).decode()}
    return json.dumps({"auths": dict.fromkeys(DOCKER_HUB_KEYS if registry == DOCKER_HUB else (registry,), row)})


def pull_command(engine: str, image: str, folder: Path | None) -> Tuple[List[str], Dict[str, str]]:
    """The engine's argv and environment; `folder` has the login, if there is one."""
    begin, end = [engine, "pull", "--quiet"], [image]
    if folder is None:
        return [*begin, *end], CLIENT_ENVIRONMENT
    if engine == PODMAN:
        return [*begin, "--authfile", str(folder / FILE), *end], CLIENT_ENVIRONMENT
    return [*begin, *end], {**CLIENT_ENVIRONMENT, "DOCKER_CONFIG": str(folder)}


@contextlib.contextmanager
def login_folder(root: Path, image: str, login: str) -> Iterator[Path]:
    """A folder with the login, for root alone, deleted afterwards; so are folders of earlier pulls that were killed."""
    logins = root / LOGINS
    logins.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in logins.iterdir():
        if not (root / "proc" / path.name).exists():
            shutil.rmtree(path, ignore_errors=True)
    folder = logins / str(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        file = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(login_file(image, login))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pull(engine: str, image: str, folder: Path | None, login: str) -> None:
    argv, environment = pull_command(engine, image, folder)
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    try:
        _, errors = child.communicate(timeout=PULL_S)
    except subprocess.TimeoutExpired as e:
        raise ValueError("%s pull %s: not there after %d minutes" % (engine, image, PULL_S // 60)) from e
    finally:
        child.kill()
    if child.returncode:
        password = login.partition(":")[2]
        line = _last_line(errors)
        raise ValueError("%s pull: %s" % (engine, line.replace(password, HIDDEN) if password else line))


def _image_id(engine: str, image: str) -> str:
    """`sha256:…`; empty where the node does not have it. Raises ValueError where the engine does not work."""
    argv = [engine, "image", "inspect", image]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOOK_S, env=CLIENT_ENVIRONMENT
        )
    except subprocess.TimeoutExpired as e:
        raise ValueError("%s: no answer within %g s" % (" ".join(argv[:3]), LOOK_S)) from e
    if done.returncode:
        if is_absent(done.stderr):
            return ""
        raise ValueError("%s: %s" % (engine, _last_line(done.stderr)))
    try:
        return "sha256:" + str(json.loads(done.stdout)[0]["Id"]).split(":")[-1]
    except (ValueError, LookupError, TypeError) as e:
        raise ValueError("%s image inspect %s: an answer without an id" % (engine, image)) from e


def is_absent(errors: bytes) -> bool:
    """Whether docker or podman says that the node does not have the image; anything else is a failure. Pure."""
    return any(words in errors.lower() for words in (b"no such image", b"image not known"))


def _last_line(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].replace("Error: ", "", 1)[:500] if lines else "it failed without a message"

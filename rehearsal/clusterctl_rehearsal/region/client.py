"""A client of the region: finds it, starts it if it does not run, repeats requests that a restart interrupted."""

from __future__ import annotations

import errno
import fcntl
import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol  # JSON values

from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import CHECKS_SIGNATURES, HOME_VARIABLE, IS_ENDING, REGION_PRIVATE, REGION_TOKEN_HEADER
from clusterctl_infra.private_home import make_private_folder, private_opener, secure_home

from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.machines.owners import REGION_MODULE
from clusterctl_rehearsal.refusal import AwsError, NothingThere, StandInRefusal

START_TIMEOUT_S = 20.0
REQUEST_TIMEOUT_S = 600.0
"""The very first machine waits until its base image is built."""
RETRIES = 5
FULL_BYTES = 64 * 1024
"""A disk with less than this free counts as full; a region that starts writes less."""


class RegionUnreachable(Exception):
    """The region's server cannot be started (the message has its log's last line), is silent, or may not be used."""

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(f"{sentence}; next: {hint}" if hint else sentence)
        self.sentence = sentence
        self.hint = hint


class RegionClient:
    """Sends the region's private requests, over one connection per thread."""

    def __init__(self, home: RehearsalHome, *, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._home = home
        self._timeout_s = timeout_s
        self._local = threading.local()
        self._open: list[http.client.HTTPConnection] = []

    def __enter__(self) -> RegionClient:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections of all threads."""
        while self._open:
            self._open.pop().close()

    def ask(
        self, verb: str, asked: dict[str, Any], progress: Callable[[str], None] = lambda message: None
    ) -> dict[str, Any]:
        """The answer. Raises AwsError, NothingThere, StandInRefusal (any other refusal), RegionUnreachable.

        Repeats a request that the region's end interrupted. Nothing is made twice: creates carry a client token.
        """
        answer = self._answered(verb, asked, progress)
        error = answer.get("aws")
        if error is not None:
            raise AwsError(error["code"], error["message"], status=error["status"])
        if "absent" in answer:
            raise NothingThere(answer["absent"])
        if "refused" in answer:
            raise StandInRefusal(answer["refused"])
        return dict(answer["result"])

    def _answered(self, verb: str, asked: dict[str, Any], progress: Callable[[str], None]) -> dict[str, Any]:
        attempt = 0
        while True:
            try:
                return self._once(verb, asked, progress)
            except (OSError, http.client.HTTPException, ValueError) as e:
                self._forget_connection()
                if attempt == RETRIES:
                    details = f"{type(e).__name__}: {e}; its log: {self._home.log_file}"
                    raise RegionUnreachable(f"the rehearsed region does not answer ({details})") from e
            time.sleep(0.05 * attempt)
            attempt += 1

    def _once(self, verb: str, asked: dict[str, Any], progress: Callable[[str], None]) -> dict[str, Any]:
        connection, token = self._connection()
        connection.request("POST", REGION_PRIVATE + verb, json.dumps(asked), {REGION_TOKEN_HEADER: token})
        response = connection.getresponse()
        if response.status != 200:
            response.read()
            raise ValueError(f"HTTP {response.status}")  # our token may be from before a restart
        while True:
            row = json.loads(response.readline())
            if "progress" not in row:
                response.read()
                return dict(row)
            progress(row["progress"])

    def _connection(self) -> tuple[http.client.HTTPConnection, str]:
        found: tuple[http.client.HTTPConnection, str] | None = getattr(self._local, "connection", None)
        if found is None:
            host, port = ensure_region(self._home)["endpoint"].removeprefix("http://").split(":")
            connection = http.client.HTTPConnection(host, int(port), timeout=self._timeout_s)
            self._open.append(connection)
            found = self._local.connection = connection, self._home.token_file.read_text()
        return found

    def _forget_connection(self) -> None:
        found: tuple[http.client.HTTPConnection, str] | None = getattr(self._local, "connection", None)
        if found is not None:
            found[0].close()
            self._open.remove(found[0])
        self._local.connection = None


def running_region(home: RehearsalHome) -> dict[str, Any] | None:
    """What region.json says (endpoint, pid, started_at) if that process serves now, and is not about to end."""
    try:
        row = json.loads(home.endpoint_file.read_bytes())
        with home.lock_file.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _serving(row)
    except (FileNotFoundError, ValueError):
        return None
    except OSError as e:
        if e.errno != errno.ENOLCK:
            raise
        return _serving(row)  # a file system without locks
    return None


def _serving(row: object) -> dict[str, Any] | None:
    """What region.json says if it names a process that lives, and is not about to end."""
    if not isinstance(row, dict) or not isinstance(row.get("pid"), int) or row.get(IS_ENDING):
        return None
    return row if _alive(row["pid"]) else None


def ensure_region(home: RehearsalHome) -> dict[str, Any]:
    """The running region, started if need be. Raises RegionUnreachable, and OSError where the home is full."""
    _secure(home)
    found = running_region(home)
    if found is not None:
        return _of_this_version(found)
    make_private_folder(home.root)
    with open(home.start_lock_file, "w", opener=private_opener) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = running_region(home)
        return start_region(home) if found is None else _of_this_version(found)


def _of_this_version(found: dict[str, Any]) -> dict[str, Any]:
    if not found.get(CHECKS_SIGNATURES):
        message = (
            f"the running region was started by an older clusterctl (process {found['pid']}), and answers every user "
            "of this computer"
        )
        raise RegionUnreachable(message, hint="clusterctl rehearse clean --all")
    return found


def _secure(home: RehearsalHome) -> None:
    """Closes the home to other users; tells the person if it was open. Raises RegionUnreachable for an unsafe home."""
    try:
        changed = secure_home({**os.environ, HOME_VARIABLE: str(home.root.parent)})
    except UsageError as e:
        raise RegionUnreachable(e.message, hint=e.hint or "") from e
    if changed is not None:
        print(changed, file=sys.stderr)


def _own_environment(home: RehearsalHome) -> dict[str, str]:
    """The region's environment, without the person's AWS profile: boto3 would look for it, and may not find it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    files = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    return {**kept, **files, "AWS_EC2_METADATA_DISABLED": "true", HOME_VARIABLE: str(home.root.parent)}


class Started(Protocol):
    """A region's process, as its starter sees it."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""


def start_region(
    home: RehearsalHome,
    *,
    start: Callable[[RehearsalHome], Started] | None = None,
    find: Callable[[RehearsalHome], dict[str, Any] | None] = running_region,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Starts the region; returns what region.json says once it serves. The caller holds the lock on `start_lock_file`.

    `start`: starts its process. Raises RegionUnreachable, and OSError where the home is full.
    """
    start = _started if start is None else start
    before = home.log_file.stat().st_size if home.log_file.exists() else 0
    process = start(home)
    deadline = clock() + START_TIMEOUT_S
    while clock() < deadline:
        found = find(home)
        if found is not None:
            return found
        exit_code = process.poll()
        if exit_code == 0:  # its predecessor held the lock for too long, and may be gone now
            process = start(home)
        elif exit_code is not None:
            break
        pause(0.01)
    if shutil.disk_usage(home.root).free < FULL_BYTES:  # then its log cannot say so
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(home.root))
    raise RegionUnreachable(f"the rehearsed region does not start: {_log_end(home.log_file, before)}")


def _started(home: RehearsalHome) -> subprocess.Popen[bytes]:
    with open(home.log_file, "ab", opener=private_opener) as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", REGION_MODULE],
            cwd="/",
            env=_own_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()  # so that it is no zombie if it ends before we do
    return process


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _log_end(path: Path, start: int) -> str:
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"its log {path} is empty"

"""The rehearsed region as the engine's side needs it: where it listens, what boots in it."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from clusterctl_infra.errors import RehearsalError
from clusterctl_infra.names import HOME_VARIABLE, REGION_PRIVATE, REGION_TOKEN_FILE, REGION_TOKEN_HEADER

from clusterctl.home import Home
from clusterctl.system.processes import command_line
from clusterctl.text.next_commands import edit

ENSURE_S = 60.0
ANSWER_S = 5.0
MODULE = "clusterctl_rehearsal"
ENSURE_MODULE = f"{MODULE}.region.ensure"
SETTINGS_FILE = "rehearsal.yaml"
LOG_FILE = "region.log"
LOOK = "clusterctl rehearse list"
NEXT = "; next: "
"""Before a command in a sentence of the stand-in."""


def ensure_region(home: Home, environ: Mapping[str, str]) -> str:
    """The endpoint of the running region; it is started if need be. Raises RehearsalError."""
    text = _said_by(ENSURE_MODULE, home, environ, timeout_s=ENSURE_S)
    try:
        return str(json.loads(text)["endpoint"])
    except (ValueError, KeyError, TypeError) as e:
        told = f"the rehearsed region said what is no endpoint: {text.strip()[:200]}"
        raise RehearsalError(told, hint=LOOK) from e


def region_endpoint(home: Home, environ: Mapping[str, str]) -> str:
    """Where the region listens, and will for a while: it ends by itself when it is empty and nobody asks it anything.

    Raises RehearsalError.
    """
    announced = announced_endpoint(home)
    if announced is not None and _answers(announced):
        return announced
    return ensure_region(home, environ)


def start_beside(home: Home, environ: Mapping[str, str]) -> threading.Thread:
    """Has the region there when the thread ends, and not the caller wait; why it is not is told to who asks for it."""

    def start() -> None:
        with contextlib.suppress(RehearsalError):
            region_endpoint(home, environ)

    thread = threading.Thread(target=start, name="region", daemon=True)
    thread.start()
    return thread


def announced_endpoint(home: Home) -> str | None:
    """The endpoint in region.json, when the process that wrote it lives."""
    try:
        row = json.loads((home.rehearsal_dir / "region.json").read_bytes())
        endpoint, pid = str(row["endpoint"]), int(row["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return endpoint if any(word.startswith(f"{MODULE}.") for word in command_line(pid)) else None


def tell_region(home: Home, environ: Mapping[str, str], stack_dir: Path, *, cluster: str) -> None:
    """Has the region behave as the stack's rehearsal.yaml says, before the engine asks it.

    Raises RehearsalError, also where the cluster's machines could not be made: a rehearsal elsewhere has its name.
    """
    endpoint = region_endpoint(home, environ)
    path = stack_dir / SETTINGS_FILE
    try:
        token = (home.rehearsal_dir / REGION_TOKEN_FILE).read_text(encoding="ascii")
        body = json.dumps({"folder": str(stack_dir), "cluster": cluster}).encode()
        answer = json.loads(_posted(endpoint, f"{REGION_PRIVATE}stack", body, {REGION_TOKEN_HEADER: token}))
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise RehearsalError(f"the rehearsed region does not answer ({type(e).__name__}: {e})", hint=LOOK) from e
    if "refused" in answer:
        said, _, helps = str(answer["refused"]).partition(NEXT)
        raise RehearsalError(said, hint=helps or edit(path))


def _answers(endpoint: str) -> bool:
    """Whether it answers a request, which also puts off its end."""
    try:
        _posted(endpoint, "/", b"", {})
    except (OSError, http.client.HTTPException):
        return False
    return True


def _posted(endpoint: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    place = urlsplit(endpoint)
    with contextlib.closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=ANSWER_S)) as asked:
        asked.request("POST", path, body=body, headers={**headers, "Content-Length": str(len(body))})
        return asked.getresponse().read()


def machine_kind(stack_dir: Path) -> str:
    """What the stack's rehearsal.yaml boots: `auto`, `nspawn`, `process` or `none`."""
    try:
        data = yaml.safe_load((stack_dir / SETTINGS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "auto"
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        path = stack_dir / SETTINGS_FILE
        raise RehearsalError(f"{path}: cannot be read: {e}", hint=edit(path)) from e
    return str(data.get("machines", "auto")) if isinstance(data, dict) else "auto"


def _said_by(module: str, home: Home, environ: Mapping[str, str], *, timeout_s: float) -> str:
    argv = [sys.executable, "-m", module]
    try:
        done = subprocess.run(
            argv,
            env={**environ, HOME_VARIABLE: str(home.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as e:
        told = f"the rehearsed region did not start in {timeout_s:.0f} s"
        raise RehearsalError(told, hint=f"tail {home.rehearsal_dir / LOG_FILE}") from e
    except OSError as e:
        raise RehearsalError(f"the rehearsed region does not start: {e}", hint=LOOK) from e
    if done.returncode != 0:
        message, hint = sentence_and_hint(done.stderr or done.stdout)
        raise RehearsalError(message or f"{' '.join(argv[1:])} failed", hint=hint or LOOK)
    return done.stdout


def sentence_and_hint(said: str) -> tuple[str, str | None]:
    """What the rehearsal's own command line said, and the command that it named; its last lines are the verdict."""
    lines = said.strip().splitlines()
    hint = next((line.strip().removeprefix("next: ") for line in lines if line.startswith("  next: ")), None)
    words = [line for line in lines if not line.startswith("  next: ")]
    return (words[-1].removeprefix("clusterctl rehearse: ") if words else ""), hint

"""The rehearsed region as the engine's side needs it: where it listens, what boots in it."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from clusterctl_infra.errors import RehearsalError
from clusterctl_infra.names import (
    CHECKS_SIGNATURES,
    HOME_VARIABLE,
    IS_ENDING,
    REGION_KEYS_FILE,
    REGION_PRIVATE,
    REGION_TOKEN_FILE,
    REGION_TOKEN_HEADER,
)
from clusterctl_infra.region_keys import RegionAccess, read_keys

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
"""What stands before the command that helps, in an error of the stand-in."""


def region_access(home: Home, environ: Mapping[str, str]) -> RegionAccess:
    """How to reach the region, which is started if need be; it ends once it is empty and nobody asks it anything.

    Raises RehearsalError.
    """
    endpoint = region_endpoint(home, environ)
    file = home.rehearsal_dir / REGION_KEYS_FILE
    try:
        return RegionAccess(endpoint_url=endpoint, keys=read_keys(file))
    except (OSError, ValueError) as e:
        message = f"the rehearsed region has no key pair to ask it with ({type(e).__name__}: {e})"
        raise RehearsalError(message, hint="clusterctl rehearse region stop") from e


def ensure_region(home: Home, environ: Mapping[str, str]) -> str:
    """The endpoint of the running region; it is started if need be. Raises RehearsalError."""
    text = _output_of(ENSURE_MODULE, home, environ, timeout_s=ENSURE_S)
    try:
        return str(json.loads(text)["endpoint"])
    except (ValueError, KeyError, TypeError) as e:
        message = f"the answer of the rehearsed region is not an address: {text.strip()[:200]}"
        raise RehearsalError(message, hint=LOOK) from e


def region_endpoint(home: Home, environ: Mapping[str, str]) -> str:
    """Where the region listens; it is started if need be.

    Raises RehearsalError, also if an older clusterctl's region runs.
    """
    announced = announced_endpoint(home)
    if announced is not None and _answers(announced, home):
        return announced
    return ensure_region(home, environ)


def start_beside(home: Home, environ: Mapping[str, str]) -> threading.Thread:
    """Starts the region in a thread, so that the caller need not wait. If that fails, the error is raised later,
    where the region is used.
    """

    def start() -> None:
        with contextlib.suppress(RehearsalError):
            region_endpoint(home, environ)

    thread = threading.Thread(target=start, name="region", daemon=True)
    thread.start()
    return thread


def announced_endpoint(home: Home, words_of: Callable[[int], Sequence[str]] = command_line) -> str | None:
    """The endpoint in region.json, when the process that wrote it lives, answers its owner alone, and is not about to
    end. `words_of`: the command line of a process.
    """
    try:
        row = json.loads((home.rehearsal_dir / "region.json").read_bytes())
        endpoint, pid = str(row["endpoint"]), int(row["pid"])
        is_usable = bool(row.get(CHECKS_SIGNATURES)) and not row.get(IS_ENDING)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not is_usable:
        return None
    return endpoint if any(word.startswith(f"{MODULE}.") for word in words_of(pid)) else None


def tell_region(home: Home, environ: Mapping[str, str], stack_dir: Path, *, cluster: str) -> None:
    """Has the region behave as the stack's rehearsal.yaml says, before the engine asks it.

    Raises RehearsalError, also if the cluster's machines could not be made because a rehearsal elsewhere has its name.
    """
    endpoint = region_endpoint(home, environ)
    path = stack_dir / SETTINGS_FILE
    try:
        answer = json.loads(_answer_of_region(endpoint, home, "stack", {"folder": str(stack_dir), "cluster": cluster}))
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise RehearsalError(f"the rehearsed region does not answer ({type(e).__name__}: {e})", hint=LOOK) from e
    if "refused" in answer:
        message, _, command = str(answer["refused"]).partition(NEXT)
        raise RehearsalError(message, hint=command or edit(path))


def _answers(endpoint: str, home: Home) -> bool:
    """Whether the region answers its owner; asking also puts off the region's end."""
    try:
        _answer_of_region(endpoint, home, "ping", {})
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return True


def _answer_of_region(endpoint: str, home: Home, verb: str, asked: Mapping[str, str]) -> bytes:
    """What the region answers its owner. Raises OSError, HTTPException, and ValueError for a status other than OK."""
    token = (home.rehearsal_dir / REGION_TOKEN_FILE).read_text(encoding="ascii")
    place = urlsplit(endpoint)
    body = json.dumps(asked).encode()
    with contextlib.closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=ANSWER_S)) as asking:
        asking.request("POST", REGION_PRIVATE + verb, body=body, headers={REGION_TOKEN_HEADER: token})
        answer = asking.getresponse()
        content = answer.read()
        if answer.status != http.client.OK:
            raise ValueError(f"HTTP {answer.status}")
        return content


def machine_kind(stack_dir: Path) -> str:
    """What the stack's rehearsal.yaml boots: `auto`, `nspawn`, `process` or `none`. Raises RehearsalError."""
    try:
        data = yaml.safe_load((stack_dir / SETTINGS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "auto"
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        path = stack_dir / SETTINGS_FILE
        raise RehearsalError(f"{path}: cannot be read: {e}", hint=edit(path)) from e
    return str(data.get("machines", "auto")) if isinstance(data, dict) else "auto"


def _output_of(module: str, home: Home, environ: Mapping[str, str], *, timeout_s: float) -> str:
    argv = [sys.executable, "-P", "-m", module]
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
        message = f"the rehearsed region did not start in {timeout_s:.0f} s"
        raise RehearsalError(message, hint=f"tail {home.rehearsal_dir / LOG_FILE}") from e
    except OSError as e:
        raise RehearsalError(f"the rehearsed region does not start: {e}", hint=LOOK) from e
    if done.returncode != 0:
        message, hint = sentence_and_hint(done.stderr or done.stdout)
        raise RehearsalError(message or f"{module} failed", hint=hint or LOOK)
    return done.stdout


def sentence_and_hint(text: str) -> tuple[str, str | None]:
    """The last sentence that the rehearsal's own command line printed, and the command that it named as the next."""
    lines = text.strip().splitlines()
    hint = next((line.strip().removeprefix("next: ") for line in lines if line.startswith("  next: ")), None)
    words = [line for line in lines if not line.startswith("  next: ")]
    return (words[-1].removeprefix("clusterctl rehearse: ") if words else ""), hint

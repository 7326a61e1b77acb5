"""The engine for this checkout, found or made, and the wrapper `.venv/bin/pulumi` that runs it.

Tried in this order: a suitable `pulumi` on PATH, what an earlier run cached, Pulumi's own release,
a build from Go modules. The cache lies outside the checkout, so a second clone finds it ready.
The language host must lie beside the real binary: the engine looks there first, symlinks resolved.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import go_modules
import pulumi_release
from engine_failure import EngineFailure

CHECKOUT = Path(__file__).resolve().parent.parent
ENVIRONMENT_BIN = CHECKOUT / ".venv" / "bin"
LANGUAGE_HOST_FILES = ("pulumi-language-python", "pulumi-language-python-exec")
PLUGIN_HOST = ("get.pulumi.com", 443)
PLUGIN_CONNECT_S, PLUGIN_S = 5.0, 1800.0
ENGINE_FILES = ("pulumi", *LANGUAGE_HOST_FILES, "pulumi-resource-pulumi-python")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A real `pulumi` binary, and in a few words where it came from."""

    binary: Path
    origin: str


def main() -> int:
    arguments = parse_arguments()
    versions = tomllib.loads((CHECKOUT / "scripts" / "versions.toml").read_text())["engine"]
    try:
        engine = find_engine(versions, source=arguments.source)
        install_wrapper(engine.binary)
    except EngineFailure as failure:
        print(f"scripts/engine: {failure}", file=sys.stderr)
        return 1
    except OSError as failure:
        print(
            f"scripts/engine: {failure.filename} cannot be written: {failure.strerror}; {cache_hint()}", file=sys.stderr
        )
        return 1
    print(f"engine {engine_version(engine.binary)} ({engine.origin})", file=sys.stderr)
    print(aws_plugin(), file=sys.stderr)
    return 0


def aws_plugin(*, host: tuple[str, int] = PLUGIN_HOST, environ: Mapping[str, str] = os.environ) -> str:
    """A line about the engine's AWS plugin, after fetching it if possible: only clusters on AWS need it.

    It is not fetched in CI, where nothing runs on AWS and each run would download hundreds of MB.
    """
    wanted = version("pulumi_aws")
    name, later = f"AWS plugin {wanted}", "the first clusterctl up on AWS fetches it"
    pulumi = str(ENVIRONMENT_BIN / "pulumi")
    there = subprocess.run([pulumi, "plugin", "ls", "--json"], capture_output=True, text=True, timeout=60, check=False)
    rows = json.loads(there.stdout) if there.returncode == 0 else []
    if any((row.get("kind"), row.get("name"), row.get("version")) == ("resource", "aws", wanted) for row in rows):
        return f"{name} is there"
    if environ.get("CI"):
        return f"{name} is not fetched in CI; {later}"
    try:
        socket.create_connection(host, timeout=PLUGIN_CONNECT_S).close()
    except OSError as failure:
        return f"{name} is not fetched, {host[0]} does not answer ({failure}); {later}"
    print(f"+ pulumi plugin install resource aws {wanted} (its size is not known beforehand)", file=sys.stderr)
    try:
        done = subprocess.run([pulumi, "plugin", "install", "resource", "aws", wanted], timeout=PLUGIN_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{name} was not fetched in {PLUGIN_S / 60:.0f} minutes; {later}"
    return f"{name} is there" if done.returncode == 0 else f"{name} could not be fetched; {later}"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/engine", description="Gives .venv/bin/pulumi.")
    parser.add_argument(
        "--source",
        choices=("path", "cache", "release", "modules"),
        help="take the engine from here only (default: try them in this order)",
    )
    return parser.parse_args()


def find_engine(versions: dict[str, object], *, source: str | None) -> Engine:
    """The first engine that can be had. Raises EngineFailure with what was tried and what helps."""
    if source in (None, "path") and (found := engine_on_path(versions)) is not None:
        return found
    if source == "path":
        raise EngineFailure("no suitable pulumi on PATH; next: scripts/engine")
    target = cache_folder() / "engine" / str(versions["version"])
    with locked(target.parent):
        if source in (None, "cache") and is_complete(target):
            return Engine(binary=target / "pulumi", origin=f"cached in {target}")
        if source == "cache":
            raise EngineFailure(f"nothing cached in {target}; next: scripts/engine")
        return make_engine(versions, target, source=source)


def engine_on_path(versions: dict[str, object]) -> Engine | None:
    lowest, excluded = parse(str(versions["version"])), parse(str(versions["newest_excluded"]))
    for folder in os.get_exec_path():
        binary = Path(folder) / "pulumi"
        if Path(folder).resolve() == ENVIRONMENT_BIN or not os.access(binary, os.X_OK):
            continue
        version = parse(engine_version(binary))
        beside = binary.resolve().parent
        if not lowest <= version < excluded:
            print(f"{binary} is version {version}, wanted {lowest} or newer", file=sys.stderr)
        elif not all((beside / name).exists() for name in LANGUAGE_HOST_FILES):
            print(f"{binary} has no Python language host beside it", file=sys.stderr)
        else:
            return Engine(binary=binary.resolve(), origin=str(binary))
    return None


def make_engine(versions: dict[str, object], target: Path, *, source: str | None) -> Engine:
    for stale in target.parent.glob(".making-*"):
        shutil.rmtree(stale)
    reasons = []
    ways = {"release": pulumi_release.download, "modules": go_modules.build}
    for name, make in ways.items():
        if source not in (None, name):
            continue
        making = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
        try:
            make(versions, making)
            put_in_place(making, target)
        except EngineFailure as failure:
            reasons.append(str(failure))
            if len(reasons) < len(ways) and source is None:
                print(f"{failure}: trying the next way", file=sys.stderr)
            continue
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return Engine(binary=target / "pulumi", origin=f"{name}, cached in {target}")
    raise EngineFailure(
        f"no engine: {'; '.join(reasons)}. Next, with Pulumi {versions['version']} or "
        f"Go {go_modules.wanted_go(versions)} on PATH, or the network in reach: scripts/engine"
    )


def put_in_place(making: Path, target: Path) -> None:
    missing = [name for name in ENGINE_FILES if not (making / name).is_file()]
    if missing:
        raise EngineFailure(f"what was made lacks {', '.join(missing)}")
    for name in ENGINE_FILES:
        (making / name).chmod(0o755)
    making.chmod(0o755)
    engine_version(making / "pulumi")
    if target.exists():
        shutil.rmtree(target)
    making.rename(target)


def is_complete(target: Path) -> bool:
    return all(os.access(target / name, os.X_OK) for name in ENGINE_FILES)


def install_wrapper(engine: Path) -> None:
    """Writes `.venv/bin/pulumi`, whole or not at all; not if it is up to date, as in a read-only checkout."""
    template = (CHECKOUT / "scripts" / "pulumi-wrapper").read_text()
    text, wrapper = wrapper_text(template, checkout=CHECKOUT, engine=engine), ENVIRONMENT_BIN / "pulumi"
    if wrapper.is_file() and wrapper.read_text() == text:
        return
    with tempfile.NamedTemporaryFile("w", dir=ENVIRONMENT_BIN, delete=False) as fresh:
        fresh.write(text)
    os.chmod(fresh.name, 0o755)
    os.replace(fresh.name, wrapper)


def wrapper_text(template: str, *, checkout: Path, engine: Path) -> str:
    text = template.replace("@CHECKOUT@", shlex.quote(str(checkout)))
    return text.replace("@ENGINE@", shlex.quote(str(engine)))


def engine_version(binary: Path) -> str:
    """The version `binary` reports, without the leading v. Raises EngineFailure when it does not run."""
    # pulumi logs even this, in ~/.pulumi if no home is named; so it gets the checkout's, as the wrapper does.
    home = {"PULUMI_HOME": str(CHECKOUT / ".pulumi" / "home"), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    environment = {**home, **os.environ}
    argv = [str(binary), "version"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, env=environment)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise EngineFailure(f"{binary} does not run: {failure}") from failure
    if done.returncode != 0:
        raise EngineFailure(f"{binary} does not run: {done.stderr.strip()}")
    return done.stdout.strip().removeprefix("v")


def parse(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def cache_folder() -> Path:
    if own := os.environ.get("CLUSTERCTL_CACHE"):
        return Path(own)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "clusterctl"


def cache_hint() -> str:
    """Where the engine is kept, and the command that keeps it in another folder."""
    return f"it is kept in {cache_folder()}; next: export CLUSTERCTL_CACHE=/var/tmp/clusterctl-cache && scripts/engine"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time make an engine; the others wait, then find it."""
    folder.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w") as lock:
        os.fchmod(lock.fileno(), 0o600)  # whoever can read it can hold it, and an older script let everybody read it
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())

"""The engine built from its Go modules, where Pulumi's own release cannot be had."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from engine_failure import EngineFailure

ENGINE = "github.com/pulumi/pulumi/pkg/v3"
SDK = "github.com/pulumi/pulumi/sdk/v3"
BUILD_TIMEOUT_S = 45 * 60
HEARTBEAT_S = 30


def build(versions: dict[str, Any], target: Path) -> None:
    """Fills `target` with the engine, the language host and the SDK's two scripts.

    Raises EngineFailure when Go is missing or too old, or when the build fails or takes too long.
    """
    check_go(versions)
    version, host = versions["version"], versions["modules"]["language_host"]
    minutes = versions["modules"]["minutes"]
    print(f"building the engine from Go modules: about {minutes} minutes, once", file=sys.stderr)
    replace = versions["modules"]["replace"]
    folder = write_module(target / "engine-module", {ENGINE: version, SDK: version}, replace, versions)
    build_program(folder, f"{ENGINE}/cmd/pulumi", version, target)
    copy_scripts(folder, target)
    folder = write_module(target / "host-module", {SDK: host}, {}, versions)
    build_program(folder, f"{SDK}/python/cmd/pulumi-language-python", host, target)
    for folder in (target / "engine-module", target / "host-module"):
        shutil.rmtree(folder)


def wanted_go(versions: dict[str, Any]) -> str:
    return str(versions["modules"]["go"])


def check_go(versions: dict[str, Any]) -> None:
    wanted = wanted_go(versions)
    if shutil.which("go") is None:
        raise EngineFailure(f"Go is not installed (wanted: {wanted} or newer, to build the engine)")
    found = run_go(["version"], Path.cwd(), timeout_s=30)
    match = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", found)
    if match is None:
        raise EngineFailure(f"`go version` says {found.strip()!r}")
    version = tuple(int(part or 0) for part in match.groups())
    if version < tuple(int(part) for part in wanted.split(".")):
        raise EngineFailure(f"Go is {match[0].removeprefix('go')}, wanted {wanted} or newer")


def write_module(folder: Path, requires: dict[str, str], replace: dict[str, str], versions: dict[str, Any]) -> Path:
    """Writes a main module that requires exactly `requires`; Go heeds replacements only in the main module."""
    folder.mkdir()
    lines = ["module clusterctl.invalid/engine", f"go {wanted_go(versions)}"]
    lines += [f"require {module} v{version}" for module, version in requires.items()]
    lines += [f"replace {module} => {other}" for module, other in replace.items()]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
    return folder


def build_program(folder: Path, package: str, version: str, target: Path) -> None:
    flags = f"-s -w -X {SDK}/go/common/version.Version=v{version}"
    output = target / package.rpartition("/")[2]
    arguments = ["build", "-mod=mod", "-buildvcs=false", "-o", str(output), "-ldflags", flags, package]
    run_go(arguments, folder, timeout_s=BUILD_TIMEOUT_S)


def copy_scripts(folder: Path, target: Path) -> None:
    found = json.loads(run_go(["list", "-mod=mod", "-m", "-json", SDK], folder, timeout_s=300))
    source = Path(found["Dir"]) / "python"
    for script in ("cmd/pulumi-language-python-exec", "dist/pulumi-resource-pulumi-python"):
        shutil.copyfile(source / script, target / Path(script).name)


def run_go(arguments: list[str], folder: Path, *, timeout_s: float) -> str:
    """What `go` printed on stdout; a line on stderr every half minute. Raises EngineFailure with its last lines."""
    argv = ["go", *arguments]
    environment = {**os.environ, "GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN", "local")}
    if arguments[0] == "build":
        print(f"+ go build {arguments[-1]}", file=sys.stderr)
    process = subprocess.Popen(
        argv, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    started = time.monotonic()
    with process:
        while True:
            try:
                stdout, stderr = process.communicate(timeout=HEARTBEAT_S)
                break
            except subprocess.TimeoutExpired:
                passed_s = time.monotonic() - started
                if passed_s > timeout_s:
                    process.kill()
                    raise EngineFailure(f"`go {arguments[0]}` took over {timeout_s / 60:.0f} minutes") from None
                print(f"  still building, {passed_s:.0f} s", file=sys.stderr)
            except BaseException:
                process.kill()
                raise
    if process.returncode != 0:
        lines = [line for line in stderr.splitlines() if not line.startswith("go: downloading")]
        raise EngineFailure(f"`go {arguments[0]}` failed: " + " / ".join(lines[-3:]))
    return stdout

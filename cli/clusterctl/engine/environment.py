"""What the engine may see: its variables, for a real run and for a rehearsal, which can never spend money.

A rehearsal gets no AWS credential, profile or metadata service, no plugin from PATH, and a PULUMI_HOME in which only
the stand-in is called aws. The engine prefers a plugin on PATH to one in PULUMI_HOME (engine 3.250), hence
PULUMI_IGNORE_AMBIENT_PLUGINS.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from clusterctl_infra.errors import EngineError
from clusterctl_infra.names import (
    HOME_VARIABLE,
    NONCE_VARIABLE,
    REHEARSAL_CREDENTIAL,
    STACK_DIR_VARIABLE,
    STACK_NAME_VARIABLE,
)
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.region_keys import RegionAccess
from clusterctl_infra.version import VERSION

from clusterctl.engine.stack import Stack
from clusterctl.home import Home

RUN_VARIABLE = "CLUSTERCTL_RUN"
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL"
PYTHON_VARIABLE = "PULUMI_PYTHON_CMD"
PYTHON = Path(__file__).parent / "python3-for-pulumi"
"""What the language host takes for python3; the file says why."""
NOWHERE = "http://127.0.0.1:1"
"""A port that nobody may listen on without root: what should reach the stand-in reaches nobody."""
_REDIRECTING = ("PULUMI_DEBUG_PROVIDERS", "PULUMI_DEBUG_LANGUAGES", "PULUMI_HOME", "PULUMI_PLUGIN_PATH")
"""Variables that would let another plugin answer than the one chosen here."""


@dataclass(frozen=True, kw_only=True)
class EngineEnvironment:
    """How the engine is started for one stack."""

    env: Mapping[str, str]
    rehearsal: bool
    executable: str
    config_file: Path
    """The stack's config; a copy under the home when a real stack is rehearsed."""
    run_token: str
    """A token in the environment of every process of the run, by which leftover processes are found."""

    def at(self, region: RegionAccess) -> EngineEnvironment:
        """This environment, told where the rehearsed region listens."""
        reached_by = {
            ENDPOINT_VARIABLE: region.endpoint_url,
            "AWS_ACCESS_KEY_ID": region.keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": region.keys.secret_access_key,
        }
        return replace(self, env={**self.env, **reached_by})

    def writing_state_once(self) -> EngineEnvironment:
        """This environment for a run that writes its state only at its end; if killed, it leaves no record at all."""
        return replace(self, env={**self.env, "PULUMI_SKIP_CHECKPOINTS": "true"})


def engine_environment(stack: Stack, *, rehearse: bool, home: Home, environ: Mapping[str, str]) -> EngineEnvironment:
    """The environment for one run; in a rehearsal it reaches no region until `at` names one. Raises EngineError."""
    rehearsal = rehearse or stack.is_rehearsal_project
    is_own_backend = rehearsal and not stack.is_rehearsal_project
    run_token = secrets.token_hex(16)
    base = {
        **environ,
        RUN_VARIABLE: run_token,
        HOME_VARIABLE: str(home.path),
        STACK_DIR_VARIABLE: str(stack.directory),
        STACK_NAME_VARIABLE: stack.name,
    }
    env = real_variables(base)
    if rehearsal:
        backend = f"file://{home.rehearsal_dir / 'state'}" if is_own_backend else None
        env = rehearsal_variables(env, home=home, nonce=run_token, backend_url=backend)
        prepare_rehearsal(home)
    config_file = stack.config_file
    if is_own_backend:
        config_file = home.rehearsal_dir / "config" / stack.project / stack.config_file.name
        prepare_config_folder(config_file.parent, project=stack.project)
    return EngineEnvironment(
        env=env,
        rehearsal=rehearsal,
        executable=find_engine(environ),
        config_file=config_file,
        run_token=run_token,
    )


def real_variables(base: Mapping[str, str]) -> dict[str, str]:
    """`base` with this Python's folder first on PATH: the language host starts the first python3 it finds."""
    folder = str(Path(sys.executable).parent)
    path = [folder, *(entry for entry in base.get("PATH", os.defpath).split(os.pathsep) if entry != folder)]
    env = {**base, "PATH": os.pathsep.join(path), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    # What an installer left without the right to be executed is not used: the host then asks Python itself.
    if PYTHON_VARIABLE not in env and os.access(PYTHON, os.X_OK):
        env[PYTHON_VARIABLE] = str(PYTHON)
    return env


def rehearsal_variables(base: Mapping[str, str], *, home: Home, nonce: str, backend_url: str | None) -> dict[str, str]:
    """`base` without anything that reaches AWS, and with what reaches the stand-in."""
    kept = {
        key: value for key, value in base.items() if not key.startswith(("AWS_", "BOTO_")) and key not in _REDIRECTING
    }
    bypass = ",".join(filter(None, (kept.get("NO_PROXY") or kept.get("no_proxy"), "127.0.0.1,localhost")))
    env = {
        **kept,
        "AWS_ACCESS_KEY_ID": REHEARSAL_CREDENTIAL,
        "AWS_SECRET_ACCESS_KEY": REHEARSAL_CREDENTIAL,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PULUMI_HOME": str(home.rehearsal_dir / "pulumi"),
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        ENDPOINT_VARIABLE: NOWHERE,
        NONCE_VARIABLE: nonce,
        "NO_PROXY": bypass,
        "no_proxy": bypass,
    }
    if backend_url is not None:
        env["PULUMI_BACKEND_URL"] = backend_url
    return env


def find_engine(environ: Mapping[str, str], *, folder: Path | None = None) -> str:
    """The `pulumi` in the folder of this Python, else on PATH. Raises EngineError."""
    beside = (folder or Path(sys.executable).parent) / "pulumi"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("pulumi", path=environ.get("PATH"))
    if found is None:
        raise EngineError(f"no pulumi: not in {beside.parent}, not on PATH", hint=engine_hint())
    return found


def prepare_rehearsal(home: Home) -> None:
    """Makes the rehearsal's state folder, and its plugin folders, where the stand-in alone is called aws."""
    make_private_folder(home.rehearsal_dir / "state")
    make_private_folder(home.rehearsal_dir / "pulumi")
    keep_no_log(home.rehearsal_dir / "pulumi")
    plugins = home.rehearsal_dir / "pulumi" / "plugins"
    modules = {
        f"resource-aws-v{version('pulumi_aws')}": ("aws", "clusterctl_rehearsal.plugin"),
        f"resource-clusterctl-v{VERSION}": ("clusterctl", "clusterctl_infra.provider"),
    }
    for folder, (name, module) in modules.items():
        path = plugins / folder / f"pulumi-resource-{name}"
        text = f'#!/bin/sh\nexec "{sys.executable}" -P -m {module} "$@"\n'
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            make_private_folder(path.parent)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)


def keep_no_log(pulumi_home: Path) -> None:
    """Puts a file where the engine would make its folder of logs: it then keeps none, and does not complain.

    The engine encrypts and writes down all that it is told and answers in a run, so that a person can report a bug to
    its makers. Nobody does that with a rehearsal, and it is a sixth of the engine's work. No variable turns it off
    (engine 3.250, pkg/logging, StartLogging; 2026-11-26).
    """
    logs = pulumi_home / "logs"
    if logs.is_dir():  # made before this file was put there
        shutil.rmtree(logs, ignore_errors=True)
    with contextlib.suppress(OSError):  # another process was first, the folder stays, the disk is full: then it logs
        logs.touch(mode=0o600, exist_ok=False)


def prepare_config_folder(folder: Path, *, project: str) -> None:
    """Makes the folder in which a rehearsed real stack has its config: the stack's own file stays as it is."""
    make_private_folder(folder)
    (folder / "Pulumi.yaml").write_text(f"name: {json.dumps(project)}\nruntime: python\n", encoding="utf-8")


_CHECKOUT = Path(__file__).resolve().parents[3]


def engine_hint(checkout: Path = _CHECKOUT, *, folder: Path | None = None) -> str:
    """What to type in `folder` (None: the working directory) when there is no engine, or one that does not start.

    The installer's option is from Pulumi's "Download & install" page (checked 2026-11); the engine and its SDK have one
    version.
    """
    script = checkout / "scripts" / "engine"
    if script.is_file():
        return "scripts/engine" if (folder or Path.cwd()) == checkout else shlex.quote(str(script))
    return f"curl -fsSL https://get.pulumi.com | sh -s -- --version {version('pulumi')}"

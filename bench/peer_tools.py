"""The tools that clusterctl is measured against, installed into the cache; pdsh by apt-get."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterctl_bootstrap.kept_texts import cache_folder

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("clustershell", "parallel-ssh", "ansible-core", "asyncssh", "fabric", "paramiko")
INSTALL_S = 600
GO = "Go x/crypto/ssh"

Argv = Callable[["Hosts", int, str], list[str]]
"""Makes a tool's argv from hosts, a width and a command."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The servers of one measurement, in the forms that the tools read."""

    key: Path
    file: Path
    """An address and a host key on each line; beside it `.known_hosts` and `.json`, the inventory."""
    port: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool: its name, its argv for hosts, a width and a command; `most` hosts, beyond which it takes too long."""

    name: str
    argv: Argv
    most: int = 100_000


def tools() -> list[Tool]:
    """The tools that could be installed, clusterctl and the Go client first; names the others on stderr."""
    folder = bench_cache()
    go = go_client()
    python = _python_with_peers(folder)
    found = [Tool(name="clusterctl", argv=clusterctl), Tool(name="clusterctl, warm", argv=clusterctl_warm)]
    if go is not None:
        found.append(Tool(name=GO, argv=go))
    if python is not None:
        found += [
            Tool(name="asyncssh", argv=_script(python, "asyncssh_client"), most=256),
            Tool(name="parallel-ssh", argv=_script(python, "parallel_ssh_client"), most=256),
            Tool(name="Fabric ThreadingGroup", argv=_script(python, "fabric_client"), most=256),
            Tool(name="paramiko threads", argv=_script(python, "paramiko_client"), most=64),
            Tool(name="clush", argv=_clush(python.with_name("clush"))),
            Tool(name="Ansible ad-hoc", argv=_ansible(python.with_name("ansible")), most=64),
        ]
    if _has_pdsh():
        found.append(Tool(name="pdsh", argv=_pdsh))
    return found


def bench_cache() -> Path:
    """The folder that keeps what the measurements need."""
    return cache_folder(os.environ) / "bench"


def go_client() -> Argv | None:
    """The argv of the reference client; None without Go."""
    go = _built_go(bench_cache())
    return None if go is None else _program(str(go / "client"))


def light_server() -> Path | None:
    """The program that runs many SSH servers; None without Go."""
    go = _built_go(bench_cache())
    return None if go is None else go / "light-server"


def _built_go(folder: Path) -> Path | None:
    """The folder with our two Go programs, built from their present source; None without Go."""
    if shutil.which("go") is None:
        print("no Go: neither the reference client nor light servers", file=sys.stderr)
        return None
    target = folder / "go"
    target.mkdir(parents=True, exist_ok=True)
    argv = ["go", "build", "-o", f"{target}/", "./client", "./light-server"]
    subprocess.run(argv, cwd=ROOT / "bench" / "go", check=True, timeout=INSTALL_S)
    return target


def _python_with_peers(folder: Path) -> Path | None:
    python = folder / "venv" / "bin" / "python"
    stamp = folder / "venv" / "installed"
    if not stamp.exists() or stamp.read_text() != " ".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], check=True, timeout=120)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        if subprocess.run(pip, timeout=INSTALL_S, stdout=sys.stderr).returncode != 0:
            print("the Python peers could not be installed", file=sys.stderr)
            return None
        stamp.write_text(" ".join(PACKAGES))
    return python


def _has_pdsh() -> bool:
    if shutil.which("pdsh") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        apt_get = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "pdsh"]
        subprocess.run(apt_get, timeout=INSTALL_S, stdout=sys.stderr)
    if shutil.which("pdsh") is None:
        print("no pdsh: apt-get install pdsh", file=sys.stderr)
        return False
    return True


def clusterctl(hosts: Hosts, width: int, command: str) -> list[str]:
    """The verb as people type it."""
    program = str(ROOT / ".venv" / "bin" / "clusterctl")
    return [program, "ssh", "--inventory", f"{hosts.file}.json", "--fanout", str(width), command]


def clusterctl_warm(hosts: Hosts, width: int, command: str) -> list[str]:
    """The verb with kept connections; the first of the runs makes them."""
    return ["env", "CLUSTERCTL_WARM=yes", *clusterctl(hosts, width, command)]


def _program(*program: str) -> Argv:
    return lambda hosts, width, command: [
        *program,
        str(hosts.key),
        str(hosts.file),
        str(hosts.port),
        str(width),
        command,
    ]


def _script(python: Path, name: str) -> Argv:
    return _program(str(python), str(ROOT / "bench" / "peers" / f"{name}.py"))


def ssh_options(hosts: Hosts) -> list[str]:
    """Options for OpenSSH's client; curve25519, since its default key exchange costs five times as much."""
    settings = {
        "IdentityFile": str(hosts.key),
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f"{hosts.file}.known_hosts",
        "StrictHostKeyChecking": "yes",
        "KexAlgorithms": "curve25519-sha256",
        "BatchMode": "yes",
        "Port": str(hosts.port),
    }
    return ["-F", "none", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]


def _addresses(hosts: Hosts) -> str:
    return ",".join(line.split()[0] for line in hosts.file.read_text().splitlines())


def _clush(program: Path) -> Argv:
    return lambda hosts, width, command: [
        *(str(program), "-f", str(width), "-o", " ".join(ssh_options(hosts)), "-w", _addresses(hosts), command)
    ]


def _pdsh(hosts: Hosts, width: int, command: str) -> list[str]:
    variables = f"PDSH_SSH_ARGS={' '.join(ssh_options(hosts))} %h"
    return ["env", variables, "pdsh", "-S", "-R", "ssh", "-f", str(width), "-w", _addresses(hosts), command]


def _ansible(program: Path) -> Argv:
    def argv(hosts: Hosts, width: int, command: str) -> list[str]:
        # By default Ansible keeps connections between runs, which is measured elsewhere.
        variables = json.dumps(
            {"ansible_ssh_common_args": " ".join(ssh_options(hosts)), "ansible_ssh_args": "-o ControlMaster=no"}
        )
        words = ["-i", f"{_addresses(hosts)},", "-f", str(width), "-m", "raw", "-a", command, "-e", variables, "all"]
        return [str(program), *words]

    return argv

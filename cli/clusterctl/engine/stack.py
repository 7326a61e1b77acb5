"""A stack folder: its project, whether it names the stand-in for AWS, where its config lies."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import yaml
from clusterctl_infra.errors import UsageError

DEFAULT_STACK_NAME = "dev"
CLUSTER_FILE = "cluster.yaml"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One Pulumi stack as `clusterctl` drives it."""

    directory: Path
    """Absolute."""
    project: str
    name: str
    is_rehearsal_project: bool
    """Its Pulumi.yaml names the stand-in: plain `pulumi up` there is a rehearsal too."""

    @property
    def cluster_file(self) -> Path:
        """What a person wrote."""
        return self.directory / CLUSTER_FILE

    @property
    def config_file(self) -> Path:
        """The Pulumi config of this stack, as plain `pulumi` uses it."""
        return self.directory / f"Pulumi.{self.name}.yaml"

    @property
    def urn(self) -> str:
        """The URN of the stack resource itself."""
        return f"urn:pulumi:{self.name}::{self.project}::pulumi:pulumi:Stack::{self.project}-{self.name}"


def read_stack(directory: Path, *, name: str = DEFAULT_STACK_NAME) -> Stack:
    """The stack in a folder with Pulumi.yaml and cluster.yaml. Raises UsageError naming what is missing."""
    folder = directory.expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"there is no folder {directory}", hint=f"ls {shlex.quote(str(directory.parent))}")
    for needed in ("Pulumi.yaml", CLUSTER_FILE):
        if not (folder / needed).is_file():
            raise UsageError(f"{directory} is not a stack: it has no {needed}", hint="clusterctl up stacks/rehearsal")
    try:
        data = yaml.safe_load((folder / "Pulumi.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        told = f"{directory}/Pulumi.yaml cannot be read: {e}"
        raise UsageError(told, hint=f"${{EDITOR:-nano}} {directory}/Pulumi.yaml") from e
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        told = f"{directory}/Pulumi.yaml names no project (name: …)"
        raise UsageError(told, hint=f"${{EDITOR:-nano}} {directory}/Pulumi.yaml")
    return Stack(
        directory=folder, project=data["name"], name=name, is_rehearsal_project="aws" in _providers_by_path(data)
    )


def _providers_by_path(data: dict[str, object]) -> frozenset[str]:
    plugins = data.get("plugins")
    providers = plugins.get("providers") if isinstance(plugins, dict) else None
    rows = providers if isinstance(providers, list) else []
    return frozenset(str(row["name"]) for row in rows if isinstance(row, dict) and "name" in row and "path" in row)

"""Which kind of machines a cluster.yaml is for, known before the models of hosts are loaded."""

from __future__ import annotations

from pathlib import Path

from clusterctl_infra.config.document import read_document
from clusterctl_infra.config.load import read_text
from clusterctl_infra.errors import ConfigError

TARGET = "hosts"
"""The only value of the key `target`; without it, machines are made on AWS."""


def is_for_hosts(file: Path) -> bool:
    """Whether the cluster.yaml says `target: hosts`; False if it cannot be read, which is reported on loading it."""
    try:
        text = read_text(file, str(file))
    except ConfigError:
        return False
    # Files for AWS seldom name a target, and reading YAML takes longer than looking for the word.
    tree = read_document(text).tree if "target" in text else None
    return isinstance(tree, dict) and tree.get("target") == TARGET

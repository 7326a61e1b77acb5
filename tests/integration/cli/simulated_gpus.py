"""The rehearsal's nvidia-smi on a loopback node."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any  # parsed JSON

import clusterctl_rehearsal.gpu.nvidia_smi as nvidia_smi
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.gpu.files import gpu_data

from tests.integration.cli.conftest import LoopbackCluster

Change = Callable[[dict[str, Any]], None]


def install_gpus(cluster: LoopbackCluster, slot: int, change: Change = lambda data: None) -> None:
    """The node's nvidia-smi shows eight H100, changed so."""
    kind = load_catalog().instance_type("p5.48xlarge")
    assert kind is not None
    data: dict[str, Any] = gpu_data(kind, f"i-{slot}")
    change(data)
    bin_dir = cluster.folder / f"node-{slot}" / "bin"
    bin_dir.mkdir(exist_ok=True)
    (bin_dir / "gpus.json").write_text(json.dumps(data))
    source = Path(str(nvidia_smi.__file__)).read_text().replace(nvidia_smi.DATA, str(bin_dir / "gpus.json"))
    program = bin_dir / "nvidia-smi"
    program.write_text(source.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
    program.chmod(0o755)

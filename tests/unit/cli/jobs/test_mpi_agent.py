"""What mpirun wants started on other nodes: written down, read with care, and passed on to the node that it is for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from clusterctl.on_node.job.coordination import Coordination, directive_for
from clusterctl.on_node.job.mpi_agent import (
    host_and_command,
    orders_of,
    write_order,
)

from tests.unit.cli.jobs.job_specs import spec

WORDS = ["-x", "train-3", "orted", "-mca", "ess", '"env"']


def test_the_agent_reads_its_arguments_as_ssh_does() -> None:
    assert host_and_command(WORDS) == ("train-3", 'orted -mca ess "env"')
    with pytest.raises(ValueError, match="asked for nothing"):
        host_and_command(["train-3"])


def test_an_order_is_for_the_node_that_it_names(tmp_path: Path) -> None:
    assert write_order(tmp_path, WORDS) == 0
    (order,) = orders_of(spec(), tmp_path, os.getuid())
    assert (order["slot"], order["command"]) == (3, 'orted -mca ess "env"')


def test_what_is_no_order_of_the_job_s_user_for_one_of_its_nodes_is_none(tmp_path: Path) -> None:
    rows = {
        "stranger": {"host": "train-0", "command": "x"},
        "long": {"host": "train-3", "command": "x" * 20_000},
        "list": [],
    }
    for name, row in rows.items():
        (tmp_path / f"{name}.order").write_text(json.dumps(row))
    (tmp_path / "readable").write_text(json.dumps({"host": "train-3", "command": "x"}))
    (tmp_path / "link.order").symlink_to(tmp_path / "readable")
    assert orders_of(spec(), tmp_path, os.getuid()) == []
    write_order(tmp_path, WORDS)
    assert orders_of(spec(), tmp_path, os.getuid() + 1) == []


def test_each_node_hears_the_orders_for_it_and_no_others() -> None:
    coordination = Coordination(spec(), 0.0)
    for slot in (1, 3):
        coordination.receive(slot, {"phase": "ready"})
    started = coordination.look(1.0, 0.0, None)
    orders = [{"id": "7.order", "slot": 3, "command": "orted"}]
    coordination.receive(1, {"phase": "running", "orders": orders})
    coordination.receive(3, {"phase": "running"})
    directive = coordination.look(1.1, 0.0, None)
    assert directive is coordination.look(1.2, 0.0, None)
    assert directive_for(3, directive) == {**started, "orders": orders}
    assert directive_for(1, directive) == {**started, "orders": []}

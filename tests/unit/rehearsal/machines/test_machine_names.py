"""Names in the kernel."""

from __future__ import annotations

import pytest
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.names import (
    bridge_port,
    checked,
    cluster_namespace,
    container_name,
    machine_namespace,
)
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9@_-]{0,62}", fullmatch=True)


@pytest.mark.parametrize("word", ["", "a/b", "..", "-a", "a.b", "a b", "a\n", "x" * 64])
def test_a_word_that_could_leave_its_folder_is_refused(word: str) -> None:
    with pytest.raises(MachineError, match="cannot name"):
        checked(word)


@given(WORDS, WORDS, WORDS, WORDS)
def test_two_machines_never_share_a_namespace(cluster_a: str, node_a: str, cluster_b: str, node_b: str) -> None:
    same = (cluster_a, node_a) == (cluster_b, node_b)
    assert (machine_namespace(cluster_a, node_a) == machine_namespace(cluster_b, node_b)) == same


@given(WORDS, WORDS, WORDS)
def test_a_machine_namespace_is_never_a_cluster_namespace(cluster: str, node: str, other: str) -> None:
    assert machine_namespace(cluster, node) != cluster_namespace(other)


@given(WORDS)
def test_a_bridge_port_fits_into_a_linux_interface_name(node: str) -> None:
    assert len(bridge_port(node)) <= 15


def test_a_short_node_is_recognised_in_its_bridge_port() -> None:
    assert bridge_port("train-2") == "v-train-2"


@given(WORDS, WORDS)
def test_a_container_name_is_a_host_name(cluster: str, node: str) -> None:
    name = container_name(cluster, node)
    assert len(name) <= 63
    assert name.replace("-", "").isalnum()
    assert not name.startswith("-")

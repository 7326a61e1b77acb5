"""What is asked of AWS about a cluster's end, by what its nodes say."""

from __future__ import annotations

from clusterctl.status.facts import _unless_heard

from tests.unit.cli.status.status_facts import READY, SILENT, machine


def test_what_ended_a_cluster_is_not_asked_while_a_node_of_it_answers() -> None:
    gone = (machine(0, "terminated"), machine(1, "terminated"))
    assert _unless_heard(gone, {0: SILENT, 1: READY}) is None
    assert _unless_heard(gone, {0: SILENT}) == gone
    assert _unless_heard((), {}) == ()

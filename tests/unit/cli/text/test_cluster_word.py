"""A cluster or a node typed where a verb takes no word: the hint is the command that was meant."""

from __future__ import annotations

import pytest
from clusterctl.text.cluster_word import cluster_word

FLAGS = ("--cluster", "--node")


@pytest.mark.parametrize("known", ["lab", "lab@rehearsal", "lab@hosts"])
def test_a_plain_name_stands_for_the_cluster_with_a_suffix(known: str) -> None:
    cluster = cluster_word("lab", [known], typed="clusterctl sweep", flags=FLAGS)
    node = cluster_word("lab-1", [known], typed="clusterctl sweep", flags=FLAGS)
    assert cluster is not None
    assert cluster.hint == f"clusterctl sweep --cluster {known}"
    assert node is not None
    assert node.hint == f"clusterctl sweep --cluster {known} --node lab-1"

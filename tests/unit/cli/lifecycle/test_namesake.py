"""A name that this computer knows another cluster by, of another region."""

from __future__ import annotations

import pytest
from clusterctl.lifecycle.before_up import is_other_region, taken_elsewhere

from tests.unit.cli.test_cost import an_inventory

OWN, OTHERS = "ffffffffffff", "0123456789ab"


@pytest.mark.parametrize(
    ("own_id", "region", "is_other"),
    [
        (OTHERS, "us-east-1", False),
        (OWN, "us-west-2", False),  # AWS is asked about every cluster of the name there
        (OWN, "us-east-1", True),
        (None, "us-east-1", True),
    ],
)
def test_only_another_cluster_of_another_region_is_asked_about(own_id: str | None, region: str, is_other: bool) -> None:
    assert is_other_region(an_inventory(), own_id=own_id, region=region) is is_other


@pytest.mark.parametrize(("down", "words"), [(False, "it runs in us-west-2"), (True, "its data is kept in us-west-2")])
def test_the_sentence_says_where_the_other_one_is(down: bool, words: str) -> None:
    said = taken_elsewhere(an_inventory(run_nodes_down=down))
    assert words in said
    assert f"clusterctl:id {OTHERS}" in said

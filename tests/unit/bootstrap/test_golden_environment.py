"""What nodes of every GPU family are told, for 1, 2, 8 and 256 of them, is what it was."""

from __future__ import annotations

import json

import pytest
from clusterctl_infra.catalog.instance import InstanceType

from tests.unit.bootstrap.golden_environment import GOLDEN, digests, largest_types, whole_files

REGENERATE = "if it is meant: python -m tests.unit.bootstrap.golden_environment, and look at what git diff shows"
DIGESTS = json.loads((GOLDEN / "digests.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", largest_types(), ids=lambda kind: kind.family)
def test_nodes_of_a_family_are_told_the_same_as_before(kind: InstanceType) -> None:
    assert digests(kind) == DIGESTS.get(kind.name), REGENERATE


def test_two_nodes_are_told_the_golden_texts() -> None:
    assert whole_files() == {name: (GOLDEN / name).read_text(encoding="utf-8") for name in whole_files()}, REGENERATE


def test_no_family_is_left_in_the_golden_file_that_is_gone() -> None:
    assert list(DIGESTS) == [kind.name for kind in largest_types()], REGENERATE

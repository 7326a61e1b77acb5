"""Where content is gathered, and what broken copies leave."""

from __future__ import annotations

import posixpath

import pytest
from clusterctl.copying.partial import left_over, partial_name, partial_prefix

DIGEST, OTHER = "0123456789abcdef9999", "fedcba98765432109999"


def test_content_is_gathered_beside_its_target_under_its_own_digest() -> None:
    assert partial_name("/scratch/a.pt", DIGEST) == "/scratch/.a.pt.clusterctl-0123456789abcdef"
    assert partial_name("a.pt", DIGEST) == ".a.pt.clusterctl-0123456789abcdef"


@pytest.mark.parametrize("name", ["a" * 255, "ä" * 127, "\N{GRINNING FACE}" * 63])
def test_a_name_as_long_as_may_be_has_one_that_is_not_longer(name: str) -> None:
    partial = partial_name(f"/scratch/{name}", DIGEST)
    assert len(posixpath.basename(partial).encode()) <= 255
    assert partial != partial_name(f"/scratch/{name[:-1]}b", DIGEST)


def test_what_copies_of_other_contents_left_is_known_and_nothing_else() -> None:
    names = [
        partial_name("/x/a*b", DIGEST),
        partial_name("/x/a*b", OTHER),
        partial_name("/x/aab", OTHER),
        f"{partial_prefix('/x/a*b')}notes",
        "/x/a*b",
    ]
    assert left_over(names, "/x/a*b", DIGEST) == [partial_name("/x/a*b", OTHER)]

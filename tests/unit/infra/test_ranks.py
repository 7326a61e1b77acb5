"""Ranks by network topology: neighbours stay together, slot 0 stays first, and a resize disturbs nobody."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from clusterctl_infra.ranks import NetworkPath, is_rank_order, kept_ranks, topology_ranks
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.sampled_from(["nn-a", "nn-b", "nn-c"])
PATHS = st.integers(1, 4).flatmap(lambda levels: st.lists(st.tuples(*[NAMES] * levels), min_size=1, max_size=40))
FROZEN = st.integers(1, 30).flatmap(lambda nodes: st.permutations(range(1, nodes)).map(lambda rest: [0, *rest]))


def order_of(ranks: Sequence[int]) -> list[int]:
    """Slots, rank 0 first."""
    return sorted(range(len(ranks)), key=ranks.__getitem__)


def groups_are_whole(paths: Sequence[NetworkPath], order: Sequence[int], level: int) -> bool:
    """Whether slots that share their network nodes down to `level` have consecutive ranks."""
    seen = [paths[slot][: level + 1] for slot in order]
    begun = [rank for before, rank in pairwise([None, *seen]) if rank != before]
    return len(begun) == len(set(begun))


@given(paths=PATHS)
def test_every_slot_has_one_rank_and_slot_0_has_rank_0(paths: list[NetworkPath]) -> None:
    assert is_rank_order(topology_ranks(paths))


@given(paths=PATHS)
def test_neighbours_have_consecutive_ranks_at_every_level(paths: list[NetworkPath]) -> None:
    order = order_of(topology_ranks(paths))
    assert all(groups_are_whole(paths, order, level) for level in range(len(paths[0])))


@given(paths=PATHS)
def test_the_names_of_network_nodes_do_not_matter(paths: list[NetworkPath]) -> None:
    """AWS hashes them for each account."""
    renamed = [tuple(name.translate(str.maketrans("abc", "cab")) for name in path) for path in paths]
    assert topology_ranks(renamed) == topology_ranks(paths)


@given(paths=PATHS)
def test_slots_that_are_in_order_already_keep_their_numbers(paths: list[NetworkPath]) -> None:
    order = order_of(topology_ranks(paths))
    assert topology_ranks([paths[slot] for slot in order]) == tuple(range(len(paths)))


TABLE: list[tuple[list[str], list[int]]] = [
    (["t x", "t y", "t x", "t y"], [0, 2, 1, 3]),
    (["t y", "t x", "t y", "t x"], [0, 2, 1, 3]),
    (["u y", "t x", "u z", "t w", "u y"], [0, 3, 2, 4, 1]),
    (["", "", ""], [0, 1, 2]),
    ([], []),
]


@pytest.mark.parametrize(("places", "ranks"), TABLE)
def test_a_group_stands_where_its_lowest_slot_stood(places: list[str], ranks: list[int]) -> None:
    assert list(topology_ranks([tuple(place.split()) for place in places])) == ranks


def test_slot_2_comes_before_slot_10() -> None:
    """Sorted as texts, train-10 would come before train-2."""
    racks = [("spine", "left" if slot % 2 == 0 else "right") for slot in range(12)]
    assert order_of(topology_ranks(racks)) == [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]


@given(frozen=FROZEN, nodes=st.integers(1, 40))
def test_a_resize_keeps_the_order_of_who_stays_and_puts_new_slots_behind(frozen: list[int], nodes: int) -> None:
    ranks = kept_ranks(frozen, nodes=nodes)
    assert is_rank_order(ranks)
    staying = min(nodes, len(frozen))
    assert [slot for slot in order_of(ranks) if slot < staying] == [slot for slot in order_of(frozen) if slot < staying]
    assert list(ranks[staying:]) == list(range(staying, nodes))


@given(frozen=FROZEN)
def test_without_a_resize_nothing_moves(frozen: list[int]) -> None:
    assert list(kept_ranks(frozen, nodes=len(frozen))) == frozen


@pytest.mark.parametrize("ranks", [[1, 0], [0, 2], [0, 0], [0, True], [0, 1.0], ["0"], [0, -1], [False]])
def test_what_is_no_order_of_ranks(ranks: list[object]) -> None:
    assert not is_rank_order(ranks)

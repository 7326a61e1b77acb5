"""The order of ranks: neighbours in AWS's network have neighbouring ranks, and slot 0 always has rank 0. Pure."""

from __future__ import annotations

from collections.abc import Sequence

NetworkPath = tuple[str, ...]
"""The network nodes above a machine, from the top down, as DescribeInstanceTopology names them."""


def topology_ranks(paths: Sequence[NetworkPath]) -> tuple[int, ...]:
    """The rank of each slot, where `paths[slot]` says where its machine stands.

    Machines below one network node have consecutive ranks, at every level. Of several such groups the one with the
    lowest slot comes first: so slot 0 is rank 0, and ranks differ from slots only where the network wants it.
    """
    return _ranks(_ordered(range(len(paths)), paths, level=0))


def kept_ranks(frozen: Sequence[int], *, nodes: int) -> tuple[int, ...]:
    """The rank of each of `nodes` slots after a resize: the old order stays, new slots come behind it."""
    staying = range(min(len(frozen), nodes))
    return _ranks([*sorted(staying, key=frozen.__getitem__), *range(len(staying), nodes)])


def is_rank_order(ranks: Sequence[object]) -> bool:
    """Whether `ranks` gives each slot one of the ranks 0…N-1, and slot 0 rank 0."""
    numbers = [rank for rank in ranks if isinstance(rank, int) and not isinstance(rank, bool)]
    return len(numbers) == len(ranks) and sorted(numbers) == list(range(len(ranks))) and numbers[:1] in ([], [0])


def _ordered(slots: Sequence[int], paths: Sequence[NetworkPath], *, level: int) -> list[int]:
    """The slots, which come in ascending order, by group of this level and, inside, by the levels below."""
    if all(len(paths[slot]) <= level for slot in slots):
        return list(slots)
    groups: dict[NetworkPath, list[int]] = {}
    for slot in slots:
        groups.setdefault(paths[slot][: level + 1], []).append(slot)
    return [slot for group in groups.values() for slot in _ordered(group, paths, level=level + 1)]


def _ranks(order: Sequence[int]) -> tuple[int, ...]:
    """The rank of each slot, for slots in the order of their ranks."""
    ranks = [0] * len(order)
    for rank, slot in enumerate(order):
        ranks[slot] = rank
    return tuple(ranks)

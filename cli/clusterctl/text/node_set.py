"""Sets of nodes as people write and read them: `0,2-5`, `all`, `train-2`, `train-[0-1,3]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from clusterctl_infra.errors import NothingMatched, UsageError
from clusterctl_infra.outputs import Inventory

ALL = "all"
# Compiled on use: `nodes` shares this module and has 60 ms to start in.
_RANGE = r"(\d{1,9})(?:-(\d{1,9}))?"
_NUMBERED = r"(.*)-(\d+)"


def parse_node_set(
    text: str,
    *,
    cluster: str,
    slots: Sequence[int],
    look: str | None,
    source: str = "--node",
    names: Mapping[str, int] | None = None,
) -> tuple[int, ...]:
    """The slots that `text` names, ascending, each once.

    `cluster` is the name before the dash in node names, `slots` the slots there are, `look` a command that shows them
    (None: no command does), `source` where the person wrote it. `names`: name → slot, for machines of a person's own;
    None: all nodes are called after the cluster and their slots.
    Raises UsageError for text that is no set, NothingMatched for nodes that do not exist.
    """
    items = _items(text)
    if not items:
        raise UsageError(f"{source} {text!r}: no node named; write 2, or 0,2-5, or {cluster}-2, or all")
    chosen: set[int] = set()
    try:
        for item in items:
            own = None if item == ALL else names
            named = None if own is None else _slots_called(item, cluster=cluster, names=own, look=look)
            chosen.update(_slots_of(item, cluster=cluster, slots=slots, look=look) if named is None else named)
    except ValueError as e:
        raise UsageError(f"{source} {e}{'' if names is None else ', or a name in the file'}") from e
    return tuple(sorted(chosen))


def own_names(inventory: Inventory) -> Mapping[str, int] | None:
    """Name → slot where machines are a person's own; None for a cluster, whose nodes are called after their slots."""
    return None if inventory.cluster_id else {node.name: node.slot for node in inventory.nodes}


def fold_numbers(numbers: Iterable[int], *, digits: int = 1) -> str:
    """`0-1,3`: ascending ranges, each number once, padded with zeros to `digits`: `01-03`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    ends = ([f"{end:0{digits}}" for end in sorted(set(run))] for run in runs)
    return ",".join("-".join(each) for each in ends)


def fold_names(names: Iterable[str]) -> str:
    """`train-[0-1,3]` for several nodes of one cluster, `train-2` for one; other names as they are.

    Machines of a person's own may have zeros in their numbers, which stay: `lab-[01-03]`.
    """
    written: dict[str, set[str]] = {}
    others: set[str] = set()
    for name in names:
        match = re.fullmatch(_NUMBERED, name, re.ASCII)
        if match is None:
            others.add(name)
        else:
            written.setdefault(match[1], set()).add(match[2])
    folded = []
    for prefix in sorted(written):
        padded = {len(number) for number in written[prefix] if number.startswith("0")}
        groups: dict[int, list[int]] = {}
        for number in written[prefix]:
            groups.setdefault(len(number) if len(number) in padded else 1, []).append(int(number))
        for digits in sorted(groups):
            ranges = fold_numbers(groups[digits], digits=digits)
            folded.append(f"{prefix}-{ranges}" if ranges.isdigit() else f"{prefix}-[{ranges}]")
    return ",".join(folded + sorted(others))


def _items(text: str) -> list[str]:
    """`text` split at commas and blanks outside brackets."""
    return [item for item in re.split(r"[,\s]+(?![^\[]*\])", text.strip()) if item]


def _slots_called(item: str, *, cluster: str, names: Mapping[str, int], look: str | None) -> list[int] | None:
    """The slots of the nodes that are called `lab-01`, or `lab-[01-03]`; None for an item that is no name.

    Raises NothingMatched for a name that no node has where the numbers in such names are not the slots.
    """
    called = [item] if item in names else _unfolded(item, most=len(names))
    if called and all(name in names for name in called):
        return [names[name] for name in called]
    prefix = f"{cluster}-"
    has_other_numbers = any(name.startswith(prefix) and name != f"{prefix}{slot}" for name, slot in names.items())
    if item.startswith(prefix) and has_other_numbers:
        raise NothingMatched(f"no node is called {item}: {cluster} has {fold_names(names)}", hint=look)
    return None


def _unfolded(item: str, *, most: int) -> list[str]:
    """`lab-01` and `lab-02` for `lab-[01-02]`; empty for all else.

    Empty, too, where a range runs backwards, or has more than `most` numbers.
    """
    match = re.fullmatch(r"(.*)\[(.*)\]", item)
    if match is None:
        return []
    called: list[str] = []
    for part in match[2].split(","):
        ends = re.fullmatch(_RANGE, part.strip(), re.ASCII)
        if ends is None:
            return []
        numbers = range(int(ends[1]), int(ends[2] or ends[1]) + 1)
        if not 1 <= len(numbers) <= most:
            return []
        called += [f"{match[1]}{number:0{len(ends[1])}}" for number in numbers]
    return called


def _slots_of(item: str, *, cluster: str, slots: Sequence[int], look: str | None) -> Iterable[int]:
    if item == ALL:
        if not slots:
            raise NothingMatched(f"{cluster} has no nodes", hint=look)
        return slots
    numbers = item.removeprefix(f"{cluster}-")
    if numbers.startswith("[") and numbers.endswith("]"):
        parts = numbers[1:-1].split(",")
    else:
        parts = [numbers]
    return [slot for part in parts for slot in _range(part.strip(), item, cluster=cluster, slots=slots, look=look)]


def _range(part: str, item: str, *, cluster: str, slots: Sequence[int], look: str | None) -> range:
    match = re.fullmatch(_RANGE, part)
    if match is None:
        raise ValueError(f"{item}: not a set of nodes; write 2, or 0,2-5, or {cluster}-2, or all")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError(f"{item}: runs backwards; write {last}-{first}")
    known = set(slots)
    # The ends are looked up first: a range of a billion is refused without being walked.
    missing = next((n for n in (first, last) if n not in known), None)
    if missing is None:
        missing = next((n for n in range(first, last + 1) if n not in known), None)
    if missing is not None:
        raise NothingMatched(_no_node(missing, cluster, slots), hint=look)
    return range(first, last + 1)


def _no_node(number: int, cluster: str, slots: Sequence[int]) -> str:
    if not slots:
        return f"no node {number}: {cluster} has no nodes"
    noun = "only node" if len(slots) == 1 else "nodes"
    return f"no node {number}: {cluster} has {noun} {fold_numbers(slots)}"

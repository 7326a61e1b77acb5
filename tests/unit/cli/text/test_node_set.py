"""Sets of nodes: `0,2-5` as people type them, and names folded to `train-[0-1,3]`."""

from __future__ import annotations

import pytest
from clusterctl.text.node_set import fold_names, fold_numbers, parse_node_set
from clusterctl_infra.errors import NothingMatched, UsageError
from hypothesis import given
from hypothesis import strategies as st

LOOK = "clusterctl nodes --cluster train"
SLOTS = range(8)
some_slots = st.sets(st.integers(0, 511), min_size=1)


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("2", (2,)),
        ("0,2-5", (0, 2, 3, 4, 5)),
        ("5,2,2,1-2", (1, 2, 5)),
        ("all", tuple(range(8))),
        ("train-2", (2,)),
        ("train-2,4", (2, 4)),
        ("train-2-4", (2, 3, 4)),
        ("train-[0-1,3]", (0, 1, 3)),
        (" 1, 3 ", (1, 3)),
        ("1 3", (1, 3)),
        ("007", (7,)),
    ],
)
def test_a_set_names_each_slot_once_in_order(text: str, slots: tuple[int, ...]) -> None:
    assert parse_node_set(text, cluster="train", slots=SLOTS, look=LOOK) == slots


@pytest.mark.parametrize(
    "text", ["", " ", ",", "x", "1-", "-1", "1..3", "5-2", "other-2", "train-", "train-[1", "1,,x", "²"]
)
def test_what_is_no_set_is_refused_as_usage(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--node .*; write (2, or 0,2-5, or train-2, or all|2-5)$"):
        parse_node_set(text, cluster="train", slots=SLOTS, look=LOOK)


@pytest.mark.parametrize("text", ["8", "0-8", "7,9", "train-8", "0-999999999", "train-[7-8]"])
def test_a_node_that_does_not_exist_is_named_with_the_range_there_is(text: str) -> None:
    with pytest.raises(NothingMatched, match=r"no node \d+: train has nodes 0-7"):
        parse_node_set(text, cluster="train", slots=SLOTS, look=LOOK)


def test_all_of_no_nodes_matches_nothing() -> None:
    with pytest.raises(NothingMatched, match="train has no nodes"):
        parse_node_set("all", cluster="train", slots=[], look=LOOK)


def test_a_gap_between_existing_nodes_is_found() -> None:
    with pytest.raises(NothingMatched, match="no node 2: train has nodes 0-1,3"):
        parse_node_set("0-3", cluster="train", slots=[0, 1, 3], look=LOOK)


OWN = {"lab-01": 0, "lab-02": 1, "lab-03": 2, "gpu1": 3}
"""Machines of a file that is called lab."""


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("lab-01", (0,)),
        ("lab-[02-03]", (1, 2)),
        ("lab-[01,03],gpu1", (0, 2, 3)),
        ("gpu1 lab-02", (1, 3)),
        ("1", (1,)),
        ("0-1", (0, 1)),
        ("all", (0, 1, 2, 3)),
    ],
)
def test_a_machine_of_a_persons_own_is_meant_by_its_name_and_a_bare_number_by_its_slot(
    text: str, slots: tuple[int, ...]
) -> None:
    assert parse_node_set(text, cluster="lab", slots=range(4), look=None, names=OWN) == slots


def test_who_types_a_name_that_no_machine_of_a_file_has_learns_that_names_are_taken() -> None:
    with pytest.raises(UsageError, match=r"^--node gpu9: not a set of nodes; .*, or all, or a name in the file$"):
        parse_node_set("gpu9", cluster="lab", slots=range(4), look=None, names=OWN)


def test_all_is_every_machine_also_where_one_is_called_all() -> None:
    assert parse_node_set("all", cluster="lab", slots=range(2), look=None, names={"gpu1": 0, "all": 1}) == (0, 1)


@pytest.mark.parametrize(("text", "slots"), [("lab-2", (2,)), ("lab-1-2", (1, 2)), ("lab-[0,2]", (0, 2))])
@pytest.mark.parametrize("names", [["gpu1", "gpu2", "gpu3"], ["lab-0", "lab-1", "lab-2"]])
def test_where_no_name_says_otherwise_the_number_behind_the_files_name_is_a_slot(
    names: list[str], text: str, slots: tuple[int, ...]
) -> None:
    own = {name: slot for slot, name in enumerate(names)}
    assert parse_node_set(text, cluster="lab", slots=range(3), look=None, names=own) == slots


@pytest.mark.parametrize(
    "text", ["lab-1", "lab-0", "lab-[01-04]", "lab-[1-2]", "lab-01-02", "lab-[01-999999999]", "lab-[01,03-02]"]
)
def test_a_name_that_no_machine_has_is_never_taken_for_a_slot(text: str) -> None:
    with pytest.raises(NothingMatched, match=r"^no node is called lab-\S+: lab has lab-\[01-03\],gpu1$"):
        parse_node_set(text, cluster="lab", slots=range(4), look=None, names=OWN)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["train-2"], "train-2"),
        (["train-3", "train-0", "train-1"], "train-[0-1,3]"),
        (["train-10", "train-9"], "train-[9-10]"),
        (["b-1", "a-2"], "a-2,b-1"),
        (["head", "a-2"], "a-2,head"),
        (["lab-01"], "lab-01"),
        (["lab-02", "lab-01", "lab-03"], "lab-[01-03]"),
        (["lab-10", "lab-09", "lab-100"], "lab-100,lab-[09-10]"),
        (["lab-1", "lab-01"], "lab-1,lab-01"),
        (["lab-0", "lab-1"], "lab-[0-1]"),
        (["lab-٣"], "lab-٣"),
        ([], ""),
    ],
)
def test_names_fold_to_ranges(names: list[str], folded: str) -> None:
    assert fold_names(names) == folded


@given(some_slots)
def test_folded_numbers_read_back_as_the_same_set(slots: set[int]) -> None:
    text = fold_numbers(slots)
    assert parse_node_set(text, cluster="train", slots=range(512), look=LOOK) == tuple(sorted(slots))


@given(some_slots, st.sampled_from(["train", "a-1", "x"]))
def test_folded_names_read_back_as_the_same_set(slots: set[int], cluster: str) -> None:
    text = fold_names(f"{cluster}-{slot}" for slot in slots)
    assert parse_node_set(text, cluster=cluster, slots=range(512), look=LOOK) == tuple(sorted(slots))


@given(st.text(max_size=30))
def test_any_text_is_a_set_or_an_expected_error(text: str) -> None:
    try:
        chosen = parse_node_set(text, cluster="train", slots=SLOTS, look=LOOK)
    except (UsageError, NothingMatched):
        return
    assert set(chosen) <= set(SLOTS)

"""The environment table and its two renderings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from clusterctl_bootstrap.environment_reference import environment_reference
from clusterctl_bootstrap.node.environment import is_fixed, render_env, render_env_list, variables
from hypothesis import given
from hypothesis import strategies as st

DOCS = Path(__file__).parents[3] / "docs" / "env.md"
FACTS: dict[str, Any] = {
    "cluster": "train",
    "cluster_id": "3f9c0a51b7de",
    "generation": 5,
    "slot": 2,
    "rank": 3,
    "nodes": 4,
    "gpus_per_node": 8,
    "slot_cidr": "10.0.8.0/21",
}
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ENVIRONMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


def values(**changes: Any) -> dict[str, str]:
    return {row.name: row.value for row in variables({**FACTS, **changes})}


def read_by_shell(text: str) -> dict[str, str]:
    """What a POSIX shell makes of assignments: quotes, but nothing expanded."""
    return dict(word.partition("=")[::2] for word in shlex.split(text, comments=True))


def read_raw(text: str) -> dict[str, str]:
    """What sshd and docker make of it: a line is a variable, but a comment."""
    return dict(line.partition("=")[::2] for line in text.split("\n") if line and not line.startswith("#"))


def test_the_committed_page_is_the_generated_one() -> None:
    assert DOCS.read_text(encoding="utf-8") == environment_reference(), "run scripts/docs"


def test_every_variable_is_on_the_page() -> None:
    page = environment_reference()
    assert [row.name for row in variables(FACTS) if f"| `{row.name}` |" not in page] == []


def test_torch_and_flow_are_told_the_same() -> None:
    table = values()
    assert (table["NODE_RANK"], table["FLOW_NODE_RANK"]) == ("3", "3")
    assert (table["NNODES"], table["FLOW_NUM_NODES"]) == ("4", "4")
    assert (table["MASTER_ADDR"], table["FLOW_MAIN_IP"]) == ("10.0.8.0", "10.0.8.0")
    assert table["WORLD_SIZE"] == "32"


def test_a_node_without_gpus_runs_one_process() -> None:
    table = values(gpus_per_node=0)
    assert (table["NPROC_PER_NODE"], table["WORLD_SIZE"]) == ("1", "4")


def test_what_differs_from_process_to_process_is_left_to_the_launcher() -> None:
    assert {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}.isdisjoint(values())


def test_a_persons_own_value_wins_and_stands_once() -> None:
    rows = variables({**FACTS, "env": {"MASTER_PORT": "29600"}})
    assert [row.value for row in rows if row.name == "MASTER_PORT"] == ["29600"]
    assert rows[-1].dialect == "yours"
    assert "# yours" in render_env(rows).splitlines()[-2]


@pytest.mark.parametrize("name", ["A-B", "1A", "A B", "", "A=B", "A\n"])
def test_a_name_that_no_shell_takes_never_reaches_a_file(name: str) -> None:
    with pytest.raises(ValueError, match="env"):
        variables({**FACTS, "env": {name: "x"}})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NODE_RANK", True),
        ("NNODES", True),
        ("WORLD_SIZE", True),
        ("FLOW_NUM_NODES", True),
        ("CLUSTERCTL_ANYTHING", True),
        ("MASTER_ADDR", False),
        ("NPROC_PER_NODE", False),
        ("NCCL_DEBUG", False),
    ],
)
def test_what_the_nodes_have_to_agree_on_is_fixed(name: str, expected: bool) -> None:
    assert is_fixed(name) is expected


@given(own=ENVIRONMENTS)
def test_a_shell_reads_every_value_as_it_was_written(own: dict[str, str]) -> None:
    rows = variables({**FACTS, "env": own})
    assert read_by_shell(render_env(rows)) == {row.name: row.value for row in rows}


@given(own=ENVIRONMENTS)
def test_the_raw_list_has_every_value_but_those_with_a_newline(own: dict[str, str]) -> None:
    rows = variables({**FACTS, "env": own})
    text, left_out = render_env_list(rows)
    assert left_out == sorted(name for name, value in own.items() if "\n" in value)
    assert read_raw(text) == {row.name: row.value for row in rows if row.name not in left_out}


def test_a_quote_is_written_as_systemd_reads_it() -> None:
    """systemd 252 misreads '\\''."""
    text = render_env(variables({**FACTS, "env": {"A": "it's"}}))
    assert text.splitlines()[-1] == """A='it'"'"'s'"""

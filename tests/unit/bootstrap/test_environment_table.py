"""The environment table: the same facts in every dialect, and its two renderings."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from clusterctl_bootstrap.environment_meaning import fault_of_own
from clusterctl_bootstrap.node.environment import render_env, render_env_list, slurm_variables, variables
from clusterctl_bootstrap.node.writing import names
from hypothesis import given
from hypothesis import strategies as st

FACTS: dict[str, Any] = {
    "cluster": "train",
    "cluster_id": "3f9c0a51b7de",
    "generation": 5,
    "slot": 2,
    "rank": 2,
    "nodes": 4,
    "gpus_per_node": 8,
    "slot_cidr": "10.0.8.0/21",
}
UNEVEN = {"gpus": [8, 4, 0, 2], "ranks": [0, 3, 1, 2]}
"""Slots 0, 2, 3, 1 in the order of their ranks, with 8, 0, 2 and 4 GPUs."""
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True).filter(lambda name: fault_of_own(name, "1") is None)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ENVIRONMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


def values(**changes: Any) -> dict[str, str]:
    return {row.name: row.value for row in variables({**FACTS, **changes})}


def of_every_slot(**changes: Any) -> list[dict[str, str]]:
    """The tables of all nodes, by slot."""
    facts = {**FACTS, **changes}
    ranks = facts.get("ranks") or range(facts["nodes"])
    return [values(**{**changes, "slot": slot, "rank": ranks[slot]}) for slot in range(facts["nodes"])]


def read_by_shell(text: str) -> dict[str, str]:
    """What a POSIX shell makes of assignments: quotes, but nothing expanded."""
    return dict(word.partition("=")[::2] for word in shlex.split(text, comments=True))


def read_raw(text: str) -> dict[str, str]:
    """What sshd and docker make of it: a line is a variable, but a comment."""
    return dict(line.partition("=")[::2] for line in text.split("\n") if line and not line.startswith("#"))


SAME = {
    "this node's rank": (
        "NODE_RANK FLOW_NODE_RANK SATURN_JOB_RANK SKYPILOT_NODE_RANK DSTACK_NODE_RANK JAX_PROCESS_ID",
        "2",
    ),
    "the number of nodes": (
        "NNODES FLOW_NUM_NODES SATURN_JOB_SCALE SKYPILOT_NUM_NODES DSTACK_NODES_NUM JAX_NUM_PROCESSES",
        "4",
    ),
    "the address of rank 0": ("MASTER_ADDR FLOW_MAIN_IP DSTACK_MASTER_NODE_IP", "10.0.8.0"),
    "this node's GPUs": ("NPROC_PER_NODE SKYPILOT_NUM_GPUS_PER_NODE DSTACK_GPUS_PER_NODE", "8"),
    "all GPUs": ("WORLD_SIZE DSTACK_GPUS_NUM", "32"),
    "all addresses": ("SKYPILOT_NODE_IPS DSTACK_NODES_IPS", "10.0.8.0\n10.0.8.1\n10.0.8.2\n10.0.8.3"),
}


@pytest.mark.parametrize(("group", "expected"), SAME.values(), ids=SAME)
def test_every_dialect_is_told_the_same(group: str, expected: str) -> None:
    table = values()
    assert {name: table[name] for name in group.split()} == dict.fromkeys(group.split(), expected)


def test_a_node_without_gpus_runs_one_process_and_has_no_gpus() -> None:
    table = values(gpus_per_node=0)
    assert (table["NPROC_PER_NODE"], table["WORLD_SIZE"]) == ("1", "4")
    assert (table["SKYPILOT_NUM_GPUS_PER_NODE"], table["DSTACK_GPUS_NUM"]) == ("0", "0")


def test_ranks_of_processes_are_sums_where_nodes_have_different_gpus() -> None:
    tables = of_every_slot(**UNEVEN)
    assert [table["CLUSTERCTL_FIRST_RANK"] for table in tables] == ["0", "11", "8", "9"]
    assert [table["NPROC_PER_NODE"] for table in tables] == ["8", "4", "1", "2"]
    assert {(table["WORLD_SIZE"], table["DSTACK_GPUS_NUM"]) for table in tables} == {("15", "14")}


def test_other_numbers_follow_the_processes_that_a_person_asks_for() -> None:
    tables = of_every_slot(**UNEVEN, env={"NPROC_PER_NODE": "2"})
    assert [table["CLUSTERCTL_FIRST_RANK"] for table in tables] == ["0", "6", "2", "4"]
    assert {(table["NPROC_PER_NODE"], table["WORLD_SIZE"]) for table in tables} == {("2", "8")}
    assert {table["DSTACK_GPUS_NUM"] for table in tables} == {"14"}, "GPUs are counted as they are"


@given(
    gpus=st.lists(st.sampled_from([0, 1, 2, 4, 8]), min_size=1, max_size=12),
    data=st.data(),
)
def test_the_processes_of_all_nodes_have_each_rank_once(gpus: list[int], data: st.DataObject) -> None:
    ranks = [0, *data.draw(st.permutations(range(1, len(gpus))))]
    tables = of_every_slot(nodes=len(gpus), gpus=gpus, ranks=ranks)
    taken = [
        rank
        for table in tables
        for rank in range(
            int(table["CLUSTERCTL_FIRST_RANK"]), int(table["CLUSTERCTL_FIRST_RANK"]) + int(table["NPROC_PER_NODE"])
        )
    ]
    assert sorted(taken) == list(range(int(tables[0]["WORLD_SIZE"])))


def test_lists_are_in_the_order_of_ranks_and_of_numbers_not_of_letters() -> None:
    addresses = values(nodes=12)["SKYPILOT_NODE_IPS"].split("\n")
    assert addresses == [f"10.0.8.{slot}" for slot in range(12)]
    assert values(**UNEVEN, rank=1)["DSTACK_NODES_IPS"].split("\n") == ["10.0.8.0", "10.0.8.2", "10.0.8.3", "10.0.8.1"]


def test_tensorflow_finds_this_node_at_its_index() -> None:
    for slot, table in enumerate(of_every_slot(**UNEVEN)):
        config = json.loads(table["TF_CONFIG"])
        assert config["task"]["type"] == "worker"
        assert config["cluster"]["worker"][config["task"]["index"]] == f"10.0.8.{slot}:2222"


def test_tensorflows_port_is_the_one_asked_for() -> None:
    config = json.loads(values(env={"TF_PORT": "5000"})["TF_CONFIG"])
    assert config["cluster"]["worker"][3] == "10.0.8.3:5000"


def test_a_name_put_together_as_saturns_guide_says_is_that_ranks_address() -> None:
    facts = {**FACTS, **UNEVEN, "rank": 1}
    table = values(**UNEVEN, rank=1)
    known = names(facts)
    domain = f"{table['SATURN_INTERNAL_SUBDOMAIN']}.{table['SATURN_NAMESPACE']}.svc.cluster.local"
    found = [known[f"{table['SATURN_JOB_RUN']}-{rank}.{domain}"] for rank in range(4)]
    assert found == ["10.0.8.0", "10.0.8.2", "10.0.8.3", "10.0.8.1"]
    assert known[table["SATURN_JOB_LEADER"]] == table["MASTER_ADDR"]


def test_slurms_names_stand_alone() -> None:
    slurm = {row.name: row.value for row in slurm_variables({**FACTS, **UNEVEN, "rank": 1})}
    assert slurm["SLURM_JOB_NODELIST"] == "train-0,train-2,train-3,train-1"
    assert (slurm["SLURM_NNODES"], slurm["SLURM_PROCID"], slurm["SLURM_GPUS_ON_NODE"]) == ("4", "1", "0")
    assert int(slurm["SLURM_JOB_ID"]) > 0, "JAX reads a number"
    assert not any(name.startswith("SLURM") for name in values())


def test_what_differs_from_process_to_process_is_left_to_the_launcher() -> None:
    assert {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}.isdisjoint(values())


def test_a_persons_own_value_wins_stands_once_and_is_marked() -> None:
    rows = variables({**FACTS, "env": {"MASTER_ADDR": "192.0.2.1", "MINE": "x"}})
    assert [row.value for row in rows if row.name == "MASTER_ADDR"] == ["192.0.2.1"]
    lines = render_env(rows).splitlines()
    assert lines[-4:] == [
        "# yours, from env: in cluster.yaml, instead of ours",
        "MASTER_ADDR='192.0.2.1'",
        "# yours, from env: in cluster.yaml",
        "MINE='x'",
    ]


@pytest.mark.parametrize("name", ["A-B", "1A", "A B", "", "A=B", "A\n"])
def test_a_name_that_no_shell_takes_never_reaches_a_file(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"env: {name!r} is not a valid variable name")):
        variables({**FACTS, "env": {name: "x"}})


FAULTS = {
    "NODE_RANK": "clusterctl sets it",
    "WORLD_SIZE": "clusterctl sets it",
    "TF_CONFIG": "clusterctl sets it",
    "CLUSTERCTL_ANYTHING": "clusterctl sets it",
    "LOCAL_RANK": "differs from process to process",
    "TF_PORT": "'x' is no port: 1 to 65535",
    "NPROC_PER_NODE": "'x' is no number of processes",
    "MASTER_ADDR": None,
    "NCCL_DEBUG": None,
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_the_nodes_have_to_agree_on_may_not_be_set(name: str) -> None:
    fault, expected = fault_of_own(name, "x"), FAULTS[name]
    assert fault is None if expected is None else str(fault).startswith(expected)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "٣", "", "80 "])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    assert fault_of_own("MASTER_PORT", port) == f"{port!r} is no port: 1 to 65535"


@pytest.mark.parametrize("character", ["\ufffe", "\ufdd0", "\U0010ffff", "\ud800"])
def test_what_is_no_character_is_refused(character: str) -> None:
    """systemd refuses a whole EnvironmentFile for one of them."""
    assert f"U+{ord(character):04X}" in str(fault_of_own("MINE", f"a{character}b"))


@pytest.mark.parametrize("character", ["\ufffd", "\uffef", "\ufeff", "\U0001fffd", "\x85", "\u2028", "\x7f"])
def test_rare_characters_are_taken(character: str) -> None:
    assert fault_of_own("MINE", character) is None


@given(own=ENVIRONMENTS)
def test_a_shell_reads_every_value_as_it_was_written(own: dict[str, str]) -> None:
    rows = variables({**FACTS, "env": own})
    found = read_by_shell(render_env(rows))
    assert found == {row.name: row.value for row in rows}
    assert {name: found.get(name) for name in own} == own


@given(own=ENVIRONMENTS)
def test_the_raw_list_has_every_value_but_those_with_a_newline(own: dict[str, str]) -> None:
    rows = variables({**FACTS, "env": own})
    text, left_out = render_env_list(rows)
    ours = ["SKYPILOT_NODE_IPS", "DSTACK_NODES_IPS"]
    assert left_out == [*ours, *sorted(name for name, value in own.items() if "\n" in value)]
    assert read_raw(text) == {row.name: row.value for row in rows if row.name not in left_out}


def test_a_quote_is_written_as_systemd_reads_it() -> None:
    """systemd 252 misreads '\\''."""
    text = render_env(variables({**FACTS, "env": {"A": "it's"}}))
    assert text.splitlines()[-1] == """A='it'"'"'s'"""


def test_an_ipv6_address_before_a_port_has_brackets() -> None:
    facts = {**FACTS, "slot_cidr": "fd00::5,fd00::6", "nodes": 2, "slot": 1, "rank": 1}
    found = {row.name: row.value for row in variables(facts)}
    assert (found["MASTER_ADDR"], found["JAX_COORDINATOR_ADDRESS"]) == ("fd00::5", "[fd00::5]:8476")
    assert json.loads(found["TF_CONFIG"])["cluster"]["worker"] == ["[fd00::5]:2222", "[fd00::6]:2222"]

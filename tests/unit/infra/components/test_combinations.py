"""Every combination of capacity, access, network and storage is planned and makes the resources that it needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.load import parse_cluster

from tests.combinations import AXES, TABLE, Row, all_rows, config_of, engine_rows, pairs_in, pairwise, table_text
from tests.unit.infra.components.example_clusters import recorded_config
from tests.unit.infra.components.recorded_program import ELASTIC_IP, INSTANCE, Recording

CATALOG = load_catalog()
KINDS: Mapping[str, Callable[[Row], bool]] = {
    "aws:ec2/capacityReservation:CapacityReservation": lambda row: row[0] == "on-demand",
    "aws:ec2/vpc:Vpc": lambda row: row[2] == "own",
    "aws:ec2/natGateway:NatGateway": lambda row: row[1] == "Session Manager" and row[2] == "own",
    "aws:efs/fileSystem:FileSystem": lambda row: row[3] == "EFS",
    "aws:fsx/lustreFileSystem:LustreFileSystem": lambda row: row[3] == "FSx",
}
"""Type → whether a combination has one."""


@pytest.mark.parametrize("row", all_rows(), ids="-".join)
def test_a_combination_is_planned_and_makes_what_it_needs(row: Row) -> None:
    made = made_by(row)
    assert len(made.of_type(INSTANCE)) == 1
    assert {kind: bool(made.of_type(kind)) for kind in KINDS} == {kind: has(row) for kind, has in KINDS.items()}
    addresses = {"elastic addresses": 1, "Session Manager": int(row[2] == "own")}.get(row[1], 0)
    assert len(made.of_type(ELASTIC_IP)) == addresses


def made_by(row: Row) -> Recording:
    """What the program of a combination asks for; raises what a plan refuses."""
    text = json.dumps({"name": "train", "region": "us-west-2", **config_of(row)})
    config = parse_cluster(text, source="cluster.yaml", catalog=CATALOG)
    return recorded_config(config.model_copy(update={"owner": "ada"}))


def test_the_table_of_pairs_is_the_one_that_the_axes_make() -> None:
    assert TABLE.read_text(encoding="utf-8") == table_text(pairwise(all_rows())), "python -m tests.combinations"


def test_every_pair_of_values_meets_in_the_table_and_no_row_is_there_for_nothing() -> None:
    rows = pairwise(all_rows())
    every = {pair for row in all_rows() for pair in pairs_in(row)}
    assert {pair for row in rows for pair in pairs_in(row)} == every
    for index, row in enumerate(rows):
        assert pairs_in(row) - {pair for other in rows[:index] for pair in pairs_in(other)}


def test_every_value_stands_in_a_row_that_the_engine_brings_up() -> None:
    values = {value for row in engine_rows() for value in enumerate(row)}
    assert values == {(index, value) for index, axis in enumerate(AXES.values()) for value in axis}

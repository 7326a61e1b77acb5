"""Which types and zones are asked for, what is said of it before, and what a living cluster keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.cloud.capacity_trial import Answer, Candidate
from clusterctl.engine.run_file import new_record, read_record, write_record
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import INSTANCE_TYPE, StackState, StateResource
from clusterctl.lifecycle.intent import Intent, for_up, plan_of
from clusterctl.lifecycle.room_stage import candidates_of, room_table, room_words
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from tests.unit.cli.cloud.fake_clients import FakeClients
from tests.unit.cli.cloud.test_capacity_trial import ID, FakeEc2, clients_of
from tests.unit.cli.lifecycle.held_cluster import Clock, held
from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER, intent_of, state_of

LIST = CLUSTER.replace("p5.48xlarge", "[p5en.48xlarge, p5.48xlarge]")
CHOSEN = '{"instance_type":"p5.48xlarge","zone":"us-west-2b"}'
MACHINE = StateResource(
    urn="u::i::0",
    type=INSTANCE_TYPE,
    id="i-0",
    inputs={"tags": {"clusterctl:slot": "0"}},
    outputs={"instanceType": "p5.48xlarge"},
)


def wanted(tmp_path: Path, text: str, state: StackState, config: str = "") -> Intent:
    (tmp_path / "cluster.yaml").write_text(text)
    stack = Stack(directory=tmp_path, name="dev", project="train", is_rehearsal_project=False)
    return for_up(intent_of(stack, config), state, {})


def zones(tmp_path: Path, text: str, state: StackState) -> list[str]:
    found = candidates_of(clients_of(FakeEc2()), wanted(tmp_path, text, state), state, source="cluster.yaml")
    return [f"{each.instance_type.partition('.')[0]} {each.zone[-1]}" for each in found]


@pytest.mark.parametrize(
    ("text", "state", "asked"),
    [
        (CLUSTER, StackState(), ["p5 a", "p5 b"]),
        (CLUSTER + "zone: us-west-2b\n", StackState(), []),
        (LIST, StackState(), ["p5en c", "p5 a", "p5 b"]),
        (LIST + "zone: us-west-2b\n", StackState(), ["p5 b"]),
        (LIST, state_of(), ["p5 b"]),
        (LIST, state_of(MACHINE), []),
        (CLUSTER, state_of(), []),
        (CLUSTER + "capacity: spot\n", StackState(), []),
    ],
)
def test_aws_is_asked_only_about_types_and_zones_that_are_still_open(
    tmp_path: Path, text: str, state: StackState, asked: list[str]
) -> None:
    assert zones(tmp_path, text, state) == asked


def test_a_type_that_no_zone_offers_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match=r"AWS offers p5en.48xlarge and p5.48xlarge nowhere in us-west-2d"):
        zones(tmp_path, LIST + "zone: us-west-2d\n", StackState())


def test_a_list_is_planned_and_agreed_to_at_the_price_of_its_dearest_type(tmp_path: Path) -> None:
    intent = wanted(tmp_path, LIST.replace("p5en.48xlarge, p5.48xlarge", "p5.48xlarge, p5en.48xlarge"), StackState())
    planned = plan_of(intent, StackState(), now=BORN)
    assert planned.instance_type == "p5en.48xlarge"
    candidates = [Candidate(instance_type=name, zone="us-west-2a") for name in ("p5.48xlarge", "p5en.48xlarge")]
    words = room_words(candidates, planned)
    assert words is not None
    assert words.startswith(
        "p5en.48xlarge is the most expensive of p5.48xlarge, p5en.48xlarge. First AWS is asked for capacity"
    )
    hourly = 4 * (planned.price.node_usd_per_hour or 0)
    assert f"${hourly / 60:.2f} for each minute" in words
    assert f"${hourly * 65 / 60:.2f} at worst" in words
    assert room_words(candidates[:1], planned) is None


def test_a_living_cluster_keeps_its_type_whatever_the_list_says_now(tmp_path: Path) -> None:
    state = state_of(MACHINE)
    other = wanted(tmp_path, LIST.replace("p5.48xlarge]", "p6-b200.48xlarge]"), state)
    assert other.changes["chosen"] == CHOSEN
    assert plan_of(other, state, now=BORN).instance_type == "p5.48xlarge"


def test_a_cluster_keeps_the_layout_of_its_birth_and_a_new_one_has_the_newest(tmp_path: Path) -> None:
    text = CLUSTER.replace("p5.48xlarge", "g5.8xlarge")
    old, new = wanted(tmp_path, text, state_of()), wanted(tmp_path, text, StackState())
    assert (old.changes["layout"], new.changes["layout"]) == (None, "2")
    assert len(plan_of(old, state_of(), now=BORN).interface_layout) == 2
    assert plan_of(new, StackState(), now=BORN).interface_layout == ((0, 0, "efa"),)


def test_what_was_chosen_for_a_cluster_that_is_gone_counts_no_more(tmp_path: Path) -> None:
    config = f"config:\n  clusterctl:chosen: {json.dumps(CHOSEN)}\n"
    intent = wanted(tmp_path, LIST, StackState(), config)
    assert (intent.changes["chosen"], intent.config.is_list) == (None, True)


def test_zones_with_one_answer_are_one_row() -> None:
    attempts = [
        Answer(candidate=Candidate(instance_type=name, zone=f"us-west-2{zone}"), refusal=refusal)
        for name, zone, refusal in (
            ("p5en.48xlarge", "a", "No"),
            ("p5en.48xlarge", "b", "No"),
            ("p5", "a", None),
        )
    ]
    assert room_table(attempts, places=4).split("\n")[1:] == [
        "  p5en.48xlarge  us-west-2a, us-west-2b  No",
        "  p5             us-west-2a              room for 4",
    ]


class Regions(FakeClients):
    """AWS with more than one region."""

    def __init__(self, regions: dict[str, FakeEc2], region: str = "us-west-2") -> None:
        super().__init__(region=region, ec2=regions[region])
        self.regions = regions

    def elsewhere(self, region: str) -> Regions:
        return Regions(self.regions, region)


def test_the_trial_of_a_killed_up_is_ended_in_the_region_where_it_was_made(tmp_path: Path) -> None:
    regions = {"us-west-2": FakeEc2(), "us-east-1": FakeEc2()}
    tags = [{"Key": ID_TAG, "Value": ID}]
    for ec2 in regions.values():
        row = {"CapacityReservationId": "cr-1", "InstanceType": "p5.48xlarge", "Tags": tags, "State": "active"}
        ec2.reservations["cr-1"] = row
    change = held(tmp_path, Clock(at=BORN), repair_s=0, aws=Regions(regions)).change
    file = change.home.run_file(change.cluster)
    left = replace(new_record("up", tokens=(), stack="train"), trial=ID, trial_region="us-east-1")
    write_record(file, left)
    assert read_record(file) == left
    change.previous = left
    change.end_left_trial()
    assert [len(ec2.reservations) for ec2 in regions.values()] == [1, 0]
    ended = read_record(file)
    assert ended is not None
    assert (ended.trial, ended.trial_region) == ("", "")

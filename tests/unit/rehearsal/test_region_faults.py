"""Fault verbs: what they do to instances and settings, and what they say."""

from __future__ import annotations

import pytest
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.fault_arguments import FaultError
from clusterctl_rehearsal.region.faults import FAULTS, Faults
from clusterctl_rehearsal.region.scheduled_events import DESCRIPTIONS
from clusterctl_rehearsal.region.types import network

from tests.unit.rehearsal.small_region import CATALOG, SmallRegion

STOPPED: list[str] = []


@pytest.fixture
def faults(world: SmallRegion) -> Faults:
    STOPPED.clear()
    return Faults(
        instances=world.instances,
        behaviour=world.behaviour,
        catalog=CATALOG,
        stop=lambda: STOPPED.append("stopped"),
    )


def test_every_verb_that_is_promised_is_there() -> None:
    promised = "kill freeze thaw unplug plug partition reboot fail-bootstrap slow capacity quota latency stop-region"
    promised += " interrupt rebalance event expire-credentials"
    assert set(promised.split()) <= set(FAULTS)


def test_a_killed_node_is_a_terminated_instance(world: SmallRegion, faults: Faults) -> None:
    node = world.node(2)
    assert faults.do("kill", ["train-2"]) == "train-2 is dead, as after a hardware failure"
    ended = world.store.get(network.INSTANCE, node.id)
    assert ended is not None
    message = "Server.InternalError: hardware failure (simulated)"
    assert (ended.state, *ended.facts["reason"]) == ("terminated", "Server.InternalError", message)


def test_credentials_end_until_they_are_good_again(world: SmallRegion, faults: Faults) -> None:
    assert faults.do("expire-credentials", []) == "your credentials have expired: AWS refuses what you ask"
    with pytest.raises(AwsError, match="The security token included in the request is expired"):
        world.behaviour.check_credentials()
    assert faults.do("expire-credentials", ["off"]) == "your credentials are valid again"
    world.behaviour.check_credentials()


def test_a_node_is_named_by_its_instance_id_too(world: SmallRegion, faults: Faults) -> None:
    assert faults.do("freeze", [world.node(2).id]) == "train-2 stands still"


@pytest.mark.parametrize(
    ("verb", "args", "message"),
    [
        ("interrupt", ["train-2"], "train-2 is no spot machine: AWS takes back no others"),
        ("interrupt", ["train-2", "off"], "train-2 is no spot machine: AWS takes back no others"),
        ("interrupt", ["train-2", "soon"], "'soon' is not a count"),
        ("interrupt", ["train-2", "121"], "121 s: AWS gives 120 s at most"),
        ("rebalance", ["train-2"], "train-2 is no spot machine: AWS takes back no others"),
        ("rebalance", ["train-2", "off"], "rebalance wants: rebalance NODE"),
        ("expire-credentials", ["soon"], "'soon': write off, or nothing"),
        ("event", ["train-2"], "event wants: event NODE CODE [SECONDS | off]"),
        ("event", ["train-2", "instance-stop", "soon"], "'soon' is not a count"),
        ("event", ["train-2", "instance-stopp"], "AWS has no event 'instance-stopp' (did you mean instance-stop?)"),
        ("event", ["train-2", "x"], f"AWS has no event 'x'; there are {', '.join(DESCRIPTIONS)}"),
        ("event", ["train-3", "instance-stop"], "no node train-3 (did you mean train-2?)"),
        ("kil", [], "no fault is called 'kil' (did you mean kill?)"),
        ("kill", [], "kill wants: kill NODE"),
        ("kill", ["train-3"], "no node train-3 (did you mean train-2?)"),
        ("partition", ["train-2"], "partition wants: partition NODE NODE"),
        ("partition", ["train-2", "train-2"], "partition wants two nodes, and both are train-2"),
        ("capacity", ["p5.48xlarge=many"], "'many' is not a count"),
        ("capacity", ["p5.48xlage=3"], "p5.48xlage: there is no such instance type (did you mean p5.48xlarge?)"),
        ("capacity", ["x=3"], "x: there is no such instance type; clusterctl prices lists those that are known"),
        ("capacity", ["p5.48xlarge"], "p5.48xlarge: write p5.48xlarge=COUNT, or p5.48xlarge=off"),
        ("capacity", ["p5.48xlarge=1", "2"], "p5.48xlarge=1 2: write p5.48xlarge=COUNT, or p5.48xlarge=off"),
        ("latency", ["soon"], "'soon' is not a count"),
        ("latency", ["²"], "'²' is not a count"),
        ("slow", ["train-2", "0"], "0 Mbit/s is no link: unplug takes a node off the network"),
        ("slow", ["train-2", "fast"], "'fast' is not a count"),
        ("new-images", ["tomorrow"], "'tomorrow' is not a date, such as 2027-01-31"),
        ("fail-bootstrap", ["2"], "'2' is no node's name: a cluster's name and a slot, such as train-2"),
        ("quota", ["addreses=20"], "addreses: there is no such quota (did you mean addresses?)"),
        ("quota", ["x=20"], "x: there is no such quota (there are vcpus, spot_vcpus, addresses, vpcs)"),
        ("quota", ["addreses=off"], "addreses: there is no such quota (did you mean addresses?)"),
    ],
)
def test_a_wrong_fault_is_told_what_is_right(
    world: SmallRegion, faults: Faults, verb: str, args: list[str], message: str
) -> None:
    world.node(2)
    with pytest.raises(FaultError) as caught:
        faults.do(verb, args)
    assert str(caught.value) == message


@pytest.mark.parametrize("args", [["p5.48xlarge=3"], ["p5.48xlarge", "3"]])
def test_capacity_is_laid_over_the_settings(world: SmallRegion, faults: Faults, args: list[str]) -> None:
    assert faults.do("capacity", args) == "capacity of p5.48xlarge: 3"
    assert world.behaviour.settings().capacity == {"p5.48xlarge": 3}
    faults.do("capacity", ["p5.48xlarge=off"])
    assert world.behaviour.settings().capacity == {}


def test_a_quota_and_latency_can_be_set_and_taken_away(world: SmallRegion, faults: Faults) -> None:
    faults.do("quota", ["vcpus=768"])
    faults.do("latency", ["200ms"])
    assert (world.behaviour.settings().quotas["vcpus"], world.behaviour.settings().latency_ms) == (768, 200)
    faults.do("latency", ["off"])
    assert world.behaviour.settings().latency_ms == 0


def test_a_failing_bootstrap_is_kept_for_the_next_boots(world: SmallRegion, faults: Faults) -> None:
    faults.do("fail-bootstrap", ["train-1", "no", "driver"])
    assert world.behaviour.faults()["fail_bootstrap"] == {"train-1": "no driver"}
    faults.do("fail-bootstrap", ["train-1", "off"])
    assert world.behaviour.faults() == {}


def test_a_node_whose_boot_is_to_fail_need_not_be_there_and_that_is_said(world: SmallRegion, faults: Faults) -> None:
    world.node(2)
    assert faults.do("fail-bootstrap", ["train-2"]) == "every next boot of train-2 fails: simulated failure"
    message = "every next boot of trian-2 fails: simulated failure; no trian-2 runs now (did you mean train-2?)"
    assert faults.do("fail-bootstrap", ["trian-2"]) == message


def test_the_region_is_stopped_last(faults: Faults) -> None:
    assert "machines live on" in faults.do("stop-region", [])
    assert STOPPED == ["stopped"]

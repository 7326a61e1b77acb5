"""Instances live as on AWS, and the store remembers them over a restart."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pytest
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.instances import REMEMBERED_S
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.addresses import EIP_ASSOCIATION

from tests.unit.rehearsal.small_region import TAGS, SmallRegion, interface


def test_an_instance_takes_everything_from_its_template(world: SmallRegion) -> None:
    node = world.node(2)
    assert node.state == "running"
    shown = world.instances.outputs(node)
    assert (shown["privateIp"], shown["instanceType"], shown["instanceState"]) == ("10.0.8.2", "p5.48xlarge", "running")
    assert node.tags == {**TAGS, "clusterctl:slot": "2"}
    assert (node.facts["network"], node.facts["node"]) == ("train", "train-2")


def test_a_repeated_request_makes_nothing_again(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group)
    assert world.launch(template, "request-1").id == world.launch(template, "request-1").id


def test_a_terminated_instance_is_gone_for_the_provider_and_remembered_for_an_hour(world: SmallRegion) -> None:
    node = world.node()
    world.region.delete(network.INSTANCE, node.id)
    assert world.region.read(network.INSTANCE, node.id) is None
    world.now += REMEMBERED_S - 60
    world.instances.watch()
    assert [row.state for row in world.store.all(network.INSTANCE)] == ["terminated"]
    world.now += 120
    world.instances.watch()
    assert world.store.all(network.INSTANCE) == []


def test_its_address_is_free_once_it_has_ended(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group)
    first = world.launch(template)
    world.region.delete(network.INSTANCE, first.id)
    assert world.launch(template).outputs["privateIp"] == first.outputs["privateIp"]


def test_a_machine_that_ends_by_itself_is_a_terminated_instance(world: SmallRegion) -> None:
    node = world.node()
    world.instances.room.kill(node)
    world.instances.watch()
    ended = world.store.all(network.INSTANCE)[0]
    assert (ended.state, ended.facts["reason"][0]) == ("terminated", "Client.InstanceInitiatedShutdown")


def test_an_automatic_address_keeps_clear_of_a_reservation(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    world.make(network.CIDR_RESERVATION, subnetId=subnet.id, cidrBlock="10.0.0.0/21", reservationType="explicit")
    node = world.launch(world.template(subnet, group, networkInterfaces=[interface(subnet, group)]))
    assert node.outputs["privateIp"] == "10.0.8.0"


def test_interfaces_that_are_not_deleted_with_it_stay_behind_and_hold_the_subnet(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    second = interface(subnet, group, networkCardIndex=1, interfaceType="efa-only", deleteOnTermination=None)
    template = world.template(subnet, group, networkInterfaces=[interface(subnet, group), second])
    node = world.launch(template)
    world.region.delete(network.INSTANCE, node.id)
    assert len(list(world.store.live(network.NETWORK_INTERFACE))) == 1
    with pytest.raises(AwsError, match="DependencyViolation"):
        world.region.delete(network.SUBNET, subnet.id)


def test_an_elastic_address_shows_on_its_instance_and_comes_loose_with_its_end(world: SmallRegion) -> None:
    node = world.node()
    address = world.make(network.EIP, domain="vpc")
    world.make(EIP_ASSOCIATION, allocationId=address.id, networkInterfaceId=node.outputs["primaryNetworkInterfaceId"])
    assert world.instances.outputs(node)["publicIp"] == address.outputs["publicIp"]
    with pytest.raises(AwsError, match=r"InvalidIPAddress\.InUse"):
        world.region.delete(network.EIP, address.id)
    world.region.delete(network.INSTANCE, node.id)
    world.region.delete(network.EIP, address.id)


def test_an_address_takes_other_tags_when_its_machine_is_gone_but_no_new_tie_to_it(world: SmallRegion) -> None:
    node = world.node()
    card = node.outputs["primaryNetworkInterfaceId"]
    address, free = world.make(network.EIP, domain="vpc", networkInterface=card), world.make(network.EIP, domain="vpc")
    world.region.delete(network.INSTANCE, node.id)
    changed = world.region.update(network.EIP, address.id, {**address.inputs, "tags": {"a": "b"}})
    assert changed.tags["a"] == "b"
    with pytest.raises(AwsError, match=r"InvalidNetworkInterfaceID\.NotFound"):
        world.region.update(network.EIP, free.id, {**free.inputs, "networkInterface": card})


def test_an_instance_with_several_addresses_is_not_tied_by_its_id(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    cards = [interface(subnet, group), interface(subnet, group, networkCardIndex=1)]
    node = world.launch(world.template(subnet, group, networkInterfaces=cards))
    with pytest.raises(AwsError, match="InvalidInstanceID: There are multiple interfaces"):
        world.make(network.EIP, domain="vpc", instance=node.id)


def test_a_single_interface_gets_a_public_address_when_asked(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    card = interface(subnet, group, associatePublicIpAddress="true")
    node = world.launch(world.template(subnet, group, networkInterfaces=[card]))
    assert world.instances.outputs(node)["publicIp"].startswith("198.1")


def test_a_changed_template_has_a_new_version_and_its_instance_the_old_one(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group)
    first = world.launch(template)
    changed = world.region.update(LAUNCH_TEMPLATE, template.id, {**template.inputs, "userData": "bmV3"})
    assert changed.outputs["latestVersion"] == 2
    assert first.facts["template"] == [template.id, "1"]
    world.region.delete(network.INSTANCE, first.id)
    assert world.launch(changed).facts["user_data"] == "bmV3"


def test_new_tags_of_a_template_are_no_new_version(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    template = world.template(subnet, group)
    assert (
        world.region.update(LAUNCH_TEMPLATE, template.id, {**template.inputs, "tags": {}}).outputs["latestVersion"] == 1
    )


def test_a_second_vpc_of_a_name_gets_a_network_of_its_own(world: SmallRegion) -> None:
    assert world.node(0).facts["network"] == "train"
    assert world.node(1).facts["network"].startswith("train-")


def test_a_restarted_region_takes_over_what_runs_and_finishes_what_was_under_way(tmp_path: Path) -> None:
    before = SmallRegion(tmp_path / "home")
    _, subnet, group = before.network()
    nodes = [before.launch(before.template(subnet, group, slot)) for slot in range(3)]
    before.store.put(nodes[1].changed(state="pending"))
    before.store.put(nodes[2].changed(state="shutting-down"))
    after = SmallRegion(tmp_path / "home")
    after.instances.adopt()
    states = {row.facts["node"]: row.state for row in after.store.all(network.INSTANCE)}
    assert states == {"train-0": "running", "train-1": "running", "train-2": "terminated"}


def test_a_store_survives_a_write_that_was_cut_off(tmp_path: Path, world: SmallRegion) -> None:
    vpc, _, _ = world.network()
    folder = tmp_path / "rehearsal/store"
    (folder / "Vpc.vpc-cut.new").write_text('{"id": "vpc-c')
    again = Store(folder)
    assert [row.id for row in again.all(network.VPC)] == [vpc.id]
    again.forget(vpc)
    assert Store(folder).get(network.VPC, vpc.id) is None


def test_user_data_of_the_template_comes_back_as_a_text_of_the_instance(world: SmallRegion) -> None:
    assert world.instances.outputs(world.node(2))["userData"] == "slot 2"


def test_a_machine_whose_templates_user_data_is_no_text_is_made_and_lost_by_the_provider(world: SmallRegion) -> None:
    node = world.node(userData=base64.b64encode(gzip.compress(b"#cloud-config")).decode())
    assert node.state == "running"
    with pytest.raises(StandInRefusal, match="string field contains invalid UTF-8: user-data that is no text"):
        world.region.read(network.INSTANCE, node.id)


def test_user_data_that_the_instance_was_given_as_base64_stays_base64(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    packed = base64.b64encode(gzip.compress(b"#cloud-config")).decode()
    node = world.launch(world.template(subnet, group), userDataBase64=packed)
    shown = world.instances.outputs(node)
    assert shown["userDataBase64"] == packed
    assert "userData" not in shown

"""A type with one card and one EFA: one interface and AWS's own public address; a cluster born with two keeps them."""

from __future__ import annotations

from tests.integration.recorded_stack import PUBLIC, instances
from tests.integration.rehearsed import Rehearsed

TEMPLATE, ADDRESS = "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/eip:Eip"


def interfaces(cluster: Rehearsed) -> list[str]:
    template = next(row for row in cluster.resources() if row.token == TEMPLATE)
    return [str(row.get("interfaceType")) for row in template.inputs["networkInterfaces"]]


def addresses(cluster: Rehearsed) -> int:
    return sum(row.token == ADDRESS for row in cluster.resources())


def test_a_cluster_of_before_keeps_its_interfaces_and_a_new_one_has_one(recorded: Rehearsed) -> None:
    recorded.write(machines="none", instance_type="g5.8xlarge", access=PUBLIC)
    assert recorded.pulumi("stack", "init", "dev").exit_code == 0
    born = recorded.pulumi("up", "--yes", "--skip-preview")  # without the layout in its config, as before there was one
    assert born.exit_code == 0, born.text
    before = instances(recorded)
    assert (len(interfaces(recorded)), addresses(recorded)) == (2, 2)
    recorded.up()
    assert (instances(recorded), addresses(recorded)) == (before, 2)
    recorded.ok("down", str(recorded.folder), "--yes")
    recorded.up()
    assert (interfaces(recorded), addresses(recorded)) == (["efa"], 0)

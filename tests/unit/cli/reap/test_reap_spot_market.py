"""Spot prices are asked for where `reap` found spot machines, and a refusal hides nothing of what is there."""

from __future__ import annotations

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.resource import Meter
from clusterctl.reap.remains import Remains
from clusterctl.reap.spot_market import spot_market

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.reap.reap_cases import ID, NOW, thing

ASK = "describe_spot_price_history"
ROWS = [{"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-west-2b", "SpotPrice": "12.500000"}]


def remains(unit: str) -> Remains:
    meter = Meter(unit=unit, name="p5.48xlarge", zone="us-west-2b")  # type: ignore[arg-type]  # one of its units
    return Remains(cluster_id=ID, region="us-west-2", things=(thing("instance", "i-1", meter=meter),))


@pytest.mark.parametrize(
    ("refused", "market"), [({}, {("p5.48xlarge", "us-west-2b"): 12.5}), ({("ec2", ASK): "UnauthorizedOperation"}, {})]
)
def test_the_price_of_each_zone_is_what_aws_tells_now(
    refused: dict[tuple[str, str], str], market: dict[tuple[str, str], float]
) -> None:
    clients = clients_of({("us-west-2", ASK, "SpotPriceHistory"): ROWS}, refused=refused)
    assert spot_market([remains("spot machine")], lambda region: clients, now=NOW) == market


def test_without_spot_machines_nobody_is_asked() -> None:
    def nobody(region: str) -> Clients:
        raise AssertionError(region)

    assert spot_market([remains("machine")], nobody, now=NOW) == {}

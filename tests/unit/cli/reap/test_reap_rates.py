"""What is left costs what the catalog says, and an unknown price is never nothing."""

from __future__ import annotations

import pytest
from clusterctl.cloud.resource import CloudResource, Meter
from clusterctl.reap.rates import is_at_most, usd_per_day, usd_per_hour
from clusterctl_infra.catalog.reader import load_catalog

CATALOG = load_catalog()
PRICES = [
    (Meter(unit="machine", name="p5.48xlarge"), 55.04),
    (Meter(unit="machine", name="p5.48xlarge", amount=3), 3 * 55.04),
    (Meter(unit="address"), 0.005),
    (Meter(unit="NAT gateway"), 0.045),
    (Meter(unit="endpoint", amount=2), 0.02),
    (Meter(unit="endpoint", amount=0), 0.0),
    (Meter(unit="disk GiB", amount=730), 0.08),
    (Meter(unit="EFS GiB", amount=730), 0.3),
    (Meter(unit="Lustre GiB", amount=730, name="250"), 0.21),
    (Meter(unit="Lustre GiB", amount=730), 0.14),
    (None, 0.0),
]


def thing(meter: Meter | None) -> CloudResource:
    return CloudResource(kind="instance", id="x", meter=meter)


@pytest.mark.parametrize(("meter", "price"), PRICES)
def test_a_thing_costs_its_list_price(meter: Meter | None, price: float) -> None:
    assert usd_per_hour(thing(meter), CATALOG, "us-west-2") == pytest.approx(price)


@pytest.mark.parametrize(
    "meter",
    [
        Meter(unit="machine", name="p99.large"),
        Meter(unit="NAT gateway"),
        Meter(unit="EFS GiB", amount=1),
        Meter(unit="Lustre GiB", amount=1, name="250"),
    ],
)
def test_an_unknown_price_makes_the_sum_unknown(meter: Meter) -> None:
    assert usd_per_hour(thing(meter), CATALOG, "mars-north-1") is None
    assert usd_per_day([thing(None), thing(meter)], CATALOG, "mars-north-1") is None


def spot(name: str = "p5.48xlarge", zone: str = "us-west-2b") -> CloudResource:
    return thing(Meter(unit="spot machine", name=name, zone=zone))


@pytest.mark.parametrize(
    ("resource", "price", "at_most"),
    [(spot(), 12.5, False), (spot(zone="us-west-2c"), 55.04, True), (spot("p99.large"), None, True)],
    ids=["at the price of its zone", "at most on demand where AWS tells none", "unknown to AWS and to the list"],
)
def test_a_spot_machine_costs_the_price_of_the_moment(
    resource: CloudResource, price: float | None, at_most: bool
) -> None:
    market = {("p5.48xlarge", "us-west-2b"): 12.5}
    assert usd_per_hour(resource, CATALOG, "us-west-2", market=market) == price
    assert is_at_most([thing(None), resource], market) is at_most


def test_the_price_of_a_day_is_that_of_24_hours() -> None:
    found = [thing(Meter(unit="address")), thing(Meter(unit="NAT gateway"))]
    assert usd_per_day(found, CATALOG, "us-west-2") == pytest.approx(24 * 0.05)

"""Whether AWS would make spot machines for their maximum price, asked before anything is made."""

from __future__ import annotations

from typing import Any  # configurations as YAML gives them

import pytest
from botocore.exceptions import ClientError
from clusterctl.cloud.boundary import Clients
from clusterctl.lifecycle.spot_checks import refuse_below_spot_price
from clusterctl_infra.errors import CapExceeded

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cloud.fake_clients import FakeClients
from tests.unit.infra.plan.plan_cases import BORN, a_plan


def asking(**zones: float) -> Clients:
    """A region in which a p5.48xlarge costs this in its zones, `b=12.5`."""
    rows = [
        {"InstanceType": "p5.48xlarge", "AvailabilityZone": f"us-west-2{letter}", "SpotPrice": f"{price:.6f}"}
        for letter, price in zones.items()
    ]
    return clients_of({("us-west-2", "describe_spot_price_history", "SpotPriceHistory"): rows})


def lines_shown(clients: Clients, **changes: Any) -> list[str]:
    """What a person sees."""
    lines: list[str] = []
    made = a_plan(**{"capacity": "spot", **changes})
    refuse_below_spot_price(clients, made, now=BORN, source="cluster.yaml", tell=lines.append)
    return lines


def test_the_price_of_the_cluster_s_own_zone_is_told() -> None:
    assert lines_shown(asking(a=9.0, b=12.5)) == [
        "  spot     a spot p5.48xlarge costs $12.50 in us-west-2b now; counted at $55.04, the most that it can cost"
    ]


def test_a_maximum_below_it_is_refused_with_both_numbers_and_where_it_stands() -> None:
    with pytest.raises(CapExceeded) as caught:
        lines_shown(asking(a=9.0, b=12.5), caps={"price_usd_per_hour": 10})
    assert caught.value.message == (
        "a spot p5.48xlarge costs $12.50 in us-west-2b now, but the maximum is $10.00 (caps.price_usd_per_hour), so "
        "AWS would start none. Nothing was changed"
    )
    assert caught.value.hint == "${EDITOR:-nano} cluster.yaml"
    assert len(lines_shown(asking(b=10.0), caps={"price_usd_per_hour": 10})) == 1


def test_an_old_price_on_demand_that_spot_has_overtaken_is_to_be_asked_for_anew() -> None:
    with pytest.raises(CapExceeded, match=r"the maximum is \$55\.04 \(the price on demand of 2026-01\)") as caught:
        lines_shown(asking(b=60.0))
    assert caught.value.hint == "clusterctl prices refresh --region us-west-2 p5.48xlarge"


def test_where_aws_names_no_price_the_machines_are_asked_for_all_the_same() -> None:
    assert lines_shown(asking(a=9.0)) == ["  spot     AWS names no spot price of p5.48xlarge in us-west-2b"]


def test_machines_on_demand_are_not_asked_about() -> None:
    assert lines_shown(asking(b=900.0), capacity="on-demand") == []


def test_whoever_may_not_ask_is_told_so_and_goes_on() -> None:
    class Denied(FakeClients):
        @property
        def ec2(self) -> Any:  # a client of boto3's
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeSpotPriceHistory")

    (line,) = lines_shown(Denied())
    assert line.startswith("  spot     the current spot price is not known: UnauthorizedOperation: asking for the spot")

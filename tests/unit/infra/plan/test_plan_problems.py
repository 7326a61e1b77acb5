"""Every problem of a plan, with the numbers that a person needs."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from datetime import timedelta
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.case import Case
from clusterctl_infra.plan.planner import plan
from clusterctl_infra.plan.problems import RULES, plan_problems

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, IDENTITY, a_config, a_plan, problems_of

PUBLIC = {"mode": "public", "ssh_from": ["203.0.113.7/32"]}

ERRORS: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    (
        {"nodes": 200, "access": {"mode": "private"}, "network": {"node_subnet_cidr": "10.0.0.0/24"}},
        "network.node_subnet_cidr",
        ("10.0.0.128/25", "holds 127 nodes", "nodes is 200", "/23"),
    ),
    ({"access": {"mode": "public"}}, "access.ssh_from", ("nobody reaches the nodes", "203.0.113.7/32", "private")),
    ({"caps": {"price_usd_per_hour": 50}}, "caps.price_usd_per_hour", ("$55.04", "$50.00")),
    (
        {"caps": {"total_usd_per_hour": 200}},
        "caps.total_usd_per_hour",
        ("4 × p5.48xlarge with disks, addresses and storage cost $220.27 an hour", "the cap is $200.00", "fewer nodes"),
    ),
    ({"caps": {"idle": "9s"}}, "caps.idle", ("9s: one look that comes late", "at least 10s", "10m or more on AWS")),
    ({"caps": {"dead_man": "1s"}}, "caps.dead_man", ("1s: one look", "at least 10s", "15m or more on AWS")),
]


@pytest.mark.parametrize(("changes", "path", "words"), ERRORS)
def test_an_error_names_the_place_and_both_numbers(changes: dict[str, Any], path: str, words: tuple[str, ...]) -> None:
    message = problems_of(a_plan(**changes)).get(path)
    assert message is not None
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"access": {"mode": "public", "ssh_from": ["0.0.0.0/0"]}}, "access.ssh_from", "whole internet"),
        ({"instance_type": "m5.large"}, "fabric", "no EFA: nodes talk TCP"),
        ({"caps": {"budget_usd": 100}}, "caps.budget_usd", "$100.00 pays for 27 more minutes"),
        ({"caps": {"runtime": "90s"}}, "caps.runtime", "1m30s, counted from creation: the cluster may end before"),
        ({"caps": {"dead_man": "5m"}}, "caps.dead_man", "5m: a large machine may take 15m to reboot"),
        ({"caps": {"dead_man": "30m"}, "nodes": 1}, "caps.dead_man", "one node has no others to lose"),
        ({"caps": {"idle": "5m"}}, "caps.idle", "5m: the cluster ends while somebody thinks"),
        ({"caps": {"idle": "10s"}}, "caps.idle", "10s: the cluster ends while somebody thinks"),
        ({"caps": {"dead_man": "10s"}}, "caps.dead_man", "10s: a large machine may take"),
        ({"caps": {"idle": "12h", "runtime": "6h"}}, "caps.idle", "12h is not shorter than runtime, 6h"),
        ({"instance_type": "p3dn.24xlarge"}, "image", "NVIDIA's open driver, which does not support V100"),
        (
            {"instance_type": "p6-b300.48xlarge"},
            "image",
            (
                "AWS does not list p6-b300 for dlami-base-ubuntu-22.04 (known of 2026-11): its drivers may not know "
                "the GPUs or the EFA of p6-b300.48xlarge; it does for dlami-base-ubuntu-24.04"
            ),
        ),
        (
            {"image": "dlami-pytorch-2.7-ubuntu-22.04"},
            "image",
            "AWS has fixed nothing in it since 2026-04; write image: dlami-pytorch-2.12-ubuntu-24.04",
        ),
        ({"image": "ubuntu-22.04"}, "image", "has no NVIDIA driver: the GPUs of p5.48xlarge bill and do nothing"),
        ({"image": "ubuntu-22.04"}, "fabric", "no EFA driver: unless its kernel brings one, nodes talk TCP"),
        ({"image": "ubuntu-22.04", "fabric": "required"}, "fabric", "nodes fail while they boot"),
        ({"nodes": 6}, "access.mode", "AWS gives 5 per region by default (up asks for your number"),
        ({"access": {"mode": "private"}}, "access.mode", "what the NAT gateway carries is not in the price"),
        (
            {"access": {"mode": "private"}, "image": "ami-0123456789abcdef0"},
            "access",
            "ami-0123456789abcdef0 needs Amazon's SSM agent",
        ),
    ],
)
def test_a_warning_stops_nothing(changes: dict[str, Any], path: str, words: str) -> None:
    made = a_plan(**changes)
    assert problems_of(made) == {}
    assert words in problems_of(made, "warning")[path]


def test_more_network_interfaces_than_an_account_usually_has_are_a_warning() -> None:
    """A p5 node has 33 interfaces, or 1 without the fabric."""
    private: dict[str, Any] = {"access": {"mode": "private"}}
    assert "152 nodes of p5.48xlarge have 5,016" in problems_of(a_plan(nodes=152, **private), "warning")["nodes"]
    assert "nodes" not in problems_of(a_plan(nodes=151, **private), "warning")
    assert "nodes" not in problems_of(a_plan(nodes=152, fabric="none", **private), "warning")


@pytest.mark.parametrize(
    "changes",
    [
        {"instance_type": "p4d.24xlarge"},
        {"instance_type": "g4dn.xlarge"},
        {"instance_type": "p3dn.24xlarge", "image": "ami-0123456789abcdef0"},
        {"instance_type": "p6-b300.48xlarge", "image": "dlami-base-ubuntu-24.04"},
        {"instance_type": "p6-b200.48xlarge"},
        {"instance_type": "g7e.48xlarge", "placement": "none"},
        {"instance_type": "m5.large", "image": "ubuntu-22.04", "placement": "none"},
    ],
)
def test_an_image_whose_driver_knows_the_gpus_or_is_not_known_is_no_problem(changes: dict[str, Any]) -> None:
    assert "image" not in problems_of(a_plan(**changes), "warning")


@pytest.mark.parametrize("changes", [{"fabric": "none"}, {"instance_type": "g4dn.xlarge"}])
def test_a_plain_image_is_no_problem_for_a_fabric_that_nobody_asked_for(changes: dict[str, Any]) -> None:
    assert "EFA driver" not in problems_of(a_plan(image="ubuntu-22.04", **changes), "warning").get("fabric", "")


def test_where_the_price_of_a_disk_is_not_known_no_sum_is_and_a_budget_is_refused() -> None:
    made = a_plan(region="ap-southeast-3", instance_type="p5.48xlarge")
    assert (made.price.disks_usd_per_hour, made.price.total_usd_per_hour) == (None, None)
    words = "the price of root disks (gp3) in ap-southeast-3 is not in the snapshot of 2026-11"
    assert words in problems_of(made, "warning")["region"]
    refused = a_plan(region="ap-southeast-3", instance_type="p5.48xlarge", caps={"budget_usd": 100})
    assert words in problems_of(refused)["caps.budget_usd"]


def test_a_larger_root_disk_costs_more_and_the_nat_gateway_is_in_the_sum_of_private_nodes() -> None:
    usual, larger = a_plan().price, a_plan(root_disk="1TiB").price
    assert larger.disks_usd_per_hour == pytest.approx(4 * 1024 * 0.08 / 730)
    assert usual.disks_usd_per_hour == pytest.approx(4 * 200 * 0.08 / 730)
    assert (usual.gateway_usd_per_hour, a_plan(access={"mode": "private"}).price.gateway_usd_per_hour) == (0.0, 0.045)


def test_a_private_cluster_without_nodes_pays_neither_for_a_gateway_nor_for_its_address() -> None:
    down = a_plan(access={"mode": "private"}, down=True).price
    assert (down.addresses_usd_per_hour, down.gateway_usd_per_hour, down.total_usd_per_hour) == (0, 0, 0)


def test_a_sound_configuration_has_no_problem_at_all() -> None:
    assert a_plan().problems == ()


def test_all_problems_come_at_once_errors_first() -> None:
    made = a_plan(nodes=6, access={"mode": "public"}, caps={"price_usd_per_hour": 50, "budget_usd": 100})
    levels = [problem.level for problem in made.problems]
    assert levels == ["error", "error", "warning", "warning"]


def test_a_cluster_cannot_move_to_another_zone() -> None:
    message = problems_of(a_plan(zone="us-west-2c"))["zone"]
    assert "us-west-2b since its birth" in message
    assert "clusterctl down --all" in message


def test_a_cluster_cannot_move_to_another_region() -> None:
    message = problems_of(a_plan(region="us-east-1"))["region"]
    assert "us-west-2b since its birth" in message
    assert "clusterctl down --all" in message


@pytest.mark.parametrize("hours", [24, 30])
def test_after_the_deadline_a_plan_is_refused(hours: int) -> None:
    made = a_plan(now=BORN + timedelta(hours=hours))
    assert "clusterctl down" in problems_of(made)["caps.runtime"]


def test_a_spent_budget_is_refused_with_its_sum_and_what_helps() -> None:
    message = problems_of(a_plan(caps={"budget_usd": 100}, now=BORN + timedelta(hours=2)))["caps.budget_usd"]
    assert "$100.00 is spent" in message
    assert "a higher budget lets it continue" in message


@pytest.mark.parametrize("budget_usd", [0.01, 0.001])
def test_a_budget_that_pays_for_nothing_is_not_said_to_be_spent(budget_usd: float) -> None:
    message = problems_of(a_plan(caps={"budget_usd": budget_usd}))["caps.budget_usd"]
    assert message == f"${budget_usd} pays for less than a second of the cluster"


def test_a_total_within_its_cap_is_no_problem() -> None:
    assert a_plan(caps={"total_usd_per_hour": 221}).problems == ()


def test_after_the_deadline_a_cluster_can_still_be_taken_down() -> None:
    assert problems_of(a_plan(now=BORN + timedelta(hours=30), down=True)) == {}


def test_user_data_over_the_limit_is_named_with_both_sizes() -> None:
    noise = {f"V{number}": hashlib.sha512(str(number).encode()).hexdigest() for number in range(300)}
    made = a_plan(env=noise)
    message = problems_of(made)[""]
    assert re.search(r"is \d\d,\d{3} bytes, EC2 takes 16,384", message)


@pytest.mark.parametrize(
    ("caps", "path"),
    [
        ({"price_usd_per_hour": 60}, "caps.price_usd_per_hour"),
        ({"total_usd_per_hour": 60}, "caps.total_usd_per_hour"),
        ({"budget_usd": 60}, "caps.budget_usd"),
    ],
)
def test_a_cap_on_an_unknown_price_is_an_error(caps: dict[str, float], path: str) -> None:
    no_prices = dataclasses.replace(CATALOG, prices={})
    made = plan(
        a_config(instance_type="t3.micro", placement="none", caps=caps, access=PUBLIC),
        no_prices,
        identity=IDENTITY,
        ledger=Ledger(),
        now=BORN,
    )
    assert "cannot be kept: the price of t3.micro in us-west-2 is not in the snapshot" in problems_of(made)[path]


def test_an_unknown_price_without_a_cap_is_a_warning() -> None:
    no_prices = dataclasses.replace(CATALOG, prices={})
    config = a_config(instance_type="t3.micro", placement="none", access=PUBLIC)
    made = plan(config, no_prices, identity=IDENTITY, ledger=Ledger(), now=BORN)
    assert made.price.total_usd_per_hour is None
    assert "not known" in problems_of(made, "warning")["caps"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"max_efa_interfaces": 0}, "fabric"),
        ({"placement_group_cluster": False}, "placement"),
        ({"usage_classes": ("capacity-block",)}, "capacity"),
    ],
)
def test_what_a_type_cannot_do_is_an_error_however_the_type_was_chosen(changes: dict[str, Any], path: str) -> None:
    """`gpus:` chooses a type that the configuration's own rules never saw."""
    kind = CATALOG.types["p5.48xlarge"]
    case = Case(
        config=a_config(fabric="required"),
        plan=a_plan(),
        catalog=CATALOG,
        instance_type=dataclasses.replace(kind, **changes),
        now=BORN,
        user_data_refusal=None,
        ledger=Ledger(),
        adopted_capacity=None,
        adopted_network=None,
    )
    assert path in {problem.path for problem in plan_problems(case) if problem.level == "error"}


def test_every_rule_is_in_the_table_once() -> None:
    assert len(set(RULES)) == len(RULES)

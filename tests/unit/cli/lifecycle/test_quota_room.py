"""When an `up` asks for the account's quotas of machines on demand and addresses, and what it refuses."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.up_checks import adds_on_demand, refuse_without_addresses, refuse_without_vcpus
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.fake_answers import Answers, clients_of
from tests.unit.infra.plan.plan_cases import CATALOG, a_config, a_plan


def state_of(machines: int) -> StackState:
    return StackState(
        resources=tuple(
            StateResource(
                urn=f"u::i::{slot}",
                type="aws:ec2/instance:Instance",
                id=f"i-{slot}",
                inputs={"tags": {"clusterctl:slot": str(slot)}},
            )
            for slot in range(machines)
        )
    )


@pytest.mark.parametrize(
    ("capacity", "machines", "anew", "asks"),
    [
        ("on-demand", 0, 0, True),
        ("on-demand", 3, 0, True),
        ("on-demand", 4, 0, False),
        ("on-demand", 6, 0, False),
        ("on-demand", 4, 1, True),
        ("spot", 0, 0, False),
    ],
)
def test_the_quota_matters_only_where_machines_are_made(capacity: str, machines: int, anew: int, *, asks: bool) -> None:
    assert adds_on_demand(a_config(nodes=4, capacity=capacity), state_of(machines), anew=anew) is asks


class Quotas:
    """Service Quotas, which knows one value for all."""

    def __init__(self, value: float | None) -> None:
        self._value = value

    def get_service_quota(self, **asked: object) -> dict[str, object]:
        return {"Quota": {} if self._value is None else {"Value": self._value}}


def change_of(limit: float | None, *, taken: int = 0) -> Change:
    """A change in an account with this limit for each quota, where `taken` addresses are in use."""
    addresses: Answers = {("us-west-2", "describe_addresses", "Addresses"): [{"Tags": []}] * taken}
    clients = clients_of(addresses, service_quotas=Quotas(limit))
    return cast("Change", SimpleNamespace(clients=clients, is_rehearsal=False))


def nobody_is_asked() -> Change:
    return cast("Change", SimpleNamespace())


@pytest.mark.parametrize(
    ("limit", "machines", "anew", "is_refused"),
    [
        (767.0, 0, 0, True),
        (768.0, 0, 0, False),
        (0.0, 3, 0, True),
        (767.0, 4, 1, True),
        (None, 0, 0, False),  # AWS's own refusal comes later
    ],
)
def test_more_machines_than_an_account_may_have_are_refused_before_anything_is_made(
    limit: float | None, machines: int, anew: int, *, is_refused: bool
) -> None:
    """Four machines of 192 vCPUs each."""
    intent = cast("Intent", SimpleNamespace(config=a_config(nodes=4), catalog=CATALOG))
    with pytest.raises(CloudError, match="VcpuLimitExceeded") if is_refused else nullcontext():
        refuse_without_vcpus(change_of(limit), intent, state_of(machines), anew=anew)


def test_a_cluster_that_lives_does_not_depend_on_a_quota() -> None:
    intent = cast("Intent", SimpleNamespace(config=a_config(nodes=4), catalog=CATALOG))
    refuse_without_vcpus(nobody_is_asked(), intent, state_of(4), anew=0)


@pytest.mark.parametrize(("limit", "taken", "is_refused"), [(5.0, 1, False), (5.0, 2, True), (4.0, 0, False)])
def test_more_addresses_than_an_account_has_left_are_refused_before_anything_is_made(
    limit: float, taken: int, *, is_refused: bool
) -> None:
    """Four nodes of several interfaces, each with an elastic IP."""
    with pytest.raises(CloudError, match="AddressLimitExceeded") if is_refused else nullcontext():
        refuse_without_addresses(change_of(limit, taken=taken), a_plan(), StackState())


def test_a_cluster_without_elastic_addresses_does_not_depend_on_how_many_there_are() -> None:
    refuse_without_addresses(nobody_is_asked(), a_plan(instance_type="g5.xlarge"), StackState())

"""A change is refused with another account's credentials, before anything is taken for gone."""

from __future__ import annotations

import pytest
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.change import account_of, refuse_other_account
from clusterctl_infra.errors import CloudError

VPC = StateResource(urn="urn:vpc", type="aws:ec2/vpc:Vpc", id="vpc-1", outputs={"ownerId": "111122223333"})


def test_another_accounts_credentials_change_nothing() -> None:
    state = StackState(resources=(VPC,))
    with pytest.raises(CloudError, match=r"111122223333.*444455556666") as caught:
        refuse_other_account(state, "444455556666")
    assert caught.value.code == "OtherAccount"


def test_the_clusters_own_account_is_let_through() -> None:
    refuse_other_account(StackState(resources=(VPC,)), "111122223333")


def test_before_there_is_a_network_no_account_is_known() -> None:
    assert account_of(StackState()) is None
    refuse_other_account(StackState(), "444455556666")


def test_where_a_cut_off_down_left_no_network_what_bills_says_whose_it_is() -> None:
    arn = "arn:aws:ec2:us-west-2:111122223333:capacity-reservation/cr-1"
    kept = StateResource(
        urn="urn:cr", type="aws:ec2/capacityReservation:CapacityReservation", id="cr-1", outputs={"arn": arn}
    )
    with pytest.raises(CloudError, match=r"111122223333.*444455556666"):
        refuse_other_account(StackState(resources=(kept,)), "444455556666")

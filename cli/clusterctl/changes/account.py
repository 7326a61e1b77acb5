"""Whose cluster it is: a change made with another account's credentials would take living machines for gone."""

from __future__ import annotations

from clusterctl_infra.errors import CloudError

from clusterctl.engine.state import StackState

VPC_TYPE = "aws:ec2/vpc:Vpc"


def account_of(state: StackState) -> str | None:
    """The account number that the state's network belongs to; None before there is one."""
    vpc = state.find(VPC_TYPE)
    return None if vpc is None else str(vpc.outputs.get("ownerId") or "") or None


def refuse_other_account(state: StackState, account: str) -> None:
    """Raises CloudError when the credentials are of another account than the one the cluster is in."""
    own = account_of(state)
    if own is not None and own != account:
        raise CloudError(
            f"this cluster is in the AWS account {own}, and the credentials here are of {account}: nothing was changed",
            code="OtherAccount",
            hint="aws sts get-caller-identity",
        )

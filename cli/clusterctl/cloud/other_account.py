"""Whose credentials are here: with another account's, living machines would look gone."""

from __future__ import annotations

from clusterctl_infra.errors import CloudError


def refuse_account(own: str | None, account: str, *, undone: str = "") -> None:
    """Raises CloudError where the cluster is in the account `own`, and the credentials are of another; None: unknown.

    `undone`: what the sentence says was not done because of it.
    """
    if own is not None and own != account:
        raise CloudError(
            f"this cluster is in the AWS account {own}, and the credentials here are of {account}{undone}",
            code="OtherAccount",
            hint="aws sts get-caller-identity",
        )

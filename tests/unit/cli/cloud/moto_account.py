"""An AWS account that moto plays within this process: no socket is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto import mock_aws

HERE = "123456789012"
"""The account that moto's credentials belong to."""


@contextmanager
def an_account() -> Iterator[None]:
    """While entered, boto3 speaks with the account HERE; there is nothing in it yet."""
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        yield

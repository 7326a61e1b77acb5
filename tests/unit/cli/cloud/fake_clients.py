"""A region's services for tests: those that a test gives, and an error for all others."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any, Self  # services as boto3 gives them

from clusterctl_infra.errors import CloudError


class FakeClients:
    """Has every member of `Clients` in `cloud/boundary.py`."""

    def __init__(
        self, *, region: str = "us-west-2", endpoint_url: str | None = "http://127.0.0.1:1", **services: Any
    ) -> None:
        """`services`: by the names of the boundary, as `ec2`."""
        self.region = region
        self.endpoint_url = endpoint_url
        self.services = services
        self.credentials_end_at: datetime | None = None

    @property
    def is_rehearsal(self) -> bool:
        return self.endpoint_url is not None

    def warm_up(self) -> None:
        """Makes no client: boto3 takes seconds for one on a busy machine."""

    def elsewhere(self, region: str) -> Self:
        there = copy.copy(self)
        there.region = region
        return there

    def account(self) -> str:
        raise CloudError("nobody says whose credentials these are", code="NoCredentials")

    def caller_identity(self) -> dict[str, Any]:
        return {"Account": self.account()}

    @property
    def ec2(self) -> Any:
        return self._service("ec2")

    @property
    def ec2_once(self) -> Any:
        return self._service("ec2")

    @property
    def iam(self) -> Any:
        return self._service("iam")

    @property
    def efs(self) -> Any:
        return self._service("efs")

    @property
    def fsx(self) -> Any:
        return self._service("fsx")

    @property
    def pricing(self) -> Any:
        return self._service("pricing")

    @property
    def ssm(self) -> Any:
        return self._service("ssm")

    @property
    def s3(self) -> Any:
        return self._service("s3")

    @property
    def sts(self) -> Any:
        return self._service("sts")

    @property
    def scheduler(self) -> Any:
        return self._service("scheduler")

    @property
    def cloudwatch(self) -> Any:
        return self._service("cloudwatch")

    @property
    def service_quotas(self) -> Any:
        return self._service("service_quotas")

    @property
    def sfn(self) -> Any:
        return self._service("sfn")

    def _service(self, name: str) -> Any:
        if name not in self.services:
            raise AssertionError(f"AWS was asked: {name}")
        return self.services[name]

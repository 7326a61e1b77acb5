"""AWS as the rest of the command line knows it; `cloud/clients.py` has botocore's clients."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol  # `Any`: answers of services for which no types are installed

from clusterctl_infra.region_keys import RegionAccess

if TYPE_CHECKING:
    from types_boto3_ec2 import EC2Client


class Clients(Protocol):
    """The services of one region, on AWS or of a rehearsal; each client is made when it is first used."""

    @property
    def region(self) -> str:
        """The region's name."""

    @property
    def endpoint_url(self) -> str | None:
        """Where a rehearsed region listens; None: AWS."""

    @property
    def is_rehearsal(self) -> bool:
        """Whether the region is the stand-in on this computer."""

    def warm_up(self) -> None:
        """Makes all clients that `look` uses, so that many threads may share them."""

    def elsewhere(self, region: str) -> Clients:
        """The services of another region, with the same credentials."""

    def account(self) -> str:
        """The number of the account that the credentials belong to. Raises CloudError."""

    def caller_identity(self) -> dict[str, Any]:
        """The whole answer of sts:GetCallerIdentity, which needs no permission. Raises botocore's errors."""

    @property
    def credentials_end_at(self) -> datetime | None:
        """When the credentials expire; None: never, or it is not known."""

    @property
    def ec2(self) -> EC2Client:
        """Amazon EC2; its lists come in pages."""

    @property
    def ec2_once(self) -> EC2Client:
        """Amazon EC2, asked once and never again by itself: for what must not be done twice."""

    @property
    def iam(self) -> Any:
        """AWS Identity and Access Management."""

    @property
    def efs(self) -> Any:
        """Amazon Elastic File System."""

    @property
    def fsx(self) -> Any:
        """Amazon FSx."""

    @property
    def pricing(self) -> Any:
        """The AWS Price List, of every region."""

    @property
    def ssm(self) -> Any:
        """AWS Systems Manager, whose public parameters name the newest images."""

    @property
    def s3(self) -> Any:
        """Amazon S3."""

    @property
    def sts(self) -> Any:
        """AWS Security Token Service."""

    @property
    def scheduler(self) -> Any:
        """Amazon EventBridge Scheduler."""

    @property
    def cloudwatch(self) -> Any:
        """Amazon CloudWatch."""

    @property
    def service_quotas(self) -> Any:
        """Service Quotas, with a short timeout: commands go on without its answer."""

    @property
    def sfn(self) -> Any:
        """AWS Step Functions."""


class ClientsAt(Protocol):
    """Makes the services of one region."""

    def __call__(self, rehearsed: RegionAccess | None, *, region: str) -> Clients:
        """The services of the rehearsed region that `rehearsed` leads to; of AWS if it is None."""

"""botocore's clients of one region, on AWS or on the rehearsed region, which never sees a real credential."""

from __future__ import annotations

import functools
import os
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any  # `Any`: answers of services for which no types are installed

from botocore.config import Config
from botocore.session import Session
from clusterctl_infra.names import REHEARSAL_CREDENTIAL
from clusterctl_infra.region_keys import KeyPair, RegionAccess

from clusterctl.cloud.answers import (
    CLOCK_TOLERANCE,
    AnswerParsers,
    BoundedPaginator,
    date_of,
    without_interfaces,
)
from clusterctl.cloud.descriptions import descriptions
from clusterctl.cloud.refusal import aws_errors

if TYPE_CHECKING:
    from types_boto3_ec2 import EC2Client


from clusterctl_infra.errors import CloudError

NOBODYS_SETTINGS = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
"""botocore's session variables (configuration key, environment variable, default, conversion): no profile, no files."""

NOBODYS_KEYS = KeyPair(access_key_id=REHEARSAL_CREDENTIAL, secret_access_key=REHEARSAL_CREDENTIAL)
"""The key pair for a stand-in when none was given."""

NOT_NEEDED = Config(connect_timeout=3.0, read_timeout=3.0, retries={"mode": "standard", "total_max_attempts": 2})
"""For a service whose answer helps, but that a command can do without."""

ASKED_ONCE = Config(read_timeout=60.0, retries={"mode": "standard", "total_max_attempts": 1})
"""For a purchase: the call takes no token by which AWS would know a repeated request (PurchaseCapacityBlock in botocore
1.44; 2026-11-26)."""

EC2_PAGE = 100
"""Rows in one answer: as many as every list of EC2 allows (route tables allow 100, launch templates 200, most 1,000;
EC2 API in botocore 1.44, 2026-11-24). Without a size EC2 may send all at once, or run into its own time limit."""


class AwsClients:
    """The services of one region; each client is made when it is first used."""

    def __init__(
        self,
        *,
        region: str,
        endpoint_url: str | None,
        keys: KeyPair | None = None,
        timeout_s: float = 10.0,
        beside: AwsClients | None = None,
    ) -> None:
        """`keys`: the key pair of the rehearsed region that listens at `endpoint_url`; it refuses any other.

        `beside`: clients of another region, with which these share credentials and AWS's descriptions of its services.
        """
        self.region = region
        self.endpoint_url = endpoint_url
        self._keys = keys or NOBODYS_KEYS
        self._beside = beside
        self.clock_skew: timedelta | None = None
        """By how much this computer's clock was ahead of AWS's at the last answer; None: no answer told the time."""
        self._making: threading.RLock = threading.RLock() if beside is None else beside._making
        self._config = Config(
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            retries={"mode": "standard", "total_max_attempts": 5},
            proxies={} if endpoint_url is not None else None,
        )

    @classmethod
    def at(
        cls, rehearsed: RegionAccess | None, *, region: str, timeout_s: float = 10.0, beside: AwsClients | None = None
    ) -> AwsClients:
        """The services of the rehearsed region that `rehearsed` leads to; of AWS if it is None."""
        if rehearsed is None:
            return cls(region=region, endpoint_url=None, timeout_s=timeout_s, beside=beside)
        url, keys = rehearsed.endpoint_url, rehearsed.keys
        return cls(region=region, endpoint_url=url, keys=keys, timeout_s=timeout_s, beside=beside)

    def elsewhere(self, region: str) -> AwsClients:
        """The services of another region, with the same credentials."""
        return AwsClients(region=region, endpoint_url=self.endpoint_url, beside=self)

    @property
    def is_rehearsal(self) -> bool:
        """Whether the region is the stand-in on this computer."""
        return self.endpoint_url is not None

    @property
    def wrong_by(self) -> timedelta | None:
        """By how much this computer's clock is ahead of AWS's; None: by no more than is allowed, or not known."""
        skew = self.clock_skew
        return skew if skew is not None and abs(skew) > CLOCK_TOLERANCE else None

    def warm_up(self) -> None:
        """Makes all clients that `look` uses, so that many threads may share them."""
        with self._making:
            for client in (self.ec2, self.iam, self.efs, self.fsx, self.scheduler, self.sfn, self.cloudwatch):
                client.meta  # noqa: B018  makes the client

    @functools.cached_property
    def ec2(self) -> EC2Client:
        """Amazon EC2; its lists come in pages of EC2_PAGE."""
        found: EC2Client = self._client("ec2")
        return found

    @functools.cached_property
    def ec2_once(self) -> EC2Client:
        """Amazon EC2, asked once and never again by itself: for what must not be done twice."""
        found: EC2Client = self._client("ec2", config=self._config.merge(ASKED_ONCE))
        return found

    @functools.cached_property
    def iam(self) -> Any:
        """AWS Identity and Access Management."""
        return self._client("iam")

    @functools.cached_property
    def efs(self) -> Any:
        """Amazon Elastic File System."""
        return self._client("efs")

    @functools.cached_property
    def fsx(self) -> Any:
        """Amazon FSx."""
        return self._client("fsx")

    @functools.cached_property
    def pricing(self) -> Any:
        """The AWS Price List, of every region; it answers in a few regions only (General Reference; 2026-11-21)."""
        return self._client("pricing", region="us-east-1")

    @functools.cached_property
    def ssm(self) -> Any:
        """AWS Systems Manager, whose public parameters name the newest images."""
        return self._client("ssm")

    @functools.cached_property
    def s3(self) -> Any:
        """Amazon S3."""
        return self._client("s3")

    @functools.cached_property
    def scheduler(self) -> Any:
        """Amazon EventBridge Scheduler."""
        return self._client("scheduler")

    @functools.cached_property
    def cloudwatch(self) -> Any:
        """Amazon CloudWatch."""
        return self._client("cloudwatch")

    @functools.cached_property
    def service_quotas(self) -> Any:
        """Service Quotas, with a short timeout: commands go on without its answer."""
        return self._client("service-quotas", config=self._config.merge(NOT_NEEDED))

    @functools.cached_property
    def sfn(self) -> Any:
        """AWS Step Functions."""
        return self._client("stepfunctions")

    def account(self) -> str:
        """The number of the account that the credentials belong to. Raises CloudError."""
        with aws_errors("asking whose credentials these are"):
            return str(self.caller_identity()["Account"])

    def caller_identity(self) -> dict[str, Any]:
        """The whole answer of sts:GetCallerIdentity, which needs no permission. Raises botocore's errors."""
        answer: dict[str, Any] = self.sts.get_caller_identity()
        return answer

    @functools.cached_property
    def sts(self) -> Any:
        """AWS Security Token Service."""
        return self._client("sts")

    @property
    def credentials_end_at(self) -> datetime | None:
        """When the credentials expire; None: never, or it is not known."""
        found = self.session.get_credentials()
        ends_at = getattr(found, "_expiry_time", None)  # botocore 1.44 has no public name for it
        return ends_at if isinstance(ends_at, datetime) else None

    @functools.cached_property
    def session(self) -> Session:
        """A person's credentials, or those of the rehearsal; clients of several regions may share it."""
        if self._beside is not None:
            return self._beside.session
        session = Session(session_vars=None if self.endpoint_url is None else NOBODYS_SETTINGS)
        session.set_config_variable("region", self.region)  # a person's role is assumed there, too
        if self.endpoint_url is not None:
            session.set_credentials(self._keys.access_key_id, self._keys.secret_access_key)
        untyped: Any = session  # the stubs know no components, and want listeners that return nothing
        untyped.register_component("response_parser_factory", AnswerParsers())
        untyped.register_component("data_loader", descriptions(untyped.get_config_variable("data_path")))
        untyped.register("provide-client-params.ec2", in_pages)
        untyped.register("before-parse.ec2.DescribeInstances", without_interfaces)
        untyped.register("after-call", self._note_time)
        return session

    def _note_time(self, parsed: dict[str, Any], **_: object) -> None:
        """Notes the clock skew by the date of an answer, refusals included."""
        at = date_of(parsed)
        self.clock_skew = self.clock_skew if at is None else datetime.now(UTC) - at

    def _client(self, service: str, *, region: str | None = None, config: Config | None = None) -> Any:
        where = region or self.region
        config = config or self._config
        with self._making:  # botocore makes clients in one thread at a time; many threads may then use them
            session: Any = self.session  # the stubs know no service's own client
            client = session.create_client(service, region_name=where, endpoint_url=self.endpoint_url, config=config)
        paginator = client.get_paginator
        client.get_paginator = lambda operation: BoundedPaginator(paginator(operation))
        return client


def in_pages(params: dict[str, Any], model: Any, **_: object) -> dict[str, Any] | None:
    """The parameters of a listing call with a page size added; None: they stay as they are.

    EC2 takes no page size beside ids, and not every operation has one.
    """
    is_list = model.name.startswith("Describe") and "NextToken" in model.output_shape.members
    sized = "MaxResults" in model.input_shape.members
    named = any(key == "MaxResults" or key.endswith(("Ids", "Names")) for key in params)
    return {**params, "MaxResults": EC2_PAGE} if is_list and sized and not named else None


def configured_region() -> str | None:
    """The region that a person's AWS settings name."""
    found: str | None = Session().get_config_variable("region")
    return found


def refuse_account(own: str | None, account: str, *, undone: str = "") -> None:
    """Raises CloudError if the cluster is in the account `own` (None: unknown) but the credentials belong to another.

    `undone`: what the sentence says was not done because of it.
    """
    if own is not None and own != account:
        raise CloudError(
            f"this cluster is in the AWS account {own}, but the credentials here belong to {account}{undone}",
            code="OtherAccount",
            hint="aws sts get-caller-identity",
        )

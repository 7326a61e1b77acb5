"""What AWS is asked before an `up`: each answer is a finding with value, limit and what helps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any  # rows as EC2 answers

import pytest
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import ClientError
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.dry_runs import dry_runs
from clusterctl.cloud.preflight import NOT_ASKED, ask_all, credentials, image_findings, region, subnet, vcpus
from clusterctl.cloud.preflight_finding import Finding
from clusterctl.cloud.preflight_needs import Needs
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.names import ID_TAG

from tests.unit.cli.cloud.fake_answers import ACCOUNT, clients_of
from tests.unit.cli.cloud.fake_clients import FakeClients

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
REGION = "us-west-2"
P5 = load_catalog().types["p5.48xlarge"]
NEEDS = Needs(
    region=REGION,
    zone="us-west-2b",
    types=(P5,),
    nodes=4,
    machines=4,
    market="on-demand",
    image="ami-0123456789abcdef0",
    root_disk_gib=200,
    addresses=4,
    reservation_id=None,
    vpc_id=None,
    subnet_id=None,
    is_public=True,
    buckets=(),
    own_id=None,
    source="cluster.yaml",
    tags={"team": "vision", ID_TAG: "0123456789ab"},
)
IMAGE: dict[str, Any] = {
    "Architecture": "x86_64",
    "CreationDate": "2026-11-01T00:00:00.000Z",
    "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 100}}],
}
OPEN = {"RegionName": REGION, "OptInStatus": "opt-in-not-required"}
OFFERED = {"InstanceType": "p5.48xlarge", "Location": "us-west-2b"}
FIVE = [{"AttributeValues": [{"AttributeValue": "5"}]}]
WELL: dict[tuple[str, str, str], list[dict[str, Any]]] = {
    (REGION, "describe_regions", "Regions"): [OPEN],
    (REGION, "describe_images", "Images"): [IMAGE],
    (REGION, "describe_instance_type_offerings", "InstanceTypeOfferings"): [OFFERED],
    (REGION, "describe_account_attributes", "AccountAttributes"): FIVE,
}


def levels(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {row.about: row.level for row in findings}


def test_what_aws_does_not_tell_hides_nothing_of_the_rest() -> None:
    found = ask_all(clients_of(WELL, refused={("ec2", "describe_images"): "UnauthorizedOperation"}), NEEDS, now=NOW)
    level_of = levels(found)
    assert level_of["image"] == "unknown"
    assert (level_of["region"], level_of["type"], level_of["elastic IPs"]) == ("ok", "ok", "ok")
    image = next(row for row in found if row.about == "image")
    assert image.value.startswith("UnauthorizedOperation: asking about image")


@pytest.mark.parametrize(
    ("call", "needs", "about", "value"),
    [
        (("describe_addresses", "Addresses", [{}, {}]), NEEDS, "elastic IPs", "4, and others have 2"),
        (("describe_instance_type_offerings", "InstanceTypeOfferings", []), NEEDS, "type", "p5.48xlarge in no zone"),
        (None, replace(NEEDS, zone="us-west-2d"), "type", "p5.48xlarge in us-west-2b"),
        (None, replace(NEEDS, root_disk_gib=50), "image", "ami-0123456789abcdef0 has 100 GiB"),
        (("describe_images", "Images", []), NEEDS, "image", "not in us-west-2, or not shared with you"),
    ],
)
def test_what_aws_would_refuse_is_an_error_with_its_value(
    call: tuple[str, str, list[dict[str, Any]]] | None, needs: Needs, about: str, value: str
) -> None:
    answers = WELL if call is None else {**WELL, (REGION, call[0], call[1]): call[2]}
    errors = [row for row in ask_all(clients_of(answers), needs, now=NOW) if row.level == "error"]
    assert [row.about for row in errors] == [about]
    assert value in errors[0].value


def test_credentials_that_aws_does_not_take_are_an_error() -> None:
    class Sts:
        def get_caller_identity(self) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "GetCallerIdentity")

    found, rest = ask_all(clients_of(WELL, sts=Sts()), NEEDS, now=NOW)
    assert (found.about, found.level, found.helps) == ("credentials", "error", "aws sso login")
    assert rest == NOT_ASKED, "what nobody may ask is not well"


@pytest.mark.parametrize(
    ("quota", "level", "helps"),
    [(767, "error", "--quota-code L-417A185B --desired-value 768"), (768, "ok", None), (None, "unknown", None)],
)
def test_machines_beyond_the_quota_are_an_error_that_says_how_to_raise_it(
    quota: float | None, level: str, helps: str | None
) -> None:
    class Quotas:
        def get_service_quota(self, **asked: object) -> dict[str, Any]:
            return {"Quota": {} if quota is None else {"Value": quota}}

    clients = clients_of(WELL, service_quotas=Quotas())
    clients.endpoint_url = None
    (found,) = vcpus(clients, NEEDS, NOW)
    assert (found.level, found.value) == (level, "4 × p5.48xlarge: 768")
    assert (found.helps is None) if helps is None else (helps in str(found.helps))


def test_a_right_that_is_missing_is_named() -> None:
    clients = clients_of(WELL, refused={("ec2", "create_vpc"): "UnauthorizedOperation"})
    (lacking,) = (row for row in ask_all(clients, NEEDS, now=NOW) if row.about == "rights")
    assert (lacking.level, lacking.value) == ("error", "you may not ec2:CreateVpc")


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (IMAGE, [("ok", "ami-1, 24 days old")]),
        ({**IMAGE, "CreationDate": "2026-01-01T00:00:00.000Z"}, [("warning", "ami-1, 328 days old")]),
        ({**IMAGE, "Architecture": "arm64"}, [("error", "ami-1 is for arm64"), ("ok", "ami-1, 24 days old")]),
    ],
)
def test_an_images_architecture_and_age_are_looked_at(row: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert [(each.level, each.value) for each in image_findings("ami-1", row, NEEDS, now=NOW)] == found


@pytest.mark.parametrize(("left", "level"), [(timedelta(minutes=20), "warning"), (timedelta(hours=8), "ok")])
def test_credentials_that_end_soon_are_warned_of(left: timedelta, level: str) -> None:
    clients = clients_of({})
    clients.credentials_end_at = NOW + left
    (found,) = credentials(clients, NEEDS, NOW)
    assert (found.level, found.value) == (level, f"arn:aws:iam::{ACCOUNT}:user/ada in account {ACCOUNT}")


class Credentials:
    """Gives botocore a role's credentials, which end at this instant."""

    def load_credentials(self) -> RefreshableCredentials:
        return RefreshableCredentials("key", "secret", "token", NOW, refresh_using=dict, method="a role")


def test_a_roles_credentials_end_when_botocore_knows_that_they_do() -> None:
    clients = AwsClients(region=REGION, endpoint_url=None)
    session: Any = clients.session  # the stubs know no components
    session.register_component("credential_provider", Credentials())
    assert clients.credentials_end_at == NOW


@pytest.mark.parametrize(
    ("name", "level", "value"),
    [
        ("us-west-2", "ok", "us-west-2: opt-in-not-required"),
        ("ap-east-1", "error", "ap-east-1: not-opted-in"),
        ("us-wset-2", "unknown", "us-wset-2: AWS lists no such region"),
    ],
)
def test_a_region_that_the_account_has_not_enabled_is_told_from_one_that_there_is_not(
    name: str, level: str, value: str
) -> None:
    class Regions:
        def describe_regions(self, **asked: bool) -> dict[str, Any]:
            """Without the flag AWS lists enabled regions alone (EC2 API, DescribeRegions; 2026-11-26)."""
            closed = [{"RegionName": "ap-east-1", "OptInStatus": "not-opted-in"}] if asked.get("AllRegions") else []
            return {"Regions": [OPEN, *closed]}

    (found,) = region(FakeClients(ec2=Regions()), replace(NEEDS, region=name), NOW)
    assert (found.level, found.value) == (level, value)


def test_a_dry_run_has_the_tags_that_what_is_made_has() -> None:
    asked: list[dict[str, Any]] = []

    def note(**words: Any) -> None:
        asked.append(words)

    ec2: Any = type("FakeEc2", (), {"__getattr__": lambda self, name: note})()
    clients: Any = SimpleNamespace(ec2=ec2, region=REGION)
    for call in dry_runs(clients, NEEDS).values():
        call()
    assert len(asked) == 6
    for words in asked:
        assert words["DryRun"] is True
        tags = {row["Key"]: row["Value"] for row in words["TagSpecifications"][0]["Tags"]}
        assert tags == {"team": "vision", ID_TAG: "0" * 12}, "nobody's id, since there is no cluster yet"
    assert {words["AvailabilityZone"] for words in asked if "AvailabilityZone" in words} == {"us-west-2b"}


SUBNETS: dict[tuple[str, str, str], Any] = {
    (REGION, "describe_subnets", "Subnets"): [
        {
            "SubnetId": "subnet-1",
            "VpcId": "vpc-1",
            "CidrBlock": "172.31.16.0/26",
            "AvailabilityZone": "us-west-2b",
            "AvailableIpAddressCount": 40,
        }
    ],
    (REGION, "describe_vpc_attribute", "EnableDnsSupport"): {"Value": True},
    (REGION, "describe_route_tables", "RouteTables"): [
        {
            "Associations": [{"Main": True}],
            "Routes": [{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"}],
        }
    ],
}


@pytest.mark.parametrize(
    ("machines", "level", "value"),
    [(4, "ok", "subnet-1 has 40 addresses free"), (41, "error", "has 40 of its 64 addresses free, and 41 are needed")],
)
def test_a_persons_subnet_is_looked_at_where_one_is_named(machines: int, level: str, value: str) -> None:
    clients = clients_of(SUBNETS)
    (found,) = subnet(clients, replace(NEEDS, vpc_id="vpc-1", subnet_id="subnet-1", machines=machines), NOW)
    assert found.level == level
    assert value in found.value
    assert list(subnet(clients, NEEDS, NOW)) == []

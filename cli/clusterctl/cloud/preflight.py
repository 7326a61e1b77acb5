"""What AWS says beforehand about all that an `up` needs of it: one function for each question, all asked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any  # EC2's answers: typed dictionaries with every key optional

from botocore.exceptions import ClientError
from clusterctl_infra.errors import CloudError

from clusterctl.cloud.adopted_capacity import capacity_problem, find_capacity
from clusterctl.cloud.adopted_network import find_network, network_problem
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.capacity_trial import offered
from clusterctl.cloud.dry_runs import rights
from clusterctl.cloud.preflight_finding import Finding, Level
from clusterctl.cloud.preflight_needs import Needs
from clusterctl.cloud.quotas import (
    QUOTA_CODE,
    VPC_QUOTA_CODE,
    address_quota,
    quota,
    quota_code,
    raise_quota,
    vcpu_limit,
)
from clusterctl.cloud.refusal import aws_errors, code_of
from clusterctl.text.quantities import duration

PARALLEL = 16
OLD_IMAGE = timedelta(days=180)
"""A choice: drivers and kernels of half a year ago lack fixes that are public."""
SHORT_CREDENTIALS = timedelta(hours=1)
"""A choice: an `up` with FSx takes a quarter of an hour, and what follows it should have time."""
CREDENTIALS = "credentials"


Question = Callable[[Clients, Needs, datetime], Iterator[Finding]]
NOT_ASKED = Finding(about="everything else", level="unknown", value="not known until AWS accepts these credentials")


def ask_all(clients: Clients, needs: Needs, *, now: datetime) -> tuple[Finding, ...]:
    """Every answer, in the order of the questions; what AWS does not tell is a finding, too.

    Raises CloudError if no client can be made, as for an AWS profile that does not exist.
    """
    with aws_errors(f"asking AWS in {clients.region}"):
        for service in ("sts", "ec2", "ssm", "service_quotas", *(("s3",) if needs.buckets else ())):
            getattr(clients, service)  # botocore makes clients in one thread at a time

    def answer(row: tuple[str, Question]) -> tuple[Finding, ...]:
        about, question = row
        try:
            with aws_errors(f"asking about {about}"):
                return tuple(question(clients, needs, now))
        except CloudError as e:
            level: Level = "error" if about == CREDENTIALS else "unknown"  # without credentials AWS tells nothing
            return (Finding(about=about, level=level, value=e.message, helps=e.hint),)

    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = tuple(finding for answers in pool.map(answer, QUESTIONS) for finding in answers)
    refused = tuple(row for row in found if row.about == CREDENTIALS and row.level == "error")
    return (*refused, NOT_ASKED) if refused else found


def credentials(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    identity = clients.caller_identity()
    who = f"{identity['Arn']} in account {identity['Account']}"
    ends_at = clients.credentials_end_at
    if ends_at is None:
        yield Finding(about=CREDENTIALS, level="ok", value=who)
        return
    left = ends_at - now
    limit = f"valid for {duration(max(left, timedelta(0)))} more"
    is_short = left < SHORT_CREDENTIALS
    helps = "aws sso login" if is_short else None
    yield Finding(about=CREDENTIALS, level="warning" if is_short else "ok", value=who, limit=limit, helps=helps)


def region(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    rows = clients.ec2.describe_regions(AllRegions=True)["Regions"]
    status = next(
        (row.get("OptInStatus") for row in rows if row["RegionName"] == needs.region), "AWS lists no such region"
    )
    is_open, is_closed = status in ("opt-in-not-required", "opted-in"), status == "not-opted-in"
    level: Level = "ok" if is_open else "error" if is_closed else "unknown"
    helps = f"aws account enable-region --region-name {needs.region}" if is_closed else None
    yield Finding(about="region", level=level, value=f"{needs.region}: {status}", helps=helps)


def image(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    id = needs.image
    if not id.startswith("ami-"):
        id = str(clients.ssm.get_parameter(Name=id)["Parameter"]["Value"])
    try:
        rows = clients.ec2.describe_images(ImageIds=[id])["Images"]
    except ClientError as e:
        if not code_of(e).startswith("InvalidAMIID"):
            raise
        rows = []
    if not rows:
        yield Finding(about="image", level="error", value=f"{id}: not in {needs.region}, or not shared with you")
        return
    yield from image_findings(id, rows[0], needs, now=now)


def image_findings(id: str, row: Mapping[str, Any], needs: Needs, *, now: datetime) -> Iterator[Finding]:
    """The findings about one row of DescribeImages."""
    built_for = row.get("Architecture", "unknown")
    wrong = next((kind for kind in needs.types if kind.architecture != built_for), None)
    if wrong is not None:
        limit = f"{wrong.name} is {wrong.architecture}"
        helps = f"another image: in {needs.source}"
        yield Finding(about="image", level="error", value=f"{id} is for {built_for}", limit=limit, helps=helps)
    devices = row.get("BlockDeviceMappings", [])
    sizes = [int(device.get("Ebs", {}).get("VolumeSize", 0)) for device in devices]
    if sizes and sizes[0] > needs.root_disk_gib:
        limit = f"root_disk is {needs.root_disk_gib}GiB"
        helps = f"root_disk: {sizes[0]}GiB in {needs.source}"
        yield Finding(about="image", level="error", value=f"{id} has {sizes[0]} GiB", limit=limit, helps=helps)
    made_at = datetime.fromisoformat(row["CreationDate"]) if row.get("CreationDate") else None
    age = None if made_at is None else now - made_at
    value = id if age is None else f"{id}, {age.days} days old"
    is_old = age is not None and age > OLD_IMAGE
    limit = f"a warning from {OLD_IMAGE.days} days on" if is_old else ""
    yield Finding(about="image", level="warning" if is_old else "ok", value=value, limit=limit)


def offers(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    found = offered(clients, [kind.name for kind in needs.types])
    for kind in needs.types:
        zones = [each.zone for each in found if each.instance_type == kind.name]
        is_there = bool(zones) and needs.zone in (None, *zones)
        where = f"{kind.name} in {', '.join(zones) or 'no zone'}"
        limit = "" if needs.zone is None else f"zone: {needs.zone}"
        helps = None if is_there else f"another zone or type: in {needs.source}"
        yield Finding(about="type", level="ok" if is_there else "error", value=where, limit=limit, helps=helps)


def vcpus(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    if needs.market != "on-demand":
        return
    for kind in needs.types:
        limit, wanted = vcpu_limit(clients, kind.family), needs.nodes * kind.vcpus
        value = f"{needs.nodes} × {kind.name}: {wanted:,}"
        if limit is None:
            yield Finding(about="vCPU quota", level="unknown", value=value, limit="AWS does not tell it")
            continue
        helps = _raise(clients, "vcpus", quota_code(kind.family), wanted) if wanted > limit else None
        level: Level = "error" if wanted > limit else "ok"
        yield Finding(about="vCPU quota", level=level, value=value, limit=f"{limit:,} on demand", helps=helps)


def addresses(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    if not needs.addresses:
        return
    addresses = address_quota(clients, own_id=needs.own_id)
    wanted = addresses.taken + needs.addresses
    helps = _raise(clients, "addresses", QUOTA_CODE, wanted) if wanted > addresses.limit else None
    value = f"{needs.addresses}, and others have {addresses.taken}"
    level: Level = "error" if wanted > addresses.limit else "ok"
    yield Finding(about="elastic IPs", level=level, value=value, limit=f"{addresses.limit} in all", helps=helps)


def vpcs(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    if needs.vpc_id is not None or needs.own_id is not None:
        return
    pages = clients.ec2.get_paginator("describe_vpcs").paginate()
    there = sum(len(page["Vpcs"]) for page in pages)
    limit = quota(clients, "vpc", VPC_QUOTA_CODE)
    if limit is None:
        yield Finding(about="VPCs", level="unknown", value=f"{there}, and one more", limit="AWS does not tell it")
        return
    helps = _raise(clients, "vpcs", VPC_QUOTA_CODE, there + 1, service="vpc") if there >= limit else None
    level: Level = "error" if there >= limit else "ok"
    yield Finding(about="VPCs", level=level, value=f"{there}, and one more", limit=f"{limit} in all", helps=helps)


def capacity(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    if needs.reservation_id is None:
        return
    found = find_capacity(clients, needs.reservation_id)
    as_block = needs.market == "capacity-block"
    problem = capacity_problem(found, as_block=as_block, machines=needs.machines, now=now)
    value = f"{found.reservation_id} is {found.state}, {found.free} of {found.places} places free"
    helps = None if problem is None else f"another one, or fewer nodes: in {needs.source}"
    level: Level = "ok" if problem is None else "error"
    yield Finding(
        about="reservation", level=level, value=problem or value, limit=f"{needs.machines} needed", helps=helps
    )


def subnet(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    if needs.vpc_id is None or needs.subnet_id is None:
        return
    found = find_network(clients, vpc_id=needs.vpc_id, subnet_id=needs.subnet_id, own_id=needs.own_id)
    problem = network_problem(found, is_public=needs.is_public, machines=needs.machines)
    value = f"{found.subnet_id} has {found.free} addresses free"
    helps = None if problem is None else f"another subnet: in {needs.source}"
    level: Level = "ok" if problem is None else "error"
    yield Finding(about="subnet", level=level, value=problem or value, limit=f"{needs.machines} needed", helps=helps)


def buckets(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    for name in needs.buckets:
        try:
            answer = clients.s3.head_bucket(Bucket=name)
        except ClientError as e:
            why = {"404": "there is no such bucket", "403": "you may not look at it"}.get(code_of(e), code_of(e))
            yield Finding(about="bucket", level="error", value=f"{name}: {why}", helps=f"aws s3 ls s3://{name}")
            continue
        where = answer.get("BucketRegion") or "a region that S3 does not name"
        is_near = where == needs.region
        limit = "" if is_near else f"nodes in {needs.region} pay for every byte"
        yield Finding(about="bucket", level="ok" if is_near else "warning", value=f"{name}: {where}", limit=limit)


def _raise(clients: Clients, name: str, code: str | None, wanted: int, *, service: str = "ec2") -> str:
    return raise_quota(name, code, wanted, region=clients.region, is_rehearsal=clients.is_rehearsal, service=service)


QUESTIONS: tuple[tuple[str, Question], ...] = (
    (CREDENTIALS, credentials),
    ("region", region),
    ("image", image),
    ("type", offers),
    ("vCPU quota", vcpus),
    ("elastic IPs", addresses),
    ("VPCs", vpcs),
    ("reservation", capacity),
    ("subnet", subnet),
    ("bucket", buckets),
    ("rights", rights),
)

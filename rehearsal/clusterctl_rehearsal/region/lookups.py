"""Look-ups, which make nothing: Pulumi invokes, SSM parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from clusterctl_infra.catalog.reader import Catalog

from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties
from clusterctl_rehearsal.region.settings import Settings

Lookup = Callable[[Properties, str, Settings, Catalog], Properties]
CALLER_ARN = f"arn:aws:iam::{ACCOUNT_ID}:user/rehearsal"
CALLER_ID = "AIDAREHEARSAL00000000"


def look_up(token: str, args: Properties, *, region: str, settings: Settings, catalog: Catalog) -> Properties:
    """The answer, arguments included. Raises AwsError, StandInRefusal."""
    answer = _LOOKUPS.get(token)
    if answer is None:
        module, _, name = token.removeprefix("aws:").partition("/")
        prefix = "" if module == "index" else f"{module}."
        raise StandInRefusal(f"the stand-in does not know aws:{prefix}{name.rpartition(':')[2]} yet")
    return {**args, "region": region, **answer(args, region, settings, catalog)}


def parameter_value(name: str, settings: Settings, catalog: Catalog) -> str:
    """The value of a public parameter of the catalog's images: an AMI id. Raises ParameterNotFound for any other."""
    known = {parameter for image in catalog.images.values() for parameter in image.parameters.values()}
    if name not in known:
        raise AwsError("ParameterNotFound", f"Parameter {name} not found.")
    return _image_of(name, settings)


def _image_of(name: str, settings: Settings) -> str:
    return "ami-" + hashlib.sha256(f"{settings.images_dated}{name}".encode()).hexdigest()[:17]


def image_architecture(id: str, settings: Settings, catalog: Catalog) -> str:
    """The architecture of an image: arm64 if an arm64 parameter of the catalog leads to it, else x86_64."""
    parameters = (image.parameters.get("arm64") for image in catalog.images.values())
    arm = {_image_of(name, settings) for name in parameters if name is not None}
    return "arm64" if id in arm else "x86_64"


def zone_names(region: str, settings: Settings) -> list[str]:
    """Every availability zone of the region."""
    return [region + letter for letter in settings.zones]


def offerings(
    region: str, settings: Settings, catalog: Catalog, wanted: dict[str, list[str]], location_type: str
) -> list[tuple[str, str]]:
    """(instance type, location) of what is offered, for the filters `instance-type` and `location`."""
    locations = zone_names(region, settings) if location_type == "availability-zone" else [region]
    return [
        (name, location)
        for name in catalog.names()
        for location in locations
        if name in wanted.get("instance-type", [name]) and location in wanted.get("location", [location])
    ]


def _caller_identity(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    return {"id": ACCOUNT_ID, "accountId": ACCOUNT_ID, "arn": CALLER_ARN, "userId": CALLER_ID}


def _region(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    name = args.get("region") or args.get("name") or region
    endpoint = f"ec2.{name}.amazonaws.com"
    return {"id": name, "name": name, "region": name, "endpoint": endpoint, "description": f"{name} (rehearsed)"}


def _partition(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def _zones(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    names = zone_names(region, settings)
    ids = [f"{name}-az{number}" for number, name in enumerate(names, 1)]
    return {"id": region, "names": names, "zoneIds": ids, "groupNames": [region]}


def _parameter(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    value = parameter_value(args["name"], settings, catalog)
    return {
        "id": args["name"],
        "arn": f"arn:aws:ssm:{region}::parameter{args['name']}",
        "value": value,
        "insecureValue": value,
        "type": "String",
        "version": 1,
    }


def _offerings(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    wanted = {row["name"]: row["values"] for row in args.get("filters") or []}
    kind = args.get("locationType") or "region"
    rows = offerings(region, settings, catalog, wanted, kind)
    return {
        "id": region,
        "instanceTypes": [row[0] for row in rows],
        "locations": [row[1] for row in rows],
        "locationTypes": [kind for _ in rows],
    }


def _image(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    seed = f"{settings.images_dated}{args.get('owners')}{args.get('filters')}{args.get('nameRegex')}"
    id = "ami-" + hashlib.sha256(seed.encode()).hexdigest()[:17]
    return {"id": id, "imageId": id, "architecture": "x86_64", "state": "available", "name": "rehearsed image"}


def _bucket(args: Properties, region: str, settings: Settings, catalog: Catalog) -> Properties:
    name = str(args["bucket"])
    if settings.buckets and name not in settings.buckets:
        raise AwsError("NoSuchBucket", f"reading S3 Bucket ({name}): couldn't find resource", status=404)
    return {"id": name, "arn": f"arn:aws:s3:::{name}", "bucketRegion": region}


_LOOKUPS: dict[str, Lookup] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:ssm/getParameter:getParameter": _parameter,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _offerings,
    "aws:ec2/getAmi:getAmi": _image,
    "aws:s3/getBucket:getBucket": _bucket,
}

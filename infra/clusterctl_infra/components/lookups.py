"""What a program asks AWS before a cluster is born: the newest image of a name, a zone that offers the type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.components.refusal import PlanRefused
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.rules import is_zone_of
from clusterctl_infra.plan.storage_model import StoragePlan, buckets_of, repositories

BUCKET_LOOKUP = "aws:s3/getBucket:getBucket"
AMI_PREFIX = "ami-"


def account_id(opts: pulumi.InvokeOutputOptions) -> pulumi.Output[str]:
    """The account that the provider is logged in to."""
    return aws.get_caller_identity_output(opts=opts).account_id


def image_candidate(
    config: ClusterConfig, catalog: Catalog, *, architecture: str, opts: pulumi.InvokeOutputOptions
) -> pulumi.Output[str]:
    """The AMI id that `image` means now; an existing cluster keeps the one it has."""
    if config.image.startswith(AMI_PREFIX):
        return pulumi.Output.from_input(config.image)
    parameter = catalog.image_parameter(config.image, architecture)
    if parameter is None:
        raise PlanRefused(f"image: {config.image}: not made for {architecture}")
    # `insecure_value`: an AMI id is no secret, and `value` would hide everything made from it.
    return aws.ssm.get_parameter_output(name=parameter, opts=opts).insecure_value


def bucket_regions(
    storage: Sequence[StoragePlan], *, region: str, opts: pulumi.InvokeOutputOptions
) -> Mapping[str, pulumi.Output[str]]:
    """The region of each bucket; the look-up fails for one that does not exist, or that the caller may not see.

    It also fails for a bucket outside `region` from which FSx is to import: AWS imports only within a region (FSx for
    Lustre User Guide, "Linking your file system to an Amazon S3 bucket"; read 2026-11).
    """
    imported = {link.bucket for link in repositories(storage) if link.imports}

    def place_of(name: str) -> pulumi.Output[str]:
        # By its token: touching `aws.s3` imports 60 modules, and each deprecated one logs a warning.
        answer = pulumi.runtime.invoke_output(BUCKET_LOOKUP, {"bucket": name}, opts)
        needed = region if name in imported else None
        return answer.apply(lambda row: _checked_region(name, str(row["bucketRegion"]), needed))

    return {name: place_of(name) for name in buckets_of(storage)}


def _checked_region(bucket: str, found: str, needed: str | None) -> str:
    """The region `found`. Raises PlanRefused if another one is `needed`."""
    if needed not in (None, found):
        raise PlanRefused(
            f"data_repository: the bucket {bucket} is in {found}, and FSx imports only from one in {needed}: write "
            "imports: [], or take a bucket there"
        )
    return found


def zone_candidate(
    config: ClusterConfig,
    *,
    known: str | None,
    instance_type: str,
    must_exist: bool,
    opts: pulumi.InvokeOutputOptions,
) -> pulumi.Output[str]:
    """The zone of the configuration, or the `known` one, else the first that offers the type.

    An existing cluster keeps its own.

    Where an account uses Local or Wavelength Zones, AWS names them, too, such as us-west-2-lax-1a, which would come
    before us-west-2a: prices and services differ there (EC2 User Guide, "Regions and Zones"; 2026-11-22).
    """
    asked = config.zone or known
    if asked is not None:
        return pulumi.Output.from_input(asked)
    offerings = aws.ec2.get_instance_type_offerings_output(
        filters=[{"name": "instance-type", "values": [instance_type]}],
        location_type="availability-zone",
        opts=opts,
    )

    def first(locations: list[str]) -> str:
        zones = [each for each in locations if is_zone_of(each, config.region)]
        if not zones and must_exist:
            raise PlanRefused(
                f"instance_type: AWS offers {instance_type} nowhere in {config.region}: choose another region or type"
            )
        return min(zones, default=f"{config.region}a")

    return offerings.locations.apply(first)

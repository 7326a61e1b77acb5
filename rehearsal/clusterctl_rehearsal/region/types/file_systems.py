"""FSx for Lustre and EFS: what AWS makes, and what it refuses to make."""

from __future__ import annotations

import ipaddress
import secrets
import string

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties, Record
from clusterctl_rehearsal.region.subnets import free_address
from clusterctl_rehearsal.region.types.network import EFS, LUSTRE, LUSTRE_LINK, MOUNT_TARGET, SECURITY_GROUP, SUBNET
from clusterctl_rehearsal.region.types.row import Request, ResourceType, random_hex
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE

STEPS_GIB = {"SCRATCH_1": 3600, "SCRATCH_2": 2400, "PERSISTENT_1": 2400, "PERSISTENT_2": 2400}
LEAST_GIB = 1200
THROUGHPUTS = {"PERSISTENT_1": (50, 100, 200), "PERSISTENT_2": (125, 250, 500, 1000)}
"""MB/s for each TiB, on SSD (FSx API, CreateFileSystem and CreateFileSystemLustreConfiguration; read 2026-11)."""
LNET_PORT = 988
LINKS = 8
"""Data repository associations of a file system (FSx User Guide, "Linking your file system to an Amazon S3 bucket")."""


def _check_lustre(request: Request) -> None:
    inputs = request.inputs
    kind, size = str(inputs.get("deploymentType")), int(inputs.get("storageCapacity") or 0)
    if kind not in STEPS_GIB:
        raise AwsError("BadRequest", f"Deployment type {kind} is not supported.")
    if size not in (LEAST_GIB, 2 * LEAST_GIB) and (size <= 0 or size % STEPS_GIB[kind]):
        raise AwsError("BadRequest", f"Storage capacity {size} GiB is invalid for {kind}.")
    if request.old is not None and size < int(request.old.inputs["storageCapacity"]):
        raise AwsError("BadRequest", "Storage capacity cannot be decreased.")
    throughput = inputs.get("perUnitStorageThroughput")
    wanted = THROUGHPUTS.get(kind, (None,))
    if (None if throughput is None else int(throughput)) not in wanted:
        raise AwsError("InvalidPerUnitStorageThroughput", f"PerUnitStorageThroughput {throughput} is invalid: {kind}.")
    _check_lnet(request)


def _check_lnet(request: Request) -> None:
    groups = [str(id) for id in request.inputs.get("securityGroupIds") or []]
    subnet = request.store.get(SUBNET, str(request.inputs["subnetIds"]))
    assert subnet is not None  # refused before, as `needs` names it
    for token in (INGRESS_RULE, EGRESS_RULE):
        rules = [row for row in request.store.live(token) if row.inputs["securityGroupId"] in groups]
        if not any(_permits(rule, groups, subnet) for rule in rules):
            raise AwsError(
                "InvalidNetworkSettings",
                "The file system cannot be created because the default security group in the subnet provided or the "
                f"provided security groups do not permit Lustre LNET network traffic on port {LNET_PORT}",
            )


def _permits(rule: Record, groups: list[str], subnet: Record) -> bool:
    inputs = rule.inputs
    is_open = str(inputs.get("ipProtocol")) == "-1" or (
        str(inputs.get("ipProtocol")) == "tcp" and int(inputs["fromPort"]) <= LNET_PORT <= int(inputs["toPort"])
    )
    if not is_open or inputs.get("referencedSecurityGroupId") in groups:
        return is_open
    cidr = inputs.get("cidrIpv4")
    own = ipaddress.IPv4Network(subnet.inputs["cidrBlock"])
    return cidr is not None and own.subnet_of(ipaddress.IPv4Network(cidr))


def _lustre(request: Request) -> Properties:
    subnet = request.store.get(SUBNET, str(request.inputs["subnetIds"]))
    assert subnet is not None  # refused before, as `needs` names it
    letters = string.ascii_lowercase + string.digits
    return {
        "arn": f"arn:aws:fsx:{request.region}:{ACCOUNT_ID}:file-system/{request.id}",
        "dnsName": f"{request.id}.fsx.{request.region}.amazonaws.com",
        "mountName": "".join(secrets.choice(letters) for _ in range(8)),
        "networkInterfaceIds": [f"eni-{random_hex(17)}"],
        "ownerId": ACCOUNT_ID,
        "vpcId": subnet.inputs["vpcId"],
    }


def _check_link(request: Request) -> None:
    """Raises FSx's refusals (FSx API, CreateDataRepositoryAssociation; read 2026-11)."""
    inputs = request.inputs
    system = request.store.get(LUSTRE, str(inputs["fileSystemId"]))
    assert system is not None  # refused before, as `needs` names it
    if system.inputs["deploymentType"] == "SCRATCH_1":
        raise AwsError("UnsupportedOperation", "Data repository associations are not supported on SCRATCH_1.")
    bucket = str(inputs["dataRepositoryPath"]).removeprefix("s3://").partition("/")[0]
    if request.settings.buckets and bucket not in request.settings.buckets:
        raise AwsError("BadRequest", f"The bucket {bucket} does not exist, or FSx may not reach it.")
    others = [
        row
        for row in request.store.live(LUSTRE_LINK)
        if row.inputs["fileSystemId"] == system.id and row.id != request.id
    ]
    if len(others) >= LINKS:
        raise AwsError("ServiceLimitExceeded", f"A file system has at most {LINKS} data repository associations.")
    for key in ("fileSystemPath", "dataRepositoryPath"):
        if any(_overlap(str(inputs[key]), str(other.inputs[key])) for other in others):
            raise AwsError("BadRequest", f"{inputs[key]} overlaps with that of another data repository association.")


def _overlap(path: str, other_path: str) -> bool:
    shorter, longer = sorted((f"{each.rstrip('/')}/" for each in (path, other_path)), key=len)
    return longer.startswith(shorter)


def _link(request: Request) -> Properties:
    system = request.inputs["fileSystemId"]
    arn = f"arn:aws:fsx:{request.region}:{ACCOUNT_ID}:association/{system}/{request.id}"
    return {"arn": arn, "associationId": request.id, "importedFileChunkSize": 1024}


def _check_efs(request: Request) -> None:
    if request.inputs.get("throughputMode") == "elastic" and request.inputs.get("performanceMode") == "maxIO":
        raise AwsError("BadRequest", "Elastic throughput is only supported with the General Purpose performance mode.")


def _efs(request: Request) -> Properties:
    return {
        "arn": f"arn:aws:elasticfilesystem:{request.region}:{ACCOUNT_ID}:file-system/{request.id}",
        "creationToken": f"terraform-{random_hex(26)}",
        "dnsName": f"{request.id}.efs.{request.region}.amazonaws.com",
        "encrypted": False,
        "name": (request.inputs.get("tags") or {}).get("Name", ""),
        "ownerId": ACCOUNT_ID,
        "performanceMode": "generalPurpose",
    }


def _check_target(request: Request) -> None:
    place = _zone_and_vpc(request, str(request.inputs["subnetId"]))
    for other in request.store.live(MOUNT_TARGET):
        if other.inputs["fileSystemId"] != request.inputs["fileSystemId"] or other.id == request.id:
            continue
        zone, vpc = _zone_and_vpc(request, str(other.inputs["subnetId"]))
        if vpc != place[1]:
            message = "requested subnet for new mount target is not in the same VPC as existing mount targets"
            raise AwsError("MountTargetConflict", message, status=409)
        if zone == place[0]:
            raise AwsError("MountTargetConflict", "mount target already exists in this AZ", status=409)


def _target(request: Request) -> Properties:
    subnet = request.store.get(SUBNET, str(request.inputs["subnetId"]))
    assert subnet is not None  # refused before, as `needs` names it
    zone, file_system = subnet.outputs["availabilityZone"], request.inputs["fileSystemId"]
    domain = f"{file_system}.efs.{request.region}.amazonaws.com"
    return {
        "availabilityZoneName": zone,
        "availabilityZoneId": subnet.outputs["availabilityZoneId"],
        "dnsName": domain,
        "mountTargetDnsName": f"{zone}.{domain}",
        "fileSystemArn": f"arn:aws:elasticfilesystem:{request.region}:{ACCOUNT_ID}:file-system/{file_system}",
        "ipAddress": free_address(request.store, subnet, besides=set()),
        "networkInterfaceId": f"eni-{random_hex(17)}",
        "ownerId": ACCOUNT_ID,
    }


def _zone_and_vpc(request: Request, subnet_id: str) -> tuple[str, str]:
    subnet = request.store.get(SUBNET, subnet_id)
    assert subnet is not None  # a subnet with a mount target in it cannot be deleted
    return str(subnet.outputs["availabilityZone"]), str(subnet.inputs["vpcId"])


FILE_SYSTEM_TYPES = (
    ResourceType(
        token=LUSTRE,
        label="FSx for Lustre File System",
        prefix="fs",
        service="FSx",
        create="CreateFileSystem",
        delete="DeleteFileSystem",
        not_found="FileSystemNotFound",
        source="internal/service/fsx/lustre_file_system.go",
        replace=("deploymentType", "driveCacheType", "kmsKeyId", "securityGroupIds", "storageType", "subnetIds"),
        defaults={"deploymentType": "SCRATCH_1", "storageType": "SSD", "dataCompressionType": "NONE"},
        needs={"subnetIds": SUBNET, "securityGroupIds": SECURITY_GROUP},
        is_file_system=True,
        check=_check_lustre,
        outputs=_lustre,
    ),
    ResourceType(
        token=LUSTRE_LINK,
        label="FSx Data Repository Association",
        prefix="dra",
        service="FSx",
        create="CreateDataRepositoryAssociation",
        delete="DeleteDataRepositoryAssociation",
        not_found="DataRepositoryAssociationNotFound",
        source="internal/service/fsx/data_repository_association.go",
        replace=("dataRepositoryPath", "fileSystemId", "fileSystemPath"),
        defaults={"batchImportMetaDataOnCreate": False, "deleteDataInFilesystem": False},
        needs={"fileSystemId": LUSTRE},
        part_of="fileSystemId",
        check=_check_link,
        outputs=_link,
    ),
    ResourceType(
        token=EFS,
        label="EFS File System",
        prefix="fs",
        service="EFS",
        create="CreateFileSystem",
        delete="DeleteFileSystem",
        not_found="FileSystemNotFound",
        source="internal/service/efs/file_system.go",
        replace=("availabilityZoneName", "creationToken", "encrypted", "kmsKeyId", "performanceMode"),
        defaults={"throughputMode": "bursting"},
        blocked_by=(MOUNT_TARGET,),
        blocked=("FileSystemInUse", "The file system has mount targets: delete them first."),
        is_file_system=True,
        check=_check_efs,
        outputs=_efs,
    ),
    ResourceType(
        token=MOUNT_TARGET,
        label="EFS Mount Target",
        prefix="fsmt",
        service="EFS",
        create="CreateMountTarget",
        delete="DeleteMountTarget",
        not_found="MountTargetNotFound",
        source="internal/service/efs/mount_target.go",
        replace=("fileSystemId", "ipAddress", "subnetId"),
        needs={"fileSystemId": EFS, "subnetId": SUBNET, "securityGroups": SECURITY_GROUP},
        taggable=False,
        check=_check_target,
        outputs=_target,
    ),
)

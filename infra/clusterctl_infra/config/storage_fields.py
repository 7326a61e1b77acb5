"""The types of single values in `storage:`. A check returns the value, or raises ValueError with what is allowed."""

from __future__ import annotations

import re

from clusterctl_infra.config.fields import check_positive, check_size, check_text

THROUGHPUTS = (125, 250, 500, 1000)
"""MB/s per TiB of PERSISTENT_2 on SSD (FSx API, CreateFileSystemLustreConfiguration; read 2026-11)."""
MOUNT_LENGTH = 100
PREFIX_LENGTH = 100
"""S3 takes 1,024; with prefixes of this length, the rights to as many buckets as there may be still fit into a role."""
SYSTEM_FOLDERS = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "lost+found", "proc", "root", "run", "sbin")
).union(("snap", "sys", "tmp", "usr", "var"))
HIDING = {
    "/home": "it would hide the login user's keys",
    "/home/ubuntu": "it would hide the login user's keys",
    "/opt": "it would hide the drivers and libraries of the image",
}
"""Folders in which a mount may be, but that may not be a mount themselves."""
TAKEN = {
    "/opt/amazon": "EFA's libraries are there",
    "/opt/aws": "AWS's tools are there",
    "/opt/torch": "the image's torch may be there",
}
"""Folders that may not be a mount, nor have one in them."""
_NO_EFS_HELPER = (
    "not built yet: nodes would need AWS's mount helper, amazon-efs-utils, of which AWS has no package for Ubuntu; "
    "leave it out"
)
NOT_BUILT = {
    ("efs", "access_point"): _NO_EFS_HELPER,
    ("efs", "encryption_in_transit"): _NO_EFS_HELPER,
    ("fsx-lustre", "efa"): (
        "not built yet: at every boot, before the mount, nodes would have to load Lustre's module for EFA and give it "
        "EFA devices; leave it out"
    ),
}
"""Kind and key → why nodes cannot have what AWS has.

EFS: access points and TLS are options of the helper, mount.efs(8), and not of the kernel's NFS client. On Ubuntu it is
built from its sources with Rust; packages were requested in 2021 (github.com/aws/efs-utils, issues 111, 204, 341).
EFA: before `mount` come `modprobe kefalnd`, `lnetctl net add --net efa` for each device, and a rule that prefers them
(Amazon EKS User Guide, "Optimize Amazon FSx for Lustre performance on nodes (EFA)"). The file system needs a metadata
configuration, and a security group that lets in all traffic of the nodes' (FSx for Lustre User Guide, "Creating an FSx
for Lustre file system fails"; pulumi_aws, LustreFileSystem.efa_enabled). All read on 2026-11-26.
"""
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
"""General purpose buckets (S3 User Guide, "General purpose bucket naming rules"; read 2026-11)."""
_FOLDER = r"(/[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?)+"
_PREFIX = r"[A-Za-z0-9!_.=@+-]+(/[A-Za-z0-9!_.=@+-]+)*/"


def check_lustre_size(value: object) -> int:
    """A size that FSx for Lustre makes on SSD (1200 GiB or a multiple of 2400). Raises ValueError."""
    size_gib = check_size(value)
    if size_gib == 1200 or (size_gib > 0 and size_gib % 2400 == 0):
        return size_gib
    below, above = size_gib // 2400 * 2400 or 1200, (size_gib // 2400 + 1) * 2400
    if size_gib < 1200:
        raise ValueError("not a size that AWS makes: the least is 1200GiB")
    raise ValueError(f"not a size that AWS makes: {below}GiB or {above}GiB")


def check_throughput(value: object) -> int:
    """A throughput that persistent storage has, in MB/s per TiB. Raises ValueError."""
    found = check_positive(value)
    if found not in THROUGHPUTS:
        near = sorted(sorted(THROUGHPUTS, key=lambda each: abs(each - found))[:2])
        raise ValueError(
            f"MB/s per TiB; AWS has {', '.join(map(str, THROUGHPUTS))} (did you mean {' or '.join(map(str, near))}?)"
        )
    return found


def check_mount(value: object) -> str:
    """An absolute path where a mount hides nothing that the node needs. Raises ValueError."""
    text = check_text(value)
    parts = text.split("/")[1:]
    if not text.startswith("/") or "" in parts[:-1] or "." in parts or ".." in parts:
        raise ValueError("not an absolute path such as /shared")
    if text == "/":
        raise ValueError("the whole machine; mount elsewhere, such as /shared")
    if text.endswith("/"):
        raise ValueError(f"ends in a slash (did you mean {text.rstrip('/')}?)")
    if len(text) > MOUNT_LENGTH:
        raise ValueError(f"{len(text)} characters; the most is {MOUNT_LENGTH}")
    if not all(re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?", part, re.ASCII) for part in parts):
        raise ValueError("letters, digits, dots, underscores and inner hyphens only, as in /shared/run-1")
    if parts[0] in SYSTEM_FOLDERS:
        raise ValueError(f"/{parts[0]} belongs to the system; mount elsewhere, such as /shared")
    taken = next((why for path, why in TAKEN.items() if f"{text}/".startswith(f"{path}/")), HIDING.get(text))
    if taken is not None:
        raise ValueError(f"{taken}; mount elsewhere, such as /shared")
    return text


def check_folder(value: object) -> str:
    """A folder of a file system, as AWS takes it: `/`, or a path without a slash at its end. Raises ValueError."""
    text = check_text(value)
    if len(text) > MOUNT_LENGTH:
        raise ValueError(f"{len(text)} characters; the most is {MOUNT_LENGTH}")
    if text == "/" or re.fullmatch(_FOLDER, text, re.ASCII):
        return text
    wish = "/" + text.strip("/")
    if re.fullmatch(_FOLDER, wish, re.ASCII):
        raise ValueError(f"begins with a slash and ends without one (did you mean {wish}?)")
    raise ValueError("letters, digits, dots, underscores and inner hyphens between single slashes, as in /imagenet")


def check_events(value: object) -> object:
    """Kinds of changes, each once. Raises ValueError."""
    if isinstance(value, list | tuple) and len(set(map(str, value))) < len(value):
        raise ValueError("each of new, changed, deleted at most once")
    return value


def check_file_system_id(value: object) -> str:
    """The id of an FSx or EFS file system. Raises ValueError."""
    text = check_text(value)
    if not re.fullmatch(r"fs-([0-9a-f]{8}|[0-9a-f]{17})", text, re.ASCII):
        raise ValueError("a file system's id is fs- and 8 or 17 hex digits")
    return text


def check_bucket(value: object) -> str:
    """The name of a bucket. Raises ValueError."""
    text = check_text(value)
    if text.startswith("s3://"):
        name, _, prefix = text.removeprefix("s3://").partition("/")
        more = f", prefix: {prefix.rstrip('/')}/" if prefix.strip("/") else ""
        raise ValueError(f"a name, not an address (did you mean bucket: {name}{more}?)")
    if not re.fullmatch(_BUCKET, text, re.ASCII) or ".." in text:
        raise ValueError("a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens")
    return text


def check_workflow_storage(value: object) -> str:
    """The address of a folder in a bucket, without a slash at its end. Raises ValueError."""
    text = check_text(value)
    bucket, slash, prefix = text.removeprefix("s3://").partition("/")
    if not text.startswith("s3://") or not re.fullmatch(_BUCKET, bucket, re.ASCII):
        raise ValueError("write s3://BUCKET/PATH")
    if slash and prefix:
        check_prefix(f"{prefix.rstrip('/')}/")
    if {".", ".."}.intersection(prefix.split("/")):
        raise ValueError("write a path without . and ..")
    return text.rstrip("/")


def check_prefix(value: object) -> str:
    """A prefix of keys, without IAM's wildcards; empty: the whole bucket. Raises ValueError."""
    text = check_text(value)
    if len(text) > PREFIX_LENGTH:
        raise ValueError(f"{len(text)} characters; the most is {PREFIX_LENGTH}")
    if not text or re.fullmatch(_PREFIX, text, re.ASCII):
        return text
    wish = text.strip("/") + "/"
    if re.fullmatch(_PREFIX, wish, re.ASCII):
        raise ValueError(f"begins without a slash and ends in one (did you mean {wish}?)")
    raise ValueError("letters, digits and !_.=@+- between single slashes, as in imagenet/train/")

"""Which image can mount what, who brings the programs for it, and what is refused."""

from __future__ import annotations

import re
from itertools import product
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl_infra.plan.mount_clients import HELPERS, client_sources
from clusterctl_infra.plan.nodes import node_plan

from tests.unit.infra.plan.plan_cases import CATALOG, a_config, a_plan, problems_of

LUSTRE: dict[str, Any] = {"mount": "/shared", "fsx-lustre": {"size": "4800GiB"}}
EFS: dict[str, Any] = {"mount": "/work", "efs": {}}
BUCKET: dict[str, Any] = {"mount": "/data", "s3": {"bucket": "sets"}}
DISKS: dict[str, Any] = {"mount": "/local", "nvme": {}}
KINDS = {"fsx-lustre": LUSTRE, "efs": EFS, "s3": BUCKET}
INSTALLED = r"ubuntu (\w+ main)|install ([a-z0-9-]+)$|f=(\S+)"


def clients(**changes: Any) -> list[str]:
    """What the script that nodes get installs, in its order."""
    script = a_plan(**changes).mount_clients
    rows = [] if script is None else re.findall(INSTALLED, script.content, re.MULTILINE)
    return ["".join(row) for row in rows]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"storage": [DISKS]}, []),
        ({"storage": [LUSTRE]}, ["jammy main"]),
        (
            {"storage": [BUCKET, LUSTRE, EFS, {"mount": "/more", "efs": {}}]},
            ["mount-s3-1.24.0-x86_64.deb", "jammy main", "nfs-common"],
        ),
        ({"storage": [BUCKET, EFS], "instance_type": "g5g.16xlarge", "placement": "none"},
         ["mount-s3-1.24.0-arm64.deb", "nfs-common"]),
        (
            {"storage": [BUCKET, LUSTRE, EFS], "image": "dlami-base-amazon-linux-2023"},
            ["mount-s3", "lustre-client", "nfs-utils"],
        ),
        ({"storage": [LUSTRE], "image": "ami-0123456789abcdef0"}, []),
    ],
)  # fmt: skip
def test_nodes_install_the_clients_of_their_mounts(changes: dict[str, Any], expected: list[str]) -> None:
    assert clients(**changes) == expected


def test_the_script_is_a_nodes_first() -> None:
    config = a_config(storage=[LUSTRE])
    scripts = node_plan(config, a_plan(storage=[LUSTRE]), 0).scripts
    assert [script.name for script in scripts] == ["mount-clients"]


@pytest.mark.parametrize(
    ("changes", "level", "message"),
    [
        (
            {"image": "dlami-base-ubuntu-24.04", "storage": [EFS, LUSTRE]},
            "error",
            (
                "/shared: dlami-base-ubuntu-24.04 cannot mount FSx for Lustre on x86_64: FSx's repository has client "
                "modules for the 6.8 kernels of Ubuntu 24.04, and this image starts kernel 7.0; "
                "dlami-base-ubuntu-22.04, dlami-base-amazon-linux-2023 can"
            ),
        ),
        (
            {"image": "ami-0123456789abcdef0", "storage": [DISKS, BUCKET]},
            "warning",
            (
                "/data: what ami-0123456789abcdef0 has is not known: a node without /sbin/mount.mount-s3 fails, unless "
                "packages: or a script before-mounts installs it"
            ),
        ),
    ],
)
def test_a_mount_that_an_image_cannot_have_is_said_before_anything_bills(
    changes: dict[str, Any], level: str, message: str
) -> None:
    assert problems_of(a_plan(**changes), level)["storage[1]"] == message


ROWS = [
    (image, architecture, kind)
    for (image, row), kind in product(CATALOG.images.items(), KINDS)
    for architecture in row.parameters
]


@pytest.mark.parametrize(("image", "architecture", "kind"), ROWS)
def test_every_image_either_mounts_a_kind_or_is_refused(image: str, architecture: str, kind: str) -> None:
    machine = "p5.48xlarge" if architecture == "x86_64" else "g5g.16xlarge"
    changes: dict[str, Any] = {"image": image, "instance_type": machine, "placement": "none", "storage": [KINDS[kind]]}
    is_refused = "cannot mount" in problems_of(a_plan(**changes)).get("storage[0]", "")
    assert bool(clients(**changes)) != is_refused


def test_what_nodes_have_to_reach_is_named_once() -> None:
    storage = a_plan(storage=[LUSTRE, EFS, {"mount": "/more", "efs": {}}]).storage
    assert client_sources(a_config(), CATALOG, storage) == [
        "fsx-lustre-client-repo.s3.amazonaws.com",
        "fsx-lustre-client-repo-public-keys.s3.amazonaws.com",
        "Ubuntu's archive",
    ]


def test_every_kind_of_the_catalog_has_its_program() -> None:
    assert {kind for _, kind in CATALOG.mount_clients.clients} == set(HELPERS)
    assert {row.system for row in CATALOG.images.values()} >= {system for system, _ in CATALOG.mount_clients.clients}

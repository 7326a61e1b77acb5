"""A cluster whose nodes mount: two that tests share, and what they mount and run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clusterctl_bootstrap.mount_clients import from_own_sources, lustre_of_ubuntu, mount_clients, signed_mountpoint
from clusterctl_bootstrap.node_plan import MountPlan, NodePlan, ScriptPlan
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.packages.files import package_files
from clusterctl_rehearsal.storage.files import storage_binds, storage_files

from tests.integration.bootstrap.bootstrapped import Bootstrapped

LUSTRE = "fs-0aaaaaaaaaaaaaaaa"
EFS = "fs-0bbbbbbbbbbbbbbbb"
LATE = "fs-0cccccccccccccccc"
SHARED = MountPlan(path="/shared", kind="fsx-lustre", source=f"{LUSTRE}.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh")
ODD = MountPlan(path="/all of us/100%-ü", kind="efs", source=f"{EFS}.efs.us-west-2.amazonaws.com:/")
"""A path with everything that a unit's name and text must escape."""
SETS = MountPlan(path="/data", kind="s3", source="sets/imagenet/", options="region=us-west-2", writable=False)
RESULTS = MountPlan(path="/results", kind="s3", source="results/", options="region=us-west-2")
LOCAL = MountPlan(path="/scratch", kind="nvme", options="stripe")
NOTE_MOUNTS = "#!/bin/bash\nset -e\nmountpoint -q /shared\necho $NODE_RANK $0 >>/var/tmp/ran\n"
SCRIPTS = (
    ScriptPlan(
        name="early.sh", content="! mountpoint -q /shared && echo early >>/var/tmp/ran", when="once", at="before-mounts"
    ),
    ScriptPlan(name="setup.sh", content=NOTE_MOUNTS, when="once", at="before-ready"),
    ScriptPlan(name="each-boot.sh", content=NOTE_MOUNTS, when="boot", at="before-ready"),
    ScriptPlan(
        name="late.sh",
        content="until grep -q ready /etc/clusterctl/status.json; do :; done; touch /var/tmp/late",
        when="once",
        at="after-ready",
    ),
)
BROKEN = ScriptPlan(name="broken.sh", content="#!/bin/sh\necho so far\nfalse\n", when="once", at="before-ready")
LATECOMER, CLIENTLESS, UNSCRIPTED, UNPACKED, SOURCELESS = 2, 3, 4, 5, 6
"""Slots that boot otherwise than the two that tests share."""
CATALOG = load_catalog()
S3_CLIENT = CATALOG.mount_clients.clients["ubuntu-22.04", "s3"]
CLIENTS = mount_clients(
    [
        lustre_of_ubuntu("jammy"),
        from_own_sources("nfs4", "nfs-common"),
        signed_mountpoint(S3_CLIENT.version, "x86_64", S3_CLIENT.fingerprint),
    ]
)
"""What installs the clients: no machine has one at its birth."""
KIND = CATALOG.types["p5.48xlarge"]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A network whose machines see `shares`, one folder for each file system."""

    network: Bootstrapped
    shares: Path

    def plan(
        self, slot: int, *mounts: MountPlan, scripts: tuple[ScriptPlan, ...] = (), packages: tuple[str, ...] = ()
    ) -> NodePlan:
        return self.network.plan(slot, nodes=7, left_s=3600, mounts=mounts, scripts=scripts, packages=packages)

    def boot(self, plan: NodePlan) -> None:
        """Starts the machine with what stands for storage in a rehearsal."""
        found = {**storage_files(KIND), **package_files(CATALOG.mount_clients)}
        self.network.boot(plan, found, storage_binds(self.shares))

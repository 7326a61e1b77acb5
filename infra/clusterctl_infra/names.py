"""Names on which the command line, the Pulumi program, our provider and the rehearsal agree, each written only here."""

from __future__ import annotations

import re

HOME_VARIABLE = "CLUSTERCTL_HOME"
STACK_DIR_VARIABLE = "CLUSTERCTL_STACK_DIR"
"""The folder of the stack that runs: the engine may be started elsewhere."""
STACK_NAME_VARIABLE = "CLUSTERCTL_STACK_NAME"
USUAL_STACK_NAME = "dev"
"""The Pulumi stack of a folder, unless a person names another."""
NONCE_VARIABLE = "CLUSTERCTL_REHEARSAL_NONCE"
"""The nonce with which the stand-in for AWS proves itself; set only in a rehearsal."""

REHEARSAL_SUFFIX = "@rehearsal"
"""Ends the name of every rehearsed cluster."""
HOSTS_SUFFIX = "@hosts"
"""Ends the name of every cluster of existing machines, which clusterctl neither makes nor ends."""
REHEARSAL_CREDENTIAL = "rehearsal"
"""Stands for an AWS key id, secret or token in a rehearsal: no account has it."""
REGION_PRIVATE = "/clusterctl/"
"""Requests to the rehearsed region below this path are our own, not calls of AWS's API."""
REGION_TOKEN_HEADER = "X-Clusterctl-Token"
REGION_TOKEN_FILE = "region.token"
"""The file beside region.json with the token that this header has to carry."""
CHECKS_SIGNATURES = "checks_signatures"
"""The key in region.json by which a region says that it answers only its owner; older regions answered every user."""
IS_ENDING = "is_ending"
"""The key in region.json by which a region says that it takes no more requests: whoever asks starts the next one."""
REGION_KEYS_FILE = "region.keys"
"""The file beside region.json with the key pair that signs calls of AWS's API to the region."""
MACHINES_NOTE = "machines: "
"""Begins what the stand-in reports about the machines that it boots, so that the report is shown and kept."""

ID_TAG = "clusterctl:id"
NAME_TAG = "clusterctl:name"
SLOT_TAG = "clusterctl:slot"
OWNER_TAG = "clusterctl:owner"
DEADLINE_TAG = "clusterctl:deadline"
NO_DEADLINE = "none"
"""The value of that tag while a cluster is down on purpose: what is kept of it has no deadline until another `up`."""
TRIAL_TAG = "clusterctl:probe"
"""On what a trial makes, which belongs to no cluster although it has an id of its own."""
PURCHASE_TAG = "clusterctl:purchase"
"""On a capacity block: the purchase that it came from. It belongs to no cluster, and nothing that ends clusters looks
for this tag."""
PURCHASED_FOR_TAG = "clusterctl:purchased-for"
"""On a capacity block: the name of the cluster that it was bought for."""
PURCHASED_AT_TAG = "clusterctl:purchased-at"
"""On the placement group that keeps two computers from buying at once: when the purchase began."""
BIRTH_TAG = "clusterctl:birth"
"""On a machine: what it took on only at birth; never changed while it lives."""
MOUNT_TAG = "clusterctl:mount"
"""On a file system: where nodes mount it."""
ON_DELETE_TAG = "clusterctl:on-delete"
"""On a file system: `retain` if it outlives the nodes, else `delete`."""

IDENTITY_TYPE = "clusterctl:index:Identity"
MEMBERSHIP_TYPE = "clusterctl:index:Membership"
INVENTORY_TYPE = "clusterctl:index:Inventory"
PRICES_FILE = "prices.json"
"""The file in the home with prices newer than the shipped ones. The command line writes it; the command line and the
Pulumi program read it."""

GUARD_PREFIX = "clusterctl-"
"""Comes before the cluster's id in the names of what is found by its name and not by a tag."""
_OURS = re.compile(rf"{GUARD_PREFIX}([0-9a-f]{{12}})(-[a-z0-9-]+)?")


def plain_name(cluster: str) -> str:
    """`train` for `train`, `train@rehearsal` and `train@hosts`: what the names of its nodes begin with."""
    return cluster.removesuffix(REHEARSAL_SUFFIX).removesuffix(HOSTS_SUFFIX)


def clusters_called(name: str) -> tuple[str, str, str]:
    """The clusters that a person may mean by `name`, the likeliest first."""
    return name, name + REHEARSAL_SUFFIX, name + HOSTS_SUFFIX


def guard_name(cluster_id: str) -> str:
    """The name of the role, state machine and schedule that end a cluster at its deadline; schedules carry no tags."""
    return f"{GUARD_PREFIX}{cluster_id}-deadline"


def alarm_name(cluster_id: str, metric: str) -> str:
    """The name of the alarm on `metric`, which counts one way in which ending the cluster can fail."""
    return f"{guard_name(cluster_id)}-{metric.lower()}"


def id_in_name(name: str) -> str | None:
    """The cluster's id in a name that clusterctl gave, by which things without tags are known; None in other names."""
    found = _OURS.fullmatch(name)
    return None if found is None else found[1]


def guarded_id(name: str) -> str | None:
    """The id of the cluster whose guard has this name; None in any other name."""
    found = id_in_name(name)
    return found if found is not None and name == guard_name(found) else None

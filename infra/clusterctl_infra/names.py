"""Names that the command line, the Pulumi program, our provider and the rehearsal agree on: each stands here alone."""

from __future__ import annotations

import re

HOME_VARIABLE = "CLUSTERCTL_HOME"
STACK_DIR_VARIABLE = "CLUSTERCTL_STACK_DIR"
"""The folder of the stack that runs: the engine may be started elsewhere."""
STACK_NAME_VARIABLE = "CLUSTERCTL_STACK_NAME"
USUAL_STACK_NAME = "dev"
"""The Pulumi stack of a folder, where nobody names another."""
NONCE_VARIABLE = "CLUSTERCTL_REHEARSAL_NONCE"
"""What the stand-in for AWS proves itself with; set in a rehearsal alone."""

REHEARSAL_SUFFIX = "@rehearsal"
"""Behind the name of every rehearsed cluster."""
HOSTS_SUFFIX = "@hosts"
"""Behind the name of every cluster of existing machines: nothing of ours makes or ends them."""
REHEARSAL_CREDENTIAL = "rehearsal"
"""AWS key id and secret of a rehearsal: no account has them."""
REGION_PRIVATE = "/clusterctl/"
"""What the rehearsed region is asked below this path is no call of AWS."""
REGION_TOKEN_HEADER = "X-Clusterctl-Token"
REGION_TOKEN_FILE = "region.token"
"""Beside region.json: what the header has to say."""
CHECKS_SIGNATURES = "checks_signatures"
"""In region.json, said by a region that answers its owner alone; older ones answered every user."""
REGION_KEYS_FILE = "region.keys"
"""Beside it: the key pair that requests of AWS are signed with."""
MACHINES_NOTE = "machines: "
"""Before what the stand-in says of the machines that it boots, so that it is shown and kept."""

ID_TAG = "clusterctl:id"
NAME_TAG = "clusterctl:name"
SLOT_TAG = "clusterctl:slot"
OWNER_TAG = "clusterctl:owner"
DEADLINE_TAG = "clusterctl:deadline"
NO_DEADLINE = "none"
"""In that tag, of a cluster that is down on purpose: what is kept of it has no end before another `up`."""
TRIAL_TAG = "clusterctl:probe"
"""Of what asks for room and is taken back at once: it is no cluster's, though it has an id of its own."""
PURCHASE_TAG = "clusterctl:purchase"
"""Of a capacity block: the purchase that it came of. It is no cluster's, and nothing that ends clusters knows it."""
PURCHASED_FOR_TAG = "clusterctl:purchased-for"
"""Beside it: the name of the cluster that it was bought for."""
PURCHASED_AT_TAG = "clusterctl:purchased-at"
"""Of the placement group that keeps two computers from buying at once: when the purchase began."""
BIRTH_TAG = "clusterctl:birth"
"""What a machine took on at birth alone; never changed while it lives."""
MOUNT_TAG = "clusterctl:mount"
"""Of a file system: where nodes see it."""
ON_DELETE_TAG = "clusterctl:on-delete"
"""Of a file system: `retain`, it outlives the nodes, or `delete`."""

IDENTITY_TYPE = "clusterctl:index:Identity"
MEMBERSHIP_TYPE = "clusterctl:index:Membership"
INVENTORY_TYPE = "clusterctl:index:Inventory"
PRICES_FILE = "prices.json"
"""Below the home: prices newer than the shipped ones. The command line writes it; it and the program read it."""

GUARD_PREFIX = "clusterctl-"
"""Before the cluster's id in the names of what carries no tags."""
_OURS = re.compile(rf"{GUARD_PREFIX}([0-9a-f]{{12}})(-[a-z0-9-]+)?")


def guard_name(cluster_id: str) -> str:
    """Of the role, the state machine and the schedule that end a cluster at its deadline; schedules carry no tags."""
    return f"{GUARD_PREFIX}{cluster_id}-deadline"


def alarm_name(cluster_id: str, metric: str) -> str:
    """Of the alarm that tells that what ends a cluster has failed in this way."""
    return f"{guard_name(cluster_id)}-{metric.lower()}"


def id_in_name(name: str) -> str | None:
    """The cluster's id in a name that we give: what carries no tags is known by it; None in anybody else's name."""
    found = _OURS.fullmatch(name)
    return None if found is None else found[1]


def guarded_id(name: str) -> str | None:
    """The id of the cluster whose guard has this name; None in any other name."""
    found = id_in_name(name)
    return found if found is not None and name == guard_name(found) else None

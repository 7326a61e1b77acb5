"""The reasons for which `up`, `extend`, `replace` and `down` refuse to begin, in the order in which they are checked.

The cheap questions come first: what this computer knows, then what the state says, then what AWS says. To add a check,
write a function in without_aws.py or with_aws.py, a row here, and a case in its unit test; `scripts/docs` lists it in
docs/checks.md.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar  # rows of the table need different things

from clusterctl.lifecycle.change import ChangeVerb
from clusterctl.lifecycle.checks import with_aws, without_aws
from clusterctl.lifecycle.checks.known import (
    WithEngine,
    WithFolder,
    WithHold,
    WithIntent,
    WithPlan,
    WithPreview,
    WithState,
)

K = TypeVar("K")


class Asks(enum.Enum):
    """The slowest source that a check asks."""

    NOTHING = "nothing"
    """What was typed, this computer's files, and its disks."""
    STATE = "the state"
    """The state, and the plan, which is made from it."""
    AWS = "AWS"


@dataclass(frozen=True, kw_only=True)
class Check(Generic[K]):
    """One reason not to begin."""

    name: str
    verbs: tuple[ChangeVerb, ...]
    asks: Asks
    needs: type[K]
    """What must be known before the check can run."""
    refuse: Callable[[K], None]
    """Raises ClusterctlError."""
    refused_when: str
    """In which case the change is not begun, as docs/checks.md says it."""
    why_early: str | None = None
    """Why AWS is asked before something that is known here already."""
    is_run_by_plan: bool = False
    """Whether `clusterctl plan` runs it, too, for the `up` that would come next."""
    is_about_time: bool = False
    """Whether time alone can make it refuse: then it runs again once a person has answered the question."""


UP: ChangeVerb = "up"
EXTEND: ChangeVerb = "extend"
REPLACE: ChangeVerb = "replace"
DOWN: ChangeVerb = "down"
EVERY = (UP, EXTEND, REPLACE, DOWN)
RUNNING = (UP, EXTEND, REPLACE)
"""The verbs after which nodes run."""

CHECKS: tuple[Check[Any], ...] = (
    Check(
        name="program",
        verbs=RUNNING,
        asks=Asks.NOTHING,
        needs=WithFolder,
        refuse=without_aws.program,
        refused_when="the stack's folder has no program for the engine to run",
    ),
    Check(
        name="room at home",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithFolder,
        refuse=without_aws.space_at_home,
        refused_when="the disk of this computer's clusterctl home is full, so that the change could not be recorded",
    ),
    Check(
        name="writable config",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithEngine,
        refuse=without_aws.config_is_writable,
        refused_when="the stack's config file may not be written, so that the settings could not be kept",
    ),
    Check(
        name="room for the config",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithEngine,
        refuse=without_aws.space_for_config,
        refused_when="the disk of the stack's config file is full, so that the settings could not be kept",
    ),
    Check(
        name="room for the state",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithEngine,
        refuse=without_aws.space_for_state,
        refused_when="the state is a file on a disk that is full, so that the engine could not write it",
    ),
    Check(
        name="program of what stays",
        verbs=(DOWN,),
        asks=Asks.NOTHING,
        needs=WithIntent,
        refuse=without_aws.program,
        refused_when="`down` is to keep data, and the folder has no program for the engine to run",
    ),
    Check(
        name="ordered ranks",
        verbs=(UP,),
        asks=Asks.NOTHING,
        needs=WithIntent,
        refuse=without_aws.ranks_are_ordered,
        refused_when="`--reorder-ranks` is given, and cluster.yaml does not order ranks by topology",
    ),
    Check(
        name="project",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithHold,
        refuse=without_aws.project,
        refused_when="the stack holds nothing because its project had another name when its cluster was made",
    ),
    Check(
        name="home",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithHold,
        refuse=without_aws.home,
        refused_when="the cluster is rehearsed in another home",
    ),
    Check(
        name="region",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithHold,
        refuse=without_aws.region_asked,
        refused_when="the cluster is in another region than the one that AWS would be asked in",
    ),
    Check(
        name="account",
        verbs=EVERY,
        asks=Asks.AWS,
        needs=WithHold,
        refuse=with_aws.account,
        refused_when="the credentials are of another account than the cluster's",
        why_early="what AWS says of the machines is written down as soon as the state is read, for `clusterctl cost`; "
        "another account would say that there are none",
    ),
    Check(
        name="slot with a machine",
        verbs=(REPLACE,),
        asks=Asks.STATE,
        needs=WithState,
        refuse=without_aws.slot_has_machine,
        refused_when="a slot has no machine, as after a failed `up`",
    ),
    Check(
        name="clock",
        verbs=RUNNING,
        asks=Asks.AWS,
        needs=WithState,
        refuse=with_aws.clock,
        refused_when="the clock of this computer is more than a minute off AWS's",
        why_early="if the clock is ahead, a running cluster would be called ended",
    ),
    Check(
        name="whole cluster",
        verbs=(EXTEND,),
        asks=Asks.STATE,
        needs=WithState,
        refuse=without_aws.cluster_is_whole,
        refused_when="the cluster has no nodes, lacks some of them, or has ended",
    ),
    Check(
        name="shared project",
        verbs=(DOWN,),
        asks=Asks.STATE,
        needs=WithState,
        refuse=without_aws.shared_project,
        refused_when="the cluster was made from another folder whose project has the same name",
    ),
    Check(
        name="name",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.name,
        refused_when="cluster.yaml has another name than the cluster (`down`: only if data is kept)",
    ),
    Check(
        name="region in the file",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.region_written,
        refused_when="cluster.yaml has another region than the cluster (`down`: only if data is kept)",
        is_run_by_plan=True,
    ),
    Check(
        name="data",
        verbs=(UP, EXTEND, DOWN),
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.data,
        refused_when="cluster.yaml would end a file system, or replace it with an empty one "
        "(`down`: only if data is kept)",
        is_run_by_plan=True,
    ),
    Check(
        name="network",
        verbs=(UP, EXTEND, DOWN),
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.network,
        refused_when="cluster.yaml has other network addresses than the network that is in use (`down`: only if data "
        "is kept)",
        is_run_by_plan=True,
    ),
    Check(
        name="launch",
        verbs=RUNNING,
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.launch,
        refused_when="cluster.yaml has another placement or capacity than running machines were launched with",
        is_run_by_plan=True,
    ),
    Check(
        name="new deadline",
        verbs=(EXTEND,),
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.deadline,
        refused_when="the new deadline has passed, is too near, too late, or beyond the budget",
        is_about_time=True,
    ),
    Check(
        name="plan",
        verbs=RUNNING,
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.plan,
        refused_when="the plan has an error, its deadline has passed, or the budget is spent",
        is_run_by_plan=True,
        is_about_time=True,
    ),
    Check(
        name="machines stay",
        verbs=(EXTEND,),
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.machines_stay,
        refused_when="cluster.yaml was changed in a way that replaces machines",
    ),
    Check(
        name="way in",
        verbs=(UP,),
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.way_in,
        refused_when="nodes are private, and this computer lacks a program that is needed to reach them",
    ),
    Check(
        name="namesake",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPlan,
        refuse=with_aws.namesake,
        refused_when="another cluster has the name, in this account and region or as far as this computer knows",
    ),
    Check(
        name="reaped",
        verbs=RUNNING,
        asks=Asks.AWS,
        needs=WithPlan,
        refuse=with_aws.reaped,
        refused_when="no machine lives, and AWS no longer has the cluster's network, launch template or state machine",
    ),
    Check(
        name="ending",
        verbs=(EXTEND,),
        asks=Asks.AWS,
        needs=WithPlan,
        refuse=with_aws.ending,
        refused_when="the cluster's state machine is ending it",
    ),
    Check(
        name="spot rights",
        verbs=(UP, REPLACE),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.spot_rights,
        refused_when="these credentials may make spot machines, but may not end them",
    ),
    Check(
        name="spot price",
        verbs=(UP, REPLACE),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.spot_price,
        refused_when="spot machines cost more now than their maximum price",
    ),
    Check(
        name="addresses",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.addresses,
        refused_when="more elastic IPs are needed than the account may have",
    ),
    Check(
        name="vCPUs",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.vcpus,
        refused_when="more on-demand vCPUs are needed than the account may have",
    ),
    Check(
        name="preflight",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.preflight,
        refused_when="on AWS, `clusterctl plan --online` finds an error: region, image, type, quotas, reservation, "
        "subnet, buckets, rights",
    ),
)


def run_checks(verb: ChangeVerb, known: object, *, after: type[object] | None = None) -> None:
    """Runs the verb's checks for which enough is known, in the table's order. Raises the first refusal's error.

    `after`: what was known when checks were run before; checks that could run then are not run again.
    """
    for check in CHECKS:
        is_ready = verb in check.verbs and isinstance(known, check.needs)
        if is_ready and not (after is not None and issubclass(after, check.needs)):
            check.refuse(known)


def run_checks_of_time(verb: ChangeVerb, known: WithPlan) -> None:
    """Runs the checks about time once more: a person may have taken long to answer."""
    for check in CHECKS:
        if check.is_about_time and verb in check.verbs:
            check.refuse(known)


def checks_run_by_plan() -> tuple[Check[Any], ...]:
    """The checks of `up` that `clusterctl plan` runs, which ask the state alone and hold nothing."""
    return tuple(check for check in CHECKS if check.is_run_by_plan and UP in check.verbs)


def known_words(check: Check[Any]) -> str:
    """What the verb has done when the check runs, as docs/checks.md says it."""
    return _KNOWN_WORDS[check.needs]


_KNOWN_WORDS: Mapping[type[object], str] = {
    WithFolder: "the stack's folder is found",
    WithEngine: "the cluster is held",
    WithHold: "the state is read",
    WithState: "the state is read",
    WithIntent: "cluster.yaml is read",
    WithPlan: "the plan is made",
    WithPreview: "the preview is shown",
}

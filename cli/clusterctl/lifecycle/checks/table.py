"""All that `up`, `extend`, `replace` and `down` may refuse before they change anything, in the order of asking.

The cheap questions come first: what this computer knows, then what the state says, then what AWS says. Who needs
another check writes a function in without_aws.py or with_aws.py, a row here, and a case in its unit test;
`scripts/docs` lists it in docs/checks.md.
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
    """The dearest thing that a check needs an answer from."""

    NOTHING = "nothing"
    """What was typed, this computer's files, and its disks."""
    STATE = "the state"
    """And the plan, which stands on it."""
    AWS = "AWS"


@dataclass(frozen=True, kw_only=True)
class Check(Generic[K]):
    """One reason not to begin."""

    name: str
    verbs: tuple[ChangeVerb, ...]
    asks: Asks
    needs: type[K]
    """What is known when it runs."""
    refuse: Callable[[K], None]
    """Raises ClusterctlError."""
    refuses: str
    """What is not begun, as docs/checks.md says it."""
    why_early: str | None = None
    """Why AWS is asked before something that is known here already."""
    is_told_by_plan: bool = False
    """`clusterctl plan` says it, too, of the `up` that would come next."""
    is_about_time: bool = False
    """Time alone can make it refuse: it runs again when a person has thought about the question."""


UP: ChangeVerb = "up"
EXTEND: ChangeVerb = "extend"
REPLACE: ChangeVerb = "replace"
DOWN: ChangeVerb = "down"
EVERY = (UP, EXTEND, REPLACE, DOWN)
RUNNING = (UP, EXTEND, REPLACE)
"""After these nodes run."""

CHECKS: tuple[Check[Any], ...] = (
    Check(
        name="program",
        verbs=RUNNING,
        asks=Asks.NOTHING,
        needs=WithFolder,
        refuse=without_aws.program,
        refuses="a stack whose folder has no program for the engine to run",
    ),
    Check(
        name="room at home",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithFolder,
        refuse=without_aws.room_at_home,
        refuses="a change that this computer could not write down, since the disk of its home is full",
    ),
    Check(
        name="writable config",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithEngine,
        refuse=without_aws.config_is_writable,
        refuses="a change whose settings could not be kept, since the stack's config may not be written",
    ),
    Check(
        name="room for the config",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithEngine,
        refuse=without_aws.room_for_config,
        refuses="a change whose settings could not be kept, since the disk of the stack's config is full",
    ),
    Check(
        name="room for the state",
        verbs=EVERY,
        asks=Asks.NOTHING,
        needs=WithEngine,
        refuse=without_aws.room_for_state,
        refuses="a run of the engine that could not write its state, where that is a file on a disk that is full",
    ),
    Check(
        name="program of what stays",
        verbs=(DOWN,),
        asks=Asks.NOTHING,
        needs=WithIntent,
        refuse=without_aws.program,
        refuses="a `down` that keeps data, where the folder has no program for the engine to run",
    ),
    Check(
        name="ordered ranks",
        verbs=(UP,),
        asks=Asks.NOTHING,
        needs=WithIntent,
        refuse=without_aws.ranks_are_ordered,
        refuses="`--reorder-ranks` where ranks are not ordered by topology",
    ),
    Check(
        name="project",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithHold,
        refuse=without_aws.project,
        refuses="a stack that holds nothing because its project has another name than when its cluster was made",
    ),
    Check(
        name="home",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithHold,
        refuse=without_aws.home,
        refuses="a cluster that is rehearsed in another home",
    ),
    Check(
        name="region",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithHold,
        refuse=without_aws.region_asked,
        refuses="a cluster that is in another region than AWS would be asked in",
    ),
    Check(
        name="account",
        verbs=EVERY,
        asks=Asks.AWS,
        needs=WithHold,
        refuse=with_aws.account,
        refuses="credentials of another account than the cluster's",
        why_early="what AWS says of the machines is written down as soon as the state is read, for `clusterctl cost`; "
        "another account would say that there are none",
    ),
    Check(
        name="slot with a machine",
        verbs=(REPLACE,),
        asks=Asks.STATE,
        needs=WithState,
        refuse=without_aws.slot_has_machine,
        refuses="a slot without a machine, or slots without machines before others",
    ),
    Check(
        name="clock",
        verbs=RUNNING,
        asks=Asks.AWS,
        needs=WithState,
        refuse=with_aws.clock,
        refuses="a clock of this computer that is more than a minute off AWS's",
        why_early="by a clock that is ahead a cluster that runs would be called ended",
    ),
    Check(
        name="whole cluster",
        verbs=(EXTEND,),
        asks=Asks.STATE,
        needs=WithState,
        refuse=without_aws.cluster_is_whole,
        refuses="a cluster without nodes, of which some are missing, or that has ended",
    ),
    Check(
        name="shared project",
        verbs=(DOWN,),
        asks=Asks.STATE,
        needs=WithState,
        refuse=without_aws.shared_project,
        refuses="the cluster of another folder, where both folders name one project",
    ),
    Check(
        name="name",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.name,
        refuses="a cluster of another name than cluster.yaml says (`down`: where data is kept)",
    ),
    Check(
        name="region in the file",
        verbs=EVERY,
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.region_written,
        refuses="another region in cluster.yaml than the cluster is in (`down`: where data is kept)",
        is_told_by_plan=True,
    ),
    Check(
        name="data",
        verbs=(UP, EXTEND, DOWN),
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.data,
        refuses="a file that would end a file system, or make it anew and empty (`down`: where data is kept)",
        is_told_by_plan=True,
    ),
    Check(
        name="network",
        verbs=(UP, EXTEND, DOWN),
        asks=Asks.STATE,
        needs=WithIntent,
        refuse=without_aws.network,
        refuses="other addresses of the network than what lives in it has (`down`: where data is kept)",
        is_told_by_plan=True,
    ),
    Check(
        name="launch",
        verbs=RUNNING,
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.launch,
        refuses="another placement or capacity than living machines were launched with",
        is_told_by_plan=True,
    ),
    Check(
        name="new deadline",
        verbs=(EXTEND,),
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.deadline,
        refuses="a new end that has passed, is too near, too late, or beyond the budget",
        is_about_time=True,
    ),
    Check(
        name="plan",
        verbs=RUNNING,
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.plan,
        refuses="a plan with an error in it, a deadline that has passed, and a budget that is spent",
        is_told_by_plan=True,
        is_about_time=True,
    ),
    Check(
        name="machines stay",
        verbs=(EXTEND,),
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.machines_stay,
        refuses="a file that was changed so that machines would be replaced",
    ),
    Check(
        name="way in",
        verbs=(UP,),
        asks=Asks.STATE,
        needs=WithPlan,
        refuse=without_aws.way_in,
        refuses="private nodes where this computer lacks a program that reaches them",
    ),
    Check(
        name="namesake",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPlan,
        refuse=with_aws.namesake,
        refuses="a new cluster of a name that another one has, here or where this computer knows one",
    ),
    Check(
        name="reaped",
        verbs=RUNNING,
        asks=Asks.AWS,
        needs=WithPlan,
        refuse=with_aws.reaped,
        refuses="a cluster whose network AWS has no more",
    ),
    Check(
        name="ending",
        verbs=(EXTEND,),
        asks=Asks.AWS,
        needs=WithPlan,
        refuse=with_aws.ending,
        refuses="a cluster that its state machine is ending",
    ),
    Check(
        name="spot rights",
        verbs=(UP, REPLACE),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.spot_rights,
        refuses="spot machines that these credentials could make and not end",
    ),
    Check(
        name="spot price",
        verbs=(UP, REPLACE),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.spot_price,
        refuses="spot machines that cost more now than their maximum",
    ),
    Check(
        name="addresses",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.addresses,
        refuses="more elastic IPs than the account may have",
    ),
    Check(
        name="vCPUs",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.vcpus,
        refuses="more vCPUs on demand than the account may have",
    ),
    Check(
        name="preflight",
        verbs=(UP,),
        asks=Asks.AWS,
        needs=WithPreview,
        refuse=with_aws.preflight,
        refuses="on AWS, what `clusterctl plan --online` finds to be an error: region, image, type, quotas, "
        "reservation, subnet, buckets, rights",
    ),
)


def run_checks(verb: ChangeVerb, known: object, *, after: type[object] | None = None) -> None:
    """Runs what is now known enough for, in the table's order. Raises the error of the first one that refuses.

    `after`: what was known when checks ran before; those are not run again.
    """
    for check in CHECKS:
        is_ready = verb in check.verbs and isinstance(known, check.needs)
        if is_ready and not (after is not None and issubclass(after, check.needs)):
            check.refuse(known)


def run_checks_of_time(verb: ChangeVerb, known: WithPlan) -> None:
    """Asks once more what time alone decides: a person may have thought about the question for long."""
    for check in CHECKS:
        if check.is_about_time and verb in check.verbs:
            check.refuse(known)


def told_by_plan() -> tuple[Check[Any], ...]:
    """The checks of `up` that `clusterctl plan` runs, which ask the state alone and hold nothing."""
    return tuple(check for check in CHECKS if check.is_told_by_plan and UP in check.verbs)


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

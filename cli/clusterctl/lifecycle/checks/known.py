"""What is known when a check runs: the later the check, the more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.block_offerings import BlockOffering
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.capacity_trial import Candidate
from clusterctl.engine.boundary import Engine
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.deadline_request import DeadlineRequest
from clusterctl.lifecycle.intent import Intent


@dataclass(frozen=True, kw_only=True)
class WithFolder:
    """Which stack is to change; the cluster is not held yet."""

    stack: Stack
    home: Home


@dataclass(frozen=True, kw_only=True)
class WithEngine:
    """The cluster is held, and the engine known: where the stack's config and its state lie. Nothing was read yet."""

    engine: Engine


@dataclass(frozen=True, kw_only=True)
class WithHold:
    """The state was read just now."""

    change: Change
    state: StackState
    """An empty one where the stack holds nothing."""


@dataclass(frozen=True, kw_only=True)
class WithState:
    """The state, and what the person typed."""

    stack: Stack
    state: StackState
    shown: str
    """The stack as a person types it after a verb."""
    now: datetime
    held: Change | None
    """None: `plan` asks what an `up` would refuse, and holds nothing."""
    slot: int | None = None
    """The slot that `replace` is about."""

    @property
    def source(self) -> str:
        """What the stack's file is called in messages."""
        return self.stack.source

    @property
    def change(self) -> Change:
        """The change, for checks that need more than the state: `plan` runs none of them."""
        if self.held is None:
            raise TypeError("this check is for a cluster that is held")
        return self.held

    @property
    def clients(self) -> Clients:
        """AWS, or the rehearsed region."""
        return self.change.clients


@dataclass(frozen=True, kw_only=True)
class WithIntent(WithState):
    """What the stack's file and config ask for, too."""

    intent: Intent
    reorders_ranks: bool = False
    """`up --reorder-ranks`."""


@dataclass(frozen=True, kw_only=True)
class WithPlan(WithIntent):
    """The plan of the intent, too."""

    plan: ClusterPlan
    candidates: tuple[Candidate, ...] = ()
    """Types and zones that AWS is asked about before anything is made; the plan is of the most expensive type."""
    offering: BlockOffering | None = None
    """The capacity block that has to be bought first; the plan is made as if it were bought."""
    request: DeadlineRequest | None = None
    """Which new end `extend` is asked for."""
    deadline_before: datetime | None = None
    """The end that holds before an `extend`."""


@dataclass(frozen=True, kw_only=True)
class WithPreview(WithPlan):
    """The person was shown what will happen to the machines that run."""

    makes_machines: bool
    """In a spot cluster: whether AWS is about to be asked for a machine, also for a slot whose machine it took back."""
    anew: int = 0
    """How many machines are made anew."""

"""What a stack means before the engine runs: its file, its settings, and who the cluster already is."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from clusterctl_infra.catalog.instance import FIRST_LAYOUT, NEWEST_LAYOUT, InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.flag_size import NODES_OVER, size_in_file, without_ended_size
from clusterctl_infra.config.load import later_problems, load_cluster, login_name
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import ConfigProblem, path_of
from clusterctl_infra.config.sound_parts import Unsound, is_sound
from clusterctl_infra.config.stack import StackSettings, read_stack_settings
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.identity import Identity, stand_in_identity
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory, read_inventory
from clusterctl_infra.plan.deadline import expenses, spent_usd
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.planner import errors_of, plan
from clusterctl_infra.plan.sound_parts import problems_of_sound_parts
from clusterctl_infra.plan.ssh_networks import refused_on_aws

from clusterctl.engine.size_note import size_note
from clusterctl.engine.stack import Stack
from clusterctl.home import Home
from clusterctl.text.next_commands import stack_words
from clusterctl.text.node_set import fold_names
from clusterctl.text.quantities import count


@dataclass(frozen=True, kw_only=True)
class StackPlan:
    """A plan, and the notes that are shown with it."""

    plan: ClusterPlan
    config: ClusterConfig
    """What the plan was made from."""
    instance_type: InstanceType
    is_rehearsal: bool
    is_running: bool
    """The cluster exists; times are its own, not counted from now."""
    at_deadline_usd: float | None
    """What the cluster will have cost when it ends, over all runs; None when a price is not known."""
    overrides: Mapping[str, str]
    """What the stack's config says instead of the file."""
    ends: tuple[str, ...]
    """The nodes that run, as this computer knows them, and that the plan has no place for."""
    size_source: str
    """What gave the number of nodes."""
    size_note: str | None = None
    """The line about the size, if the file does not give it, or did not until now."""


def plan_stack(
    stack: Stack, catalog: Catalog, *, home: Home, now: datetime, rehearse: bool, ledger: Ledger | None = None
) -> StackPlan:
    """The plan that the next `up` would follow, problems included. Raises ConfigError when there can be none.

    `ledger`: what the cluster has cost; None: as the stack's config had it when the last run began.
    """
    is_rehearsal = rehearse or stack.is_rehearsal_project
    settings = read_stack_settings(config_folder(stack, home=home, rehearse=rehearse), stack.name)
    more = partial(more_problems, catalog=catalog, now=now, is_rehearsal=is_rehearsal)
    in_file = size_in_file(stack.cluster_file)
    overrides = without_ended_size(settings.overrides, settings.nodes_over, in_file=in_file)
    written = load_cluster(stack.cluster_file, overrides=overrides, more_problems=more, source=stack.source)
    config = written.narrowed(settings.chosen, settings.block)
    known = None if settings.down else _known(config.name, stack, home=home, is_rehearsal=is_rehearsal)
    identity = _identity(config, settings, known, now=now)
    ledger = settings.ledger if ledger is None else ledger
    planned = plan(
        config,
        catalog,
        identity=identity,
        ledger=ledger,
        now=now,
        slot_ranks=() if known is None else settings.slot_ranks,
        until=None if known is None else settings.until,
        adopted=settings.adopted,
    )
    instance_type = catalog.instance_type(planned.instance_type)
    assert instance_type is not None, "plan() refuses types that the catalog does not have"
    flow = expenses(planned.price, ledger, started_at=planned.started_at, now=now, nodes=len(planned.slots))
    return StackPlan(
        plan=planned if is_rehearsal else judged_for_aws(planned, config),
        config=config,
        instance_type=instance_type,
        is_rehearsal=is_rehearsal,
        is_running=known is not None,
        at_deadline_usd=None if flow is None else spent_usd(flow, planned.deadline.at),
        overrides=overrides,
        ends=() if known is None else tuple(node.name for node in known.nodes if node.slot >= len(planned.slots)),
        size_source=size_source(source=stack.source, stack_name=stack.name, overrides=overrides),
        size_note=size_note_of(stack, settings, in_file=in_file, rehearse=rehearse),
    )


def _identity(config: ClusterConfig, settings: StackSettings, known: Inventory | None, *, now: datetime) -> Identity:
    """The cluster's identity as far as this computer knows it, else a stand-in."""
    identity = stand_in_identity(
        owner=config.owner or login_name(),
        image_id=_image_id(config.image),
        zone=config.zone or settings.zone,
        region=config.region,
        now=now,
        layout=settings.layout or (NEWEST_LAYOUT if known is None and not settings.down else FIRST_LAYOUT),
    )
    return identity if known is None else as_known(identity, known)


def size_note_of(stack: Stack, settings: StackSettings, *, in_file: str | None, rehearse: bool) -> str | None:
    """The line about a size that the stack's config gives, and the file does not."""
    over = {} if settings.nodes_over is None else {NODES_OVER: settings.nodes_over}
    shown = stack_words(stack.typed or stack.directory, stack_name=stack.name, rehearse=rehearse)
    values = {**settings.overrides, **over}
    return size_note(values, in_file=in_file, source=stack.source, config=stack.config_file.name, shown=shown)


def more_problems(
    config: ClusterConfig, unsound: Unsound, *, catalog: Catalog, now: datetime, is_rehearsal: bool
) -> tuple[ConfigProblem, ...]:
    """The problems that a plan finds in the sound parts of a broken configuration."""
    found = problems_of_sound_parts(config, unsound, catalog=catalog, now=now)
    if is_rehearsal or not is_sound(("access",), unsound):
        return found
    on_aws = (
        ConfigProblem(path=path_of(problem.path), message=problem.message) for problem in refused_on_aws(config.access)
    )
    return (*found, *on_aws)


def judged_for_aws(planned: ClusterPlan, config: ClusterConfig) -> ClusterPlan:
    """The plan with the problems that matter on AWS but not in a rehearsal."""
    return dataclasses.replace(planned, problems=(*refused_on_aws(config.access), *planned.problems))


def refuse_problems(planned: ClusterPlan, stack: Stack, *, overrides: Mapping[str, str]) -> None:
    """Raises ConfigError with every error of the plan, in the words and lines of the stack's file; warnings pass."""
    errors = errors_of(planned)
    if errors:
        raise later_problems(stack.cluster_file, errors, overrides=overrides, source=stack.source)


def config_folder(stack: Stack, *, home: Home, rehearse: bool) -> Path:
    """Where the Pulumi config of this run lies: a real stack that is rehearsed has one of its own."""
    if rehearse and not stack.is_rehearsal_project:
        return home.rehearsal_dir / "config" / stack.project
    return stack.directory


def as_known(identity: Identity, inventory: Inventory) -> Identity:
    """The stand-in with all that the inventory knows; the seed stays a stand-in, a secret of the same length."""
    return dataclasses.replace(
        identity,
        cluster_id=inventory.cluster_id,
        started_at=datetime.fromisoformat(inventory.started_at),
        run=inventory.run,
        owner=inventory.owner,
        image_id=inventory.image_id,
        zone=inventory.zone,
    )


def _known(name: str, stack: Stack, *, home: Home, is_rehearsal: bool) -> Inventory | None:
    """The inventory of the cluster, if that runs and was made from this stack's folder; None if it cannot be read."""
    with contextlib.suppress(ClusterctlError, OSError, ValueError):
        inventory = read_inventory(home.inventory_file(name + (REHEARSAL_SUFFIX if is_rehearsal else "")))
        datetime.fromisoformat(inventory.started_at)
        is_of_stack = inventory.stack_dir in (None, str(stack.directory)) and inventory.stack_name == stack.name
        if is_of_stack and not inventory.run_nodes_down:
            return inventory
    return None


def _image_id(image: str) -> str | None:
    return image if image.startswith("ami-") else None


def size_source(*, source: str, stack_name: str, overrides: Mapping[str, str], is_flag: bool = False) -> str:
    """What gave the number of nodes: `--nodes`, the stack's config, or else the file, called `source`."""
    if is_flag:
        return "--nodes"
    return f"clusterctl:nodes in Pulumi.{stack_name}.yaml" if "nodes" in overrides else source


def ends_line(names: Iterable[str], *, nodes: int, source: str) -> str | None:
    """`train-[2-3]: cluster.yaml says 2 nodes`; None where no node is ended."""
    folded = fold_names(names)
    return f"{folded}: {source} says {count(nodes, 'node')}" if folded else None

"""Faults: what goes wrong in a rehearsal on purpose. One table of verbs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.nearest import did_you_mean

from clusterctl_rehearsal.machines.driver import MachineDriver, MachineError
from clusterctl_rehearsal.region.behaviour import CREDENTIALS_ENDED, Behaviour
from clusterctl_rehearsal.region.event_faults import plan_event
from clusterctl_rehearsal.region.fault_arguments import (
    OFF,
    FaultError,
    check_capacity,
    check_node_name,
    check_quota,
    parse_date,
    parse_event,
    parse_milliseconds,
    parse_named_count,
    parse_notice,
    parse_off,
    parse_rate,
    refuse_node,
)
from clusterctl_rehearsal.region.instances import HOST_FAILED, Instances
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.scheduled_events import DESCRIPTIONS
from clusterctl_rehearsal.region.settings import QUOTAS
from clusterctl_rehearsal.region.spot_faults import interrupt, rebalance
from clusterctl_rehearsal.region.types.network import INSTANCE

Check = Callable[[Sequence[str], Catalog], object]


def accept_any(args: Sequence[str], catalog: Catalog) -> None:
    """Accepts all arguments: there are none, or only the region knows whether a node has that name."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One kind of fault."""

    usage: str
    meaning: str
    do: Callable[[Faults, Sequence[str]], str]
    arguments: tuple[int, int]
    """Fewest, most."""
    check: Check = accept_any
    """Raises FaultError for arguments that can never be right."""


def known_fault(verb: str, args: Sequence[str], catalog: Catalog) -> Fault:
    """The fault of that name. Raises FaultError if there is none, or if it does not take these arguments."""
    fault = FAULTS.get(verb)
    if fault is None:
        there = f"; there are {', '.join(FAULTS)}"
        raise FaultError(f"no fault is called {verb!r}{did_you_mean(verb, FAULTS) or there}")
    fewest, most = fault.arguments
    if not fewest <= len(args) <= most:
        raise FaultError(f"{verb} wants: {verb} {fault.usage}")
    fault.check(args, catalog)
    return fault


class Faults:
    """Applies faults to machines and to the region's behaviour."""

    def __init__(
        self, *, instances: Instances, behaviour: Behaviour, catalog: Catalog, stop: Callable[[], None]
    ) -> None:
        self.instances = instances
        self.behaviour = behaviour
        self.catalog = catalog
        self.stop = stop

    def do(self, verb: str, args: Sequence[str]) -> str:
        """Does the fault; returns a sentence about what was done. Raises FaultError."""
        fault = known_fault(verb, args, self.catalog)
        try:
            return fault.do(self, args)
        except MachineError as e:
            raise FaultError(" ".join(filter(None, (str(e), e.hint)))) from e

    def node(self, name: str) -> Record:
        """The living instance of a node: by `train-2` or by instance id. Raises FaultError."""
        rows = list(self.instances.store.live(INSTANCE))
        found = [row for row in rows if name in (row.facts["node"], row.id)]
        if not found:
            refuse_node(name, self.nodes())
        return found[0]

    def nodes(self) -> list[str]:
        """The names of the nodes that are alive."""
        return [str(row.facts["node"]) for row in self.instances.store.live(INSTANCE)]

    def driver(self, record: Record) -> MachineDriver:
        return self.instances.room.driver(record.facts["machines"])


def _on_machine(
    sentence: str, act: Callable[[MachineDriver, str, str], None]
) -> Callable[[Faults, Sequence[str]], str]:
    def do(faults: Faults, args: Sequence[str]) -> str:
        record = faults.node(args[0])
        act(faults.driver(record), record.facts["network"], record.facts["node"])
        return sentence.format(node=record.facts["node"])

    return do


def _kill(faults: Faults, args: Sequence[str]) -> str:
    record = faults.node(args[0])
    faults.instances.terminate(record, HOST_FAILED)
    return f"{record.facts['node']} is dead, as after a hardware failure"


def _interrupt(faults: Faults, args: Sequence[str]) -> str:
    return interrupt(faults.instances, faults.node(args[0]), parse_notice(args, faults.catalog))


def _rebalance(faults: Faults, args: Sequence[str]) -> str:
    return rebalance(faults.instances, faults.node(args[0]))


def _event(faults: Faults, args: Sequence[str]) -> str:
    return plan_event(faults.instances, faults.node(args[0]), *parse_event(args, faults.catalog))


def _partition(faults: Faults, args: Sequence[str]) -> str:
    node, other = faults.node(args[0]), faults.node(args[1])
    if node.id == other.id:
        raise FaultError(f"partition wants two nodes, and both are {node.facts['node']}")
    if node.facts["network"] != other.facts["network"]:
        raise FaultError(
            f"{node.facts['node']} and {other.facts['node']} are of two clusters and never hear each other"
        )
    faults.driver(node).partition(node.facts["network"], node.facts["node"], other.facts["node"])
    return f"{node.facts['node']} and {other.facts['node']} do not hear each other; plug {args[0]} heals it"


def _plug(driver: MachineDriver, network: str, node: str) -> None:
    driver.plug(network, node)
    driver.heal(network)


def _slow(faults: Faults, args: Sequence[str]) -> str:
    record = faults.node(args[0])
    rate_mbit = parse_rate(args, faults.catalog)
    faults.driver(record).slow(record.facts["network"], record.facts["node"], rate_mbit)
    return f"{record.facts['node']} has {rate_mbit} Mbit/s; plug {args[0]} heals it"


def _fail_bootstrap(faults: Faults, args: Sequence[str]) -> str:
    node, message = args[0], " ".join(args[1:]) or "simulated failure"
    off = message in OFF
    faults.behaviour.set_fault_entry("fail_bootstrap", node, None if off else message)
    if off:
        return f"{node} boots as usual again"
    running = faults.nodes()
    absent = "" if node in running else f"; no {node} runs now{did_you_mean(node, running)}"
    return f"every next boot of {node} fails: {message}{absent}"


def _limit(key: str) -> Callable[[Faults, Sequence[str]], str]:
    def do(faults: Faults, args: Sequence[str]) -> str:
        name, count = parse_named_count(args)
        faults.behaviour.set_fault_entry(key, name, count)
        return f"{key} of {name}: " + ("as the settings say" if count is None else str(count))

    return do


def _latency(faults: Faults, args: Sequence[str]) -> str:
    latency_ms = parse_milliseconds(args, faults.catalog)
    faults.behaviour.set_fault("latency_ms", latency_ms)
    return "latency as the settings say" if latency_ms is None else f"every answer takes {latency_ms} ms longer"


def _new_images(faults: Faults, args: Sequence[str]) -> str:
    dated = parse_date(args, faults.catalog)
    faults.behaviour.set_fault("images_dated", dated)
    return "images as the settings say" if dated is None else f"newer images came out: {dated}"


def _expire_credentials(faults: Faults, args: Sequence[str]) -> str:
    off = parse_off(args, faults.catalog)
    faults.behaviour.set_fault(CREDENTIALS_ENDED, None if off else True)
    return "your credentials are valid again" if off else "your credentials have expired: AWS refuses what you ask"


def _stop(faults: Faults, args: Sequence[str]) -> str:
    faults.stop()
    return "the region's server stops; machines live on, and the next command starts it again"


FAULTS = {
    "kill": Fault(usage="NODE", meaning="the machine dies at once", do=_kill, arguments=(1, 1)),
    "freeze": Fault(
        usage="NODE",
        meaning="its processes stop; its connections stay open",
        do=_on_machine("{node} stands still", lambda driver, network, node: driver.freeze(network, node)),
        arguments=(1, 1),
    ),
    "thaw": Fault(
        usage="NODE",
        meaning="it goes on",
        do=_on_machine("{node} goes on", lambda driver, network, node: driver.thaw(network, node)),
        arguments=(1, 1),
    ),
    "unplug": Fault(
        usage="NODE",
        meaning="off the network",
        do=_on_machine("{node} is off the network", lambda driver, network, node: driver.unplug(network, node)),
        arguments=(1, 1),
    ),
    "plug": Fault(
        usage="NODE",
        meaning="on the network again, partitions and slow links of its cluster healed",
        do=_on_machine("{node} is on the network", _plug),
        arguments=(1, 1),
    ),
    "partition": Fault(usage="NODE NODE", meaning="two do not hear each other", do=_partition, arguments=(2, 2)),
    "reboot": Fault(
        usage="NODE",
        meaning="it reboots; its disk stays",
        do=_on_machine("{node} reboots", lambda driver, network, node: driver.reboot(network, node)),
        arguments=(1, 1),
    ),
    "interrupt": Fault(
        usage="NODE [SECONDS | off]",
        meaning="AWS takes a spot machine back: a notice, and 120 s later (or sooner) its end",
        do=_interrupt,
        arguments=(1, 2),
        check=parse_notice,
    ),
    "rebalance": Fault(
        usage="NODE",
        meaning="AWS recommends leaving a spot machine, which lives on",
        do=_rebalance,
        arguments=(1, 1),
    ),
    "event": Fault(
        usage="NODE CODE [SECONDS | off]",
        meaning=f"AWS plans an event for it, in 14 days or in SECONDS: {', '.join(DESCRIPTIONS)}",
        do=_event,
        arguments=(2, 3),
        check=parse_event,
    ),
    "fail-bootstrap": Fault(
        usage="NODE [MESSAGE… | off]",
        meaning="its next boots fail",
        do=_fail_bootstrap,
        arguments=(1, 40),
        check=check_node_name,
    ),
    "slow": Fault(
        usage="NODE [MBIT_PER_S]", meaning="a slow network link", do=_slow, arguments=(1, 2), check=parse_rate
    ),
    "capacity": Fault(
        usage="TYPE=COUNT | TYPE=off",
        meaning="how many machines of the type the region has",
        do=_limit("capacity"),
        arguments=(1, 2),
        check=check_capacity,
    ),
    "quota": Fault(
        usage=f"{'|'.join(QUOTAS)}=COUNT | …=off",
        meaning="the account's limit",
        do=_limit("quotas"),
        arguments=(1, 2),
        check=check_quota,
    ),
    "latency": Fault(
        usage="MILLISECONDS | off",
        meaning="slow answers of AWS",
        do=_latency,
        arguments=(1, 1),
        check=parse_milliseconds,
    ),
    "new-images": Fault(
        usage="DATE | off", meaning="newer machine images come out", do=_new_images, arguments=(1, 1), check=parse_date
    ),
    "expire-credentials": Fault(
        usage="[off]",
        meaning="AWS refuses the person's calls; those of roles go on",
        do=_expire_credentials,
        arguments=(0, 1),
        check=parse_off,
    ),
    "stop-region": Fault(usage="", meaning="the region's server ends; machines live on", do=_stop, arguments=(0, 0)),
}

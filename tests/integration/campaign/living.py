"""Lives a cluster's life with its mishaps, and looks after each whether something bills that `reap` does not list."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tests.integration.campaign.befalling import COMMAND_S, Outcome, befall
from tests.integration.campaign.cost_check import checked_cost
from tests.integration.campaign.mishap import Mishap
from tests.integration.campaign.region_facts import billing, instances_of, machines_alive, unlisted
from tests.integration.campaign.report import Met, Report
from tests.integration.rehearsed import Rehearsed

Tell = Callable[[Mishap, str], None]


def live(cluster: Rehearsed, mishaps: Sequence[Mishap], report: Report, tell: Tell) -> None:
    """Goes through the mishaps, one after the other."""
    for number, mishap in enumerate(mishaps):
        if mishap.needs_nodes and len(machines_alive(cluster)) < 2:
            make_whole(cluster, report)
        befall_and_look(cluster, _words(cluster, mishap, number), mishap, report, tell)


def befall_and_look(cluster: Rehearsed, arguments: list[str], mishap: Mishap, report: Report, tell: Tell) -> Outcome:
    """One command with its mishap, and a look at what bills then."""
    began = time.monotonic()
    outcome = befall(cluster, arguments, mishap)
    report.met.append(
        Met(
            action=mishap.action,
            fault=mishap.fault,
            is_met=outcome.is_met,
            exit_code=outcome.exit_code,
            took_s=round(time.monotonic() - began, 1),
            output=outcome.output,
        )
    )
    lost = look(cluster, report, after=f"{mishap.action}, {mishap.fault}")
    if outcome.wrong is not None:
        report.wrong.append(f"{mishap.action}, {mishap.fault}: {outcome.wrong}")
    how = f"{'met' if outcome.is_met else 'missed'}, exit {outcome.exit_code}: {outcome.last_line[:120]}"
    tell(mishap, "leak" if lost else how)
    return outcome


def look(cluster: Rehearsed, report: Report, *, after: str) -> list[str]:
    """What bills and `reap` does not list."""
    report.looks += 1
    report.things += len(billing(cluster))
    lost = unlisted(cluster)
    report.leaks += len(lost)
    report.wrong += [f"{after}: {thing} bills and reap does not list it" for thing in lost]
    return lost


def write(cluster: Rehearsed, *, schedule_late_s: int = 0, **config: object) -> None:
    """The cluster's files, with what a person changed; AWS's schedules fire at once, so that nobody waits a minute."""
    cluster.write(machines="process", settings={"schedule_late_s": schedule_late_s}, **config)


def make_whole(cluster: Rehearsed, report: Report) -> None:
    """The next `up` puts right whatever was left, or that is wrong: a machine for each node, and no other."""
    done = cluster.run("up", str(cluster.folder), timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"an up without a mishap: exit {done.exit_code}: {done.text[-600:]}")
        return
    known = cluster.instance_ids()
    if (alive := machines_alive(cluster)) != sorted(known):
        report.wrong.append(f"after an up these live: {alive}, and the inventory has {sorted(known)}")
    if (there := instances_of(cluster)) != sorted(known.values()):
        report.wrong.append(f"after an up these instances bill: {there}, and the inventory has {known}")


def note_cost(cluster: Rehearsed, report: Report) -> None:
    """Holds what `cost` says now against the region's bill."""
    found = checked_cost(cluster)
    if found is not None:
        report.costs.append(found)
        report.wrong += found.wrong


def _words(cluster: Rehearsed, mishap: Mishap, number: int) -> list[str]:
    """The command line, after what a person would have changed in the file."""
    folder, name = str(cluster.folder), f"{cluster.name}@rehearsal"
    if mishap.action == "resize":
        write(cluster, nodes=5 - int(cluster.config["nodes"]))
    if mishap.action == "change":
        write(cluster, env={"CAMPAIGN": str(number)})
    if mishap.action == "replace":
        return ["replace", "--cluster", name, "--node", str(mishap.node), "--yes"]
    if mishap.action == "extend":
        return ["extend", "1m", "--cluster", name, "--yes"]
    if mishap.action == "job":
        return ["ssh", "--cluster", name, "--node", "all", "--", "sleep", "3"]
    return ["down" if mishap.action == "down" else "up", folder]

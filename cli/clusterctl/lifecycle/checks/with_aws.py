"""Checks that ask AWS: each raises the error that a person should see."""

from __future__ import annotations

from clusterctl.cloud.clock import refuse_wrong_clock
from clusterctl.cloud.preflight import ask_all
from clusterctl.lifecycle.change import account_of, refuse_other_account
from clusterctl.lifecycle.checks.known import WithHold, WithPreview, WithState
from clusterctl.lifecycle.ending_stage import refuse_ending
from clusterctl.lifecycle.preflight import finding_text, needs_of, refuse_findings
from clusterctl.lifecycle.spot_checks import refuse_below_spot_price, refuse_without_rights
from clusterctl.lifecycle.up_checks import (
    refuse_namesake,
    refuse_reaped,
    refuse_without_addresses,
    refuse_without_vcpus,
)

UNDONE = {
    "up": "nothing was created",
    "extend": "the deadline was not moved",
    "replace": "nothing was replaced",
}


def account(known: WithHold) -> None:
    if account_of(known.state) is not None:
        refuse_other_account(known.state, known.change.clients.account())


def clock(known: WithState) -> None:
    refuse_wrong_clock(known.clients, undone=UNDONE[known.change.verb])


def namesake(known: WithState) -> None:
    refuse_namesake(known.change, known.state)


def reaped(known: WithState) -> None:
    refuse_reaped(known.change, known.state, shown=known.shown)


def ending(known: WithState) -> None:
    refuse_ending(known.change, known.state, hint=f"clusterctl status --cluster {known.change.cluster}")


def spot_rights(known: WithPreview) -> None:
    if known.makes_machines:
        refuse_without_rights(known.clients, known.plan)


def spot_price(known: WithPreview) -> None:
    """Shows the current price, too."""
    if known.makes_machines:
        tell = known.change.output.note
        refuse_below_spot_price(known.clients, known.plan, now=known.now, source=known.source, tell=tell)


def addresses(known: WithPreview) -> None:
    refuse_without_addresses(known.change, known.plan, known.state)


def preflight(known: WithPreview) -> None:
    """Shows warnings; asks nothing if no machine is made, or in a rehearsal."""
    change, state = known.change, known.state
    machines = len(known.plan.slots) - len(state.machines) + known.anew
    if change.is_rehearsal or machines <= 0:
        return
    needs = needs_of(
        known.intent.config,
        known.intent.catalog,
        known.plan,
        machines=machines,
        own_id=state.cluster_id,
        source=known.source,
        has_to_be_bought=known.offering is not None,
    )
    findings = ask_all(known.clients, needs, now=known.now)
    for row in findings:
        if row.level in ("warning", "unknown"):
            change.output.note(f"  warning  {finding_text(row)}")
    refuse_findings(findings)


def vcpus(known: WithPreview) -> None:
    refuse_without_vcpus(known.change, known.intent, known.state, anew=known.anew)

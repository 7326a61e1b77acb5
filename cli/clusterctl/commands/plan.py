"""`clusterctl plan`: what a stack means."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.catalog.reader import Catalog, load_catalog
from clusterctl_infra.errors import CloudError, EngineError
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.names import USUAL_STACK_NAME
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.preflight_finding import LEVELS, Finding, fails, findings_json, findings_text
from clusterctl.engine.stack import Stack, read_stack
from clusterctl.engine.stack_plan import StackPlan, plan_stack, refuse_problems
from clusterctl.home import Home, home_directory
from clusterctl.hosts.folder import hosts_folder, refuse_flags
from clusterctl.lifecycle.next_up import NextUp, cluster_of, next_up_json
from clusterctl.lifecycle.plan_view import plan_json, plan_text
from clusterctl.options import StackFolder, json_option
from clusterctl.output import Output


@click.command("plan")
@click.argument("stack_dir", metavar="[STACK]", type=StackFolder(), default=".")
@click.option("--stack-name", metavar="NAME", default=USUAL_STACK_NAME, show_default=True, help="The Pulumi stack.")
@click.option("--rehearse", is_flag=True, help="As `up --rehearse` would: on the stand-in for AWS.")
@click.option("--online", is_flag=True, help="Ask AWS, too: credentials, image, quotas, capacity, network, rights.")
@click.option("--fail-on", type=click.Choice(LEVELS), default=LEVELS[0], show_default=True, help="With --online.")
@json_option
@click.pass_obj
def command(
    output: Output, stack_dir: Path, stack_name: str, rehearse: bool, online: bool, fail_on: str, as_json: bool
) -> int:
    """Shows what the stack in the folder STACK means: nodes, addresses, interfaces, price, deadline.

    Without --online AWS is not asked. All problems are reported at once, and then the exit code is 2. If the stack has
    a cluster, plan also says what `up` would do to it, from Pulumi's state: which nodes are made, ended or replaced
    and why, what waits for a replacement, and what is refused (exit code 2, too).

    --online asks AWS about everything that `up` needs, and shows each value, its limit and what helps. The exit code
    is 1 if one of them is an error, or, with --fail-on warning, a warning.

    \b
    Examples:
      clusterctl plan stacks/train
      clusterctl plan stacks/train --online --fail-on warning
    """
    hosts = hosts_folder(stack_dir)
    if hosts is not None:
        refuse_flags(but=("stack_dir", "as_json"))
        # Loaded on use: most folders are for AWS.
        plan_hosts = importlib.import_module("clusterctl.hosts.plan").plan_hosts
        plan_hosts(hosts, output, home_directory(os.environ), as_json=as_json)
        return 0
    stack = read_stack(stack_dir, name=stack_name, verb="plan", rehearse=rehearse)
    now = datetime.now(UTC).replace(microsecond=0)
    home = home_directory(os.environ)
    catalog = load_catalog(home.prices_file)
    known = cluster_of(stack, home=home, is_rehearsal=rehearse or stack.is_rehearsal_project)
    stack_plan = plan_stack(stack, catalog, home=home, now=now, rehearse=rehearse, ledger=_ledger(known, home))
    found, trouble = (None, None) if known is None else _next_up(stack, home=home, rehearse=rehearse, now=now)
    findings = _online_findings(stack, stack_plan, catalog, home=home, now=now) if online else ()
    if as_json:
        answers = findings_json(findings) if online else None
        output.json({**plan_json(stack_plan), "next_up": found and next_up_json(found), "online": answers})
    refuse_problems(stack_plan.plan, stack, overrides=stack_plan.overrides)
    if not as_json:
        output.data(plan_text(stack_plan, found, now=now))
    if findings and not as_json:
        output.data(f"\n{findings_text(findings)}")
    if trouble is not None:
        output.note(f"  what up would do to the cluster is not known: {trouble}")
    if found is not None and found.refused:
        return 2
    return int(fails(findings, fail_on=fail_on))


def _ledger(known: Inventory | None, home: Home) -> Ledger | None:
    """What the cluster has cost, as this computer wrote it down; None without a cluster, or if nothing is here."""
    if known is None:
        return None
    # Loaded on use: without a cluster there is no ledger.
    read_ledger: Callable[[Path], Ledger | None] = importlib.import_module("clusterctl.status.ledger").read_ledger
    return read_ledger(home.ledger_file(known.cluster_id))


def _next_up(stack: Stack, *, home: Home, rehearse: bool, now: datetime) -> tuple[NextUp | None, str | None]:
    """What `up` would do to the existing cluster, or why that is not known."""
    # Loaded on use: without a cluster nothing is to be compared with the state.
    next_up = importlib.import_module("clusterctl.lifecycle.next_up_by_state").next_up
    try:
        return next_up(stack, home=home, environ=os.environ, rehearse=rehearse, now=now), None
    except (EngineError, CloudError) as e:
        return None, e.message
    except OSError as e:  # a home that is full, or read-only: the plan itself needs neither
        return None, str(e)


def _online_findings(
    stack: Stack, stack_plan: StackPlan, catalog: Catalog, *, home: Home, now: datetime
) -> tuple[Finding, ...]:
    # Loaded on use: without --online AWS is not asked.
    ask = importlib.import_module("clusterctl.lifecycle.preflight").online_findings
    found: tuple[Finding, ...] = ask(stack, stack_plan, catalog, home=home, environ=os.environ, now=now)
    return found

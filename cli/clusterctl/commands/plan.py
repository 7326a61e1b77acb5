"""`clusterctl plan`: what a stack means."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError, EngineError
from clusterctl_infra.names import USUAL_STACK_NAME

from clusterctl.engine.stack import read_stack
from clusterctl.engine.stack_plan import plan_stack, refuse_problems
from clusterctl.home import home_directory
from clusterctl.lifecycle.next_up import next_up, next_up_json
from clusterctl.lifecycle.plan_view import plan_json, plan_text
from clusterctl.options import StackFolder, json_option
from clusterctl.output import Output


@click.command("plan")
@click.argument("stack_dir", metavar="[STACK]", type=StackFolder(), default=".")
@click.option("--stack-name", metavar="NAME", default=USUAL_STACK_NAME, show_default=True, help="The Pulumi stack.")
@click.option("--rehearse", is_flag=True, help="As `up --rehearse` would: on the stand-in for AWS.")
@json_option
@click.pass_obj
def command(output: Output, stack_dir: Path, stack_name: str, rehearse: bool, as_json: bool) -> int:
    """What the stack in the folder STACK means: nodes, addresses, interfaces, price, deadline.

    AWS is asked nothing, and nothing is made. All problems are told at once, and then the exit code is 2. Where the
    stack has a cluster, what `up` would do to it is told from Pulumi's state: nodes that are made, ended or made anew
    and why, what waits until a node is replaced, and what is refused, with exit code 2, too.

    \b
    Example:
      clusterctl plan stacks/train
    """
    stack = read_stack(stack_dir, name=stack_name, verb="plan", rehearse=rehearse)
    now = datetime.now(UTC).replace(microsecond=0)
    home = home_directory(os.environ)
    stack_plan = plan_stack(stack, load_catalog(home.prices_file), home=home, now=now, rehearse=rehearse)
    found, trouble = None, None
    try:
        found = next_up(stack, home=home, environ=os.environ, rehearse=rehearse, now=now)
    except (EngineError, CloudError) as e:
        trouble = e.message
    except OSError as e:  # a home that is full, or read-only: the plan itself needs neither
        trouble = str(e)
    if as_json:
        output.json({**plan_json(stack_plan), "next_up": None if found is None else next_up_json(found)})
    refuse_problems(stack_plan.plan, stack, overrides=stack_plan.overrides)
    if not as_json:
        output.data(plan_text(stack_plan, found, now=now))
    if trouble is not None:
        output.note(f"  what up would do to the cluster is not known: {trouble}")
    return 2 if found is not None and found.refused else 0

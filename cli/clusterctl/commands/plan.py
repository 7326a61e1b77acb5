"""`clusterctl plan`: what a stack means."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.names import USUAL_STACK_NAME

from clusterctl.engine.stack import read_stack
from clusterctl.engine.stack_plan import plan_stack, refuse_problems
from clusterctl.home import home_directory
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

    Nothing is asked, nothing is made. All problems are told at once, and then the exit code is 2.

    \b
    Example:
      clusterctl plan stacks/train
    """
    stack = read_stack(stack_dir, name=stack_name, verb="plan", rehearse=rehearse)
    now = datetime.now(UTC).replace(microsecond=0)
    home = home_directory(os.environ)
    stack_plan = plan_stack(stack, load_catalog(home.prices_file), home=home, now=now, rehearse=rehearse)
    if as_json:
        output.json(plan_json(stack_plan))
    refuse_problems(stack_plan.plan, stack, overrides=stack_plan.overrides)
    if not as_json:
        output.data(plan_text(stack_plan, now=now))
    return 0

"""docs/checks.md, made from the table."""

from __future__ import annotations

from clusterctl.lifecycle.checks.table import CHECKS, Asks, Check, known_words

HEAD = """\
# Checks before a change

This page is generated from the table of checks (`cli/clusterctl/lifecycle/checks/table.py`) by `scripts/docs`.

`up`, `extend`, `replace` and `down` run these checks before they change anything. The checks of a verb run in this
order, and the first that applies ends the command. What is known on this computer is asked first, then the
state, then AWS. The column *after* says what the verb has done by then: later checks need more. A check *about
time* runs once more after a person has agreed, as time alone may have changed its answer.

| check | verbs | asks | after | refused when |
|---|---|---|---|---|
"""
ELSEWHERE = """
## What is refused later

Three answers come only while the change is prepared, so they are not rows of the table:

- **jobs**: nodes that the change would end or make anew run a job (`up`, `replace`). The nodes are asked once they are
  known; `--force` ends the jobs.
- **a network that exists**: somebody else has taken a slot's address, or the subnet has no range left (`up`). AWS is
  asked when the network is looked up.
- **a capacity block**: another computer buys one for this cluster, or has bought one (`up`).
"""
MEANING = """
## Why AWS is asked early

"""


def checks_page() -> str:
    """The page's text: a row for each check, and why some ask AWS before cheaper ones."""
    early = "\n".join(f"- **{check.name}**: {check.why_early}." for check in CHECKS if check.why_early is not None)
    return HEAD + "\n".join(_row(check) for check in CHECKS) + "\n" + ELSEWHERE + MEANING + early + "\n"


def _row(check: Check[object]) -> str:
    verbs = ", ".join(f"`{verb}`" for verb in check.verbs)
    more = " *(about time)*" if check.is_about_time else ""
    in_plan = " `plan` shows it, too." if check.is_run_by_plan else ""
    asks = f"**{check.asks.value}**" if check.asks is Asks.AWS else check.asks.value
    return f"| {check.name}{more} | {verbs} | {asks} | {known_words(check)} | {check.refused_when}.{in_plan} |"

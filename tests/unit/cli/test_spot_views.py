"""What a plan and the question about the price say of spot machines: every sum is the maximum."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.engine.stack import read_stack
from clusterctl.engine.stack_plan import StackPlan, plan_stack
from clusterctl.home import Home
from clusterctl.lifecycle.plan_view import plan_json, plan_text
from clusterctl.lifecycle.up_words import headline, price_question
from clusterctl_infra.catalog.reader import load_catalog

from tests.unit.infra.plan.plan_cases import BORN, a_plan

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CLUSTER = """\
name: train
region: us-west-2
nodes: 4
instance_type: p5.48xlarge
capacity: {capacity}
access: {{mode: public, ssh_from: [203.0.113.7/32]}}
caps: {caps}
"""


def planned(folder: Path, *, capacity: str = "spot", caps: str = "{}") -> StackPlan:
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (folder / "cluster.yaml").write_text(CLUSTER.format(capacity=capacity, caps=caps))
    home = Home(path=folder / "home")
    return plan_stack(read_stack(folder), load_catalog(), home=home, now=NOW, rehearse=False)


def test_a_plan_shows_the_maximum_and_the_dated_spot_price(tmp_path: Path) -> None:
    text = plan_text(planned(tmp_path / "stack", caps="{price_usd_per_hour: 20}"), now=NOW)
    assert text.startswith("train · us-west-2 · 4 × spot p5.48xlarge · 32 × H100 80GB\n")
    assert "  per hour     at most 4 × $20.00 + disks $0.09 + addresses $0.02 = $80.11   cap 4 × $20.00" in text
    prices = "at most $20.00 a node (caps.price_usd_per_hour); about $12.69 on 2026-01, in the cheapest zone"
    assert f"  spot         {prices}; nothing is reserved" in text
    assert "  in all       at most about $1922.58 when it ends" in text
    assert "at worst" not in text


def test_without_a_cap_the_maximum_is_the_price_on_demand_and_says_so(tmp_path: Path) -> None:
    text = plan_text(planned(tmp_path / "stack"), now=NOW)
    assert "at most $55.04 a node (the price on demand; caps.price_usd_per_hour lowers it)" in text


def test_a_plan_on_demand_says_nothing_of_spot(tmp_path: Path) -> None:
    made = planned(tmp_path / "stack", capacity="on-demand")
    text = plan_text(made, now=NOW)
    assert ("spot" in text, "at most" in text, "at worst" in text) == (False, False, True)
    assert plan_json(made)["capacity"] == "on-demand"


def test_a_program_reads_both_prices(tmp_path: Path) -> None:
    made = plan_json(planned(tmp_path / "stack", caps="{price_usd_per_hour: 20}"))
    price = json.loads(json.dumps(made["price"]))
    assert price["spot"] == {"max_usd_per_hour": 20.0, "is_capped": True, "list_usd_per_hour": 12.6935}
    assert (made["capacity"], price["node_usd_per_hour"], price["reservation_tail_usd"]) == ("spot", 20.0, 0.0)


def test_the_question_names_the_most_and_no_reservation() -> None:
    made = a_plan(capacity="spot", caps={"price_usd_per_hour": 20, "runtime": "2h"})
    asked = price_question(made, running=0, now=BORN)
    assert asked == (
        "This will run at $80.11/h at most until 14:00 UTC (2 h: $160.22 in all). Create 4 × spot p5.48xlarge?"
    )
    assert "4 × spot p5.48xlarge · 32 × H100 80GB" in headline(made, is_rehearsal=False)

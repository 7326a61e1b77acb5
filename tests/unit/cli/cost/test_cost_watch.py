"""`cost --watch`: the same look again and again, each as a program or a person reads one."""

from __future__ import annotations

import io
import json
from contextlib import suppress

from clusterctl.commands.cost import WATCH_S, show
from clusterctl.cost.view import CostView
from clusterctl.output import Output

from tests.unit.cli.cost.paid_cluster import a_view, at


def shown(*, watch: bool, as_json: bool) -> str:
    """All that it writes in the third, fourth and fifth hour, an hour to a pause, until Ctrl-C."""
    stdout, hours = io.BytesIO(), [3, 4, 5]

    def look() -> CostView:
        return a_view(now=at(hours.pop(0)))

    def pause(seconds: float) -> None:
        assert seconds == WATCH_S
        if not hours:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        show(look, Output(stdout=stdout, stderr=io.BytesIO()), watch=watch, as_json=as_json, pause=pause)
    return stdout.getvalue().decode()


def test_without_it_there_is_one_look() -> None:
    assert json.loads(shown(watch=False, as_json=True))["at"] == at(3).isoformat()


def test_a_program_gets_a_line_for_each_look() -> None:
    looks = [json.loads(line) for line in shown(watch=True, as_json=True).splitlines()]
    assert [row["at"] for row in looks] == [at(hour).isoformat() for hour in (3, 4, 5)]


def test_a_person_sees_the_sum_grow() -> None:
    sums = [line.split()[3] for line in shown(watch=True, as_json=False).splitlines() if " so far of " in line]
    assert len(set(sums)) == 3
    assert sums == sorted(sums, key=lambda text: float(text.strip("$")))

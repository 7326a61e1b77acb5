"""An `extend` whose repair takes longer than there is time: the nodes are not told an end that comes too late."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from clusterctl.changes.change import Change
from clusterctl.changes.opening import Held
from clusterctl.engine.state import StackState
from clusterctl.lifecycle import extension
from clusterctl.lifecycle.extension import ExtendRequest
from clusterctl.lifecycle.new_deadline import Wish
from clusterctl.output import Output
from clusterctl_infra.errors import CapExceeded

from tests.unit.cli.test_cost import an_inventory


def test_time_is_asked_about_again_after_a_repair_and_before_anything_is_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def note(what: str, gives: object = None) -> Any:
        def step(*args: object, **options: object) -> object:
            done.append(what)
            return gives

        return step

    def refuse(*args: object, **options: object) -> NoReturn:
        done.append("time")
        raise CapExceeded("ends in 1 m")

    stack = SimpleNamespace(directory=tmp_path)
    engine = SimpleNamespace(environment=SimpleNamespace(config_file=tmp_path / "Pulumi.dev.yaml"))
    output = Output(stdout=io.BytesIO(), stderr=io.BytesIO(), stdin=io.StringIO())
    change = SimpleNamespace(
        stack=stack,
        engine=engine,
        output=output,
        cluster="train",
        clients=None,
        tell=None,
        typed=lambda directory: "stacks/train",
        mend=note("repair", StackState()),
    )
    meant = extension._Meaning(  # what it comes to is not what is tried here
        intent=cast("Any", SimpleNamespace(changes={})),
        plan=cast("Any", None),
        move=cast("Any", SimpleNamespace(before=None)),
    )
    for name in ("refuse_state", "refuse_extension", "foretell_unknown"):
        monkeypatch.setattr(extension, name, note(name))
    monkeypatch.setattr(extension, "missing_instances", note("wait for what ends", ()))
    monkeypatch.setattr(extension, "forget_ended", lambda change, state: state)
    monkeypatch.setattr(extension, "reserved_or_not", lambda intent, living, *, stays: intent)
    monkeypatch.setattr(extension, "refuse_times", refuse)
    monkeypatch.setattr(extension, "write_config", note("written"))
    for name, gives in (("_meaning", meant), ("_ask", None), ("_move", {})):
        monkeypatch.setattr(extension._Extension, name, lambda self, *args, gives=gives: gives)
    request = ExtendRequest(inventory=an_inventory(), wish=Wish(), is_agreed=True, as_json=False)
    held = Held(change=cast("Change", change), state=StackState(), was_cut_off=False)
    with pytest.raises(CapExceeded):
        extension._Extension(request, held).run(StackState())
    assert done[-3:] == ["repair", "wait for what ends", "time"]

"""The line that runs the log reader on a node."""

from __future__ import annotations

import ast
import shlex
from importlib.resources import files
from typing import TYPE_CHECKING

from clusterctl.logs.request import LogRequest, reader_command, reader_program
from clusterctl.logs.source import Source
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.keys.login_keys import LoginKeys

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def test_sudo_is_not_given_the_readers_text_which_it_would_write_into_the_log(make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    request = LogRequest(
        inventory=inventory,
        nodes=inventory.nodes,
        sources={"system": Source()},
        since_s=None,
        grep="it's",
        is_followed=False,
        timeout_s=30.0,
        keys=LoginKeys(keys=(), described=""),
        deadlines=Deadlines.within(5.0),
    )
    *start, script = shlex.split(reader_command(request, {}))
    assert start == ["exec", "sh", "-c"]
    words = shlex.split(script)
    assert words[:2] == ["printf", "%s"]
    assert "import json" in words[2]
    assert [word for word in words[3:] if "import" in word or len(word) > 200] == []
    assert words[words.index("exec") :][:6] == ["exec", "sudo", "-n", "python3", "-I", "-"]


def test_all_that_the_reader_imports_of_ours_travels_with_it() -> None:
    module, reader = (call for call in calls_in(reader_program()) if ast.unparse(call.func) == "exec")
    assert ast.literal_eval(module.args[0]) == files("clusterctl.on_node").joinpath("log_files.py").read_text()
    assert own_imports(ast.literal_eval(module.args[0])) == set()
    assert own_imports(ast.literal_eval(reader.args[0])) == {"clusterctl.on_node.log_files"}


def calls_in(text: str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]


def own_imports(text: str) -> set[str]:
    found = [node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {module for module in found if module.startswith("clusterctl")}

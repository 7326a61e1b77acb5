"""The line that runs the log reader on a node."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from clusterctl.logs.request import LogRequest, reader_command
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

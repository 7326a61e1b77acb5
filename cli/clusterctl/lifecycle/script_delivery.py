"""Scripts that user-data has no room for: brought to a node that waits for them, over SSH."""

from __future__ import annotations

import json
import shlex
from collections.abc import Generator, Sequence

from clusterctl_bootstrap.birth import HASH_DIGITS
from clusterctl_bootstrap.cloud_config import BIRTH, SCRIPTS_FOLDER
from clusterctl_infra.config.hooks import ScriptConfig

from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.conversation import Conversation
from clusterctl.ssh.fanout.event_loop import Waiting

AWAITING = "waiting for scripts from clusterctl up"
"""The phase of a node that waits for them, as `node/boot.py` calls it."""
DELIVERY_S = 60.0
TAKER = f"""\
import hashlib, json, os, sys
size, then = int(sys.argv[1]), sys.argv[2:]
text = b""
while len(text) < size:
    text += os.read(0, size - len(text)) or sys.exit("the scripts did not come whole")
def digest(data):
    return hashlib.sha256(data).hexdigest()[:{HASH_DIGITS}]
with open("{BIRTH}") as file:
    born = json.load(file).get("scripts") or []
awaited = {{row[0]: row[3] for row in born if len(row) > 3}}
come = {{name: text.encode() for name, text in json.loads(text).items()}}
others = [name for name in awaited if digest(come.get(name, b"")) != awaited[name]]
if others and not then:
    sys.exit(", ".join(others) + " changed since this machine was made")
os.makedirs("{SCRIPTS_FOLDER}", 0o700, exist_ok=True)
os.chdir("{SCRIPTS_FOLDER}")
for name in set(awaited) - set(others):
    handle = os.open(".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o700)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o700)
        file.write(come[name])
        file.flush()
        os.fsync(handle)
    os.replace(".new", name)
if then:
    os.execvp(then[0], then)
"""
"""Reads as many bytes of JSON (name → text) as its first argument says; puts each script in place that this machine
waits for, if its hash fits.

With a command after the size, it then becomes that command, which reads the rest of the input, even if a script did
not fit. Without one it fails and names the scripts that did not fit.
"""


def script_texts(scripts: Sequence[ScriptConfig]) -> bytes:
    """The input of TAKER: all scripts, since each node knows itself which of them it lacks."""
    return json.dumps({script.name: script.content for script in scripts}).encode()


def take_line(size: int, *then: str) -> str:
    """The line that takes `size` bytes of scripts, and hands the rest of its input to the program `then`."""
    return shlex.join(["sudo", "-n", "python3", "-ISc", TAKER, str(size), *then])


def deliver_scripts(node: Conversation, texts: bytes) -> Generator[Waiting, bool, str | None]:
    """Gives the scripts to a node. Returns None when it has them, else why not. Raises NodeFailure when it was lost."""
    command = Command(line=take_line(len(texts)), timeout_s=DELIVERY_S)
    answer = yield from node.run(command, texts)
    if answer.exit_code == 0:
        return None
    lines = answer.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"the command that takes scripts ended with {answer.exit_code}"

"""Renders a workflow's template in a process of its own, within limits: a file that somebody sent may loop for ever.

Jinja's sandbox keeps a template away from files and from Python's internals, but does not limit time and memory: there
are nested loops, filters that pad, texts that double (its documentation, "Sandbox", says so; read 2026-11-26).

    python -P -m clusterctl.workflows.bounded_rendering     text and values as JSON on stdin
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any  # values of a person's file

from clusterctl.workflows.template import MOST_MEMORY_MIB, Rendered, TemplateProblems, line_of_error, render

CPU_S = 5
"""CPU time. A workflow of a thousand tasks takes a tenth of a second."""
MEMORY_BYTES = MOST_MEMORY_MIB * 1024 * 1024
WALL_S = 60.0
"""Elapsed time: longer, because the computer may be busy with other things."""
TOO_LONG = f"template: it takes more than {CPU_S} s to render"


class TookTooLong(Exception):
    """The CPU time is used up; raised inside the template's code, so that the error has the template's line."""


def bounded_render(text: str, given: Mapping[str, Any]) -> Rendered:
    """Does what `render` does, within `CPU_S`, `WALL_S` and `MEMORY_BYTES`. Raises TemplateProblems."""
    argv = [sys.executable, "-P", "-m", __name__]
    request = json.dumps({"text": text, "given": dict(given)}).encode()
    try:
        done = subprocess.run(argv, input=request, capture_output=True, timeout=WALL_S)
    except subprocess.TimeoutExpired as e:
        raise TemplateProblems([(None, TOO_LONG)]) from e
    if done.returncode:
        raise TemplateProblems([(None, _how_it_ended(done.returncode, done.stderr))])
    answer = json.loads(done.stdout)
    if answer.get("problems"):
        raise TemplateProblems((line, sentence) for line, sentence in answer["problems"])
    return Rendered(text=answer["text"], lines=tuple(answer["lines"]))


def _how_it_ended(code: int, stderr: bytes) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return TOO_LONG
    last = stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"template: rendering it ended {f'by signal {-code}' if code < 0 else f'with code {code}'}: {''.join(last)}"


def answer(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Renders what was asked for; returns `text` and `lines`, or `problems` as a list of (line, sentence)."""
    try:
        rendered = render(asked["text"], asked["given"])
    except TemplateProblems as e:
        return {"problems": e.problems}
    except TookTooLong as e:
        return {"problems": [(line_of_error(e), TOO_LONG)]}
    return {"text": rendered.text, "lines": rendered.lines}


def _end(number: int, frame: FrameType | None) -> None:
    raise TookTooLong


def main() -> None:
    """Sets the limits, reads the template from stdin, and prints the answer as JSON."""
    signal.signal(signal.SIGXCPU, _end)
    # A second later the kernel kills a process that does not return to Python's own loop, as in a regular expression.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    json.dump(answer(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()

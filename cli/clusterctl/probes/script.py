"""Several probes as one command for a node, and its output taken apart again. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any  # a probe's reading is whatever its parser gives

from clusterctl.probes.probe import Probe, ProbeTrouble, ProbeUnreadable, first_words

BEGIN, END = "@@probe", "@@end"
TIMED_OUT = 124  # coreutils timeout(1)
KILL_AFTER_S = 2

_FUNCTION = f"""probe() {{
printf '\\n{BEGIN} %s\\n' "$1"
timeout -k {KILL_AFTER_S} "$2" sh -c "$3" 2>&1
printf '\\n{END} %s\\n' $?
}}
"""
_SECTION = re.compile(rf"^{BEGIN} (\S+)\n(.*?)(?:^{END} (\d+)$|(?=^{BEGIN} )|\Z)", re.MULTILINE | re.DOTALL)


def probe_script(probes: Sequence[Probe[Any]]) -> str:
    """One line for any login shell: each probe in turn, with its own end, so that one that hangs costs only itself."""
    calls = [f"probe {probe.name} {probe.limit_s} {shlex.quote(probe.command)}" for probe in probes]
    return "exec sh -c " + shlex.quote(_FUNCTION + "\n".join(calls) + "\n")


def read_script(stdout: str, probes: Sequence[Probe[Any]]) -> Mapping[str, Any]:
    """Each probe's reading by its name; ProbeTrouble where it gave none or none that can be read."""
    sections = {match[1]: (match[2], match[3]) for match in _SECTION.finditer(stdout)}
    return {probe.name: _reading(probe, sections.get(probe.name)) for probe in probes}


def _reading(probe: Probe[Any], section: tuple[str, str | None] | None) -> Any:
    if section is None:
        return ProbeTrouble(message="not asked: the node was lost before")
    text, code = section
    if code is None or int(code) == TIMED_OUT:
        return ProbeTrouble(message=f"no answer in {probe.limit_s} s")
    try:
        return probe.parse(text)
    except ProbeUnreadable as e:
        return ProbeTrouble(message=str(e) or f"unreadable: {first_words(text)}")

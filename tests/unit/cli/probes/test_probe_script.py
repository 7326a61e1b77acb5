"""Several probes as one command, and what comes back taken apart."""

from __future__ import annotations

import shlex

import pytest
from clusterctl.probes.ask import probe_script, read_script
from clusterctl.probes.load import LOAD
from clusterctl.probes.probe import ProbeTrouble
from clusterctl.probes.sweep import PROBES, chosen_probes
from clusterctl.probes.versions import VERSIONS
from clusterctl_infra.errors import UsageError

LOADED = "0.10 0.20 0.30 1/100 42\n4\nMemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"


def test_the_script_is_one_word_for_sh_whatever_the_persons_shell_is() -> None:
    words = shlex.split(probe_script(tuple(PROBES.values())))
    assert words[:3] == ["exec", "sh", "-c"]
    assert len(words) == 4


def test_each_probe_gets_its_own_part() -> None:
    text = f"motd\n@@probe load\n{LOADED}\n@@end 0\n\n@@probe versions\nkernel 6.8\n\n@@end 0\n"
    read = read_script(text, (LOAD, VERSIONS))
    assert read["load"].memory_available_gib == 0.5
    assert read["versions"].kernel == "6.8"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not asked: the node was lost before"),
        ("@@probe load\n0.10 0.20", "no answer in 5 s"),
        ("@@probe load\n\n@@end 124\n", "no answer in 5 s"),
        ("@@probe load\nsh: 1: nproc: not found\n@@end 0\n", "load: sh: 1: nproc: not found"),
    ],
)
def test_a_probe_without_a_reading_says_why(text: str, why: str) -> None:
    assert read_script(text, (LOAD,))["load"] == ProbeTrouble(message=why)


def test_a_probe_that_hangs_leaves_the_others_their_readings() -> None:
    read = read_script(f"@@probe versions\nkern\n@@probe load\n{LOADED}\n@@end 0\n", (VERSIONS, LOAD))
    assert isinstance(read["versions"], ProbeTrouble)
    assert read["load"].cpus == 4


@pytest.mark.parametrize(
    ("names", "chosen"),
    [((), list(PROBES)), (("gpu,disk",), ["disk", "gpu"]), (("load", "disk"), ["load", "disk"])],
)
def test_probes_are_chosen_by_name_in_their_own_order(names: tuple[str, ...], chosen: list[str]) -> None:
    assert [probe.name for probe in chosen_probes(names)] == chosen


def test_a_mistyped_probe_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no probe 'dsk' \(did you mean disk\?\)"):
        chosen_probes(("dsk",))

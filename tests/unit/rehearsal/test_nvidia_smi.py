"""The simulated nvidia-smi: the real one's shapes and exit codes, marked as simulated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.gpu import nvidia_smi, simulate_gpus
from clusterctl_rehearsal.gpu.files import DATA, PROGRAM, SIMULATOR, gpu_data, machine_files

CATALOG = load_catalog()


class Machine:
    """A machine with eight H100; `run` gives the exit code and what was printed."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        kind = CATALOG.instance_type("p5.48xlarge")
        assert kind is not None
        path.write_text(json.dumps(gpu_data(kind, "i-1")))
        self._path, self._capsys = path, capsys

    def run(self, *argv: str) -> tuple[int, str]:
        code = nvidia_smi.main(list(argv), str(self._path))
        return code, self._capsys.readouterr().out

    def simulate(self, *argv: str) -> tuple[int, str]:
        code = simulate_gpus.main(list(argv), str(self._path))
        return code, self._capsys.readouterr().out


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    return Machine(tmp_path / "gpus.json", capsys)


def test_the_table_is_marked_and_as_wide_as_the_real_one(machine: Machine) -> None:
    code, text = machine.run()
    assert code == 0
    assert "SIMULATED by clusterctl rehearsal" in text
    assert text.count("NVIDIA H100 80GB HBM3") == 8
    assert {len(line) for line in text.splitlines()[1:] if line} == {91}


def test_the_list_has_a_line_per_gpu(machine: Machine) -> None:
    lines = machine.run("-L")[1].splitlines()
    assert len(lines) == 8
    assert lines[3].startswith("GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-")


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("csv", ["index, memory.total [MiB], utilization.gpu [%]", "0, 81559 MiB, 0 %"]),
        ("csv,noheader", ["0, 81559 MiB, 0 %", "1, 81559 MiB, 0 %"]),
        ("csv,noheader,nounits", ["0, 81559, 0", "1, 81559, 0"]),
    ],
)
def test_a_query_is_answered_in_the_format_that_was_asked_for(machine: Machine, form: str, lines: list[str]) -> None:
    code, text = machine.run("--query-gpu=index,memory.total,utilization.gpu", f"--format={form}")
    assert (code, text.splitlines()[:2]) == (0, lines)


def test_every_field_can_be_asked(machine: Machine) -> None:
    fields = ",".join(nvidia_smi.FIELDS)
    code, text = machine.run(f"--query-gpu={fields}", "--format=csv,noheader", "-i", "0")
    assert (code, len(text.split(", "))) == (0, len(nvidia_smi.FIELDS))


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["--foo"], 2, "ERROR: Option --foo is not recognized. Please run 'nvidia-smi -h'."),
        (["--query-gpu=index,nope", "--format=csv"], 2, 'Field "nope" is not a valid field to query.'),
        (["--query-gpu=index"], 2, '"--format=" switch is missing.'),
        (["-i", "9"], 6, "No devices were found"),
    ],
)
def test_wrong_options_end_as_with_the_real_one(machine: Machine, argv: list[str], code: int, sentence: str) -> None:
    ended, text = machine.run(*argv)
    assert ended == code
    assert text.startswith(sentence)


def test_remapped_rows_processes_and_xml(machine: Machine) -> None:
    rows = machine.run("--query-remapped-rows=gpu_uuid,remapped_rows.pending", "--format=csv,noheader")[1]
    assert rows.splitlines()[0].endswith(", No")
    assert machine.run("--query-compute-apps=pid,name", "--format=csv")[1] == "pid, name\n"
    assert machine.run("-q", "-x", "-i", "1")[1].startswith('<?xml version="1.0" ?>')
    assert "SIMULATED" in machine.run("-q")[1]
    assert "simulated" in machine.run("--version")[1]


def test_gpus_can_be_told_what_to_be_and_get_well_again(machine: Machine) -> None:
    query = ("--query-gpu=index,utilization.gpu,temperature.gpu,memory.used", "--format=csv,noheader,nounits")
    before = machine.run(*query)
    assert machine.simulate("busy")[0] == 0
    assert machine.simulate("hot", "5,6") == (0, "gpu 5, 6: simulated as hot\n")
    rows = machine.run(*query)[1].splitlines()
    assert (rows[0], rows[5]) == ("0, 97, 61, 72587", "5, 41, 93, 1")
    assert ">Active</clocks_event_reason_hw_thermal_slowdown>" in machine.run("-q", "-x", "-i", "5")[1]
    machine.simulate("link-down", "1")
    assert machine.run("nvlink", "-s")[1].count("<inactive>") == 1
    machine.simulate("lost", "3")
    assert machine.run("-L")[0] == 255
    machine.simulate("well")
    assert machine.run(*query) == before


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [(("sad",), "busy, held, hot, ecc, link-down, lost"), ((), "STATE is one of"), (("hot", "9"), "no GPU 9")],
)
def test_what_cannot_be_simulated_is_refused(machine: Machine, argv: tuple[str, ...], sentence: str) -> None:
    code, output = machine.simulate(*argv)
    assert code == 2
    assert sentence in output


def test_without_its_data_it_fails_as_without_a_driver(capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi.main([], "/nowhere") == 9
    assert "couldn't communicate with the NVIDIA driver" in capsys.readouterr().out


def test_a_machine_without_gpus_gets_none_and_one_with_them_both_files() -> None:
    plain, large = CATALOG.instance_type("t3.micro"), CATALOG.instance_type("p5.48xlarge")
    assert plain is not None
    assert large is not None
    assert machine_files(plain, "i-1") == {}
    files = machine_files(large, "i-1")
    assert set(files) == {PROGRAM, SIMULATOR, DATA}
    assert files[PROGRAM].content.startswith(b"#!/usr/bin/env python3")
    assert machine_files(large, "i-2") != files


@pytest.mark.parametrize("name", CATALOG.names())
def test_every_type_of_the_catalog_has_its_gpus(name: str) -> None:
    kind = CATALOG.instance_type(name)
    assert kind is not None
    data = gpu_data(kind, "i-1")
    assert isinstance(data["gpus"], list)
    assert len({gpu["uuid"] for gpu in data["gpus"]}) == kind.gpu_count
    assert len({gpu["bus_id"] for gpu in data["gpus"]}) == kind.gpu_count

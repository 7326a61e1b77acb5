"""job.yaml and files of variables: read strictly, with all mistakes reported at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # pip's report

import pytest
from clusterctl.jobs import variables
from clusterctl.jobs.env_file import MOST_BYTES, parse_env_file, read_env_file
from clusterctl.jobs.job_file import job_schema, parse_job_file, read_job_file
from clusterctl.on_node.job.own_python import last_of, locked
from clusterctl_infra.errors import ConfigError, UsageError

EXAMPLES = Path(__file__).parents[4] / "examples"
WHOLE = """\
command: [train.py, two words, 0.10, yes, '']
launcher: plain
node: 0-1
nproc: 4
gpus: 2
env: {EPOCHS: 010, EMPTY: }
secrets: HF_TOKEN
timeout: 12h
sudo: true
workdir: code
env_file: vars.env
"""


def test_a_job_file_says_what_the_flags_say(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(WHOLE)
    assert read_job_file(tmp_path / "job.yaml") == {
        "words": ("train.py", "two words", "0.10", "yes", ""),
        "launcher": "plain",
        "node": "0-1",
        "nproc": "4",
        "gpus": 2,
        "env": {"EPOCHS": "010", "EMPTY": ""},
        "secrets": ("HF_TOKEN",),
        "timeout_s": 43200.0,
        "is_sudo": True,
        "workdir": tmp_path / "code",
        "env_file": tmp_path / "vars.env",
    }


def test_all_that_is_wrong_is_told_at_once_by_line() -> None:
    text = "comand: [a]\nlauncher: torchrum\nnproc: many\ntimeout: 5 parsecs\nenv: {A-B: 1}\ngpus: 0\nsudo: si\n"
    with pytest.raises(ConfigError, match="8 problems, nothing was started") as raised:
        parse_job_file(text, source="job.yaml")
    assert [row.split(":")[0].strip() for row in raised.value.problems] == [
        "command",
        "line 1   comand",
        "line 2   launcher",
        "line 3   nproc",
        "line 4   timeout",
        "line 5   env",
        "line 6   gpus",
        "line 7   sudo",
    ]
    assert "did you mean command?" in raised.value.problems[1]
    assert "did you mean torchrun?" in raised.value.problems[2]


@pytest.mark.parametrize("text", ["", "[a]", "command: train.py --lr 1", "command: []", "command: [[a]]", "a: [", "&a"])
def test_what_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="nothing was started"):
        parse_job_file(text, source="job.yaml")


def test_a_command_that_is_one_line_for_a_shell_is_told_how_to_be_written() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_job_file("command: train.py --lr 1", source="job.yaml")
    (problem,) = refused.value.problems
    assert "'train.py --lr 1': no shell reads it: write a list of words" in problem


def test_the_examples_are_job_files() -> None:
    files = sorted(EXAMPLES.glob("*/*.yaml"))
    assert EXAMPLES / "all_reduce" / "job.yaml" in files
    for file in files:
        found = read_job_file(file)
        assert (file.parent / found["words"][0]).is_file(), file


def test_every_key_of_a_job_file_is_in_its_schema() -> None:
    properties = job_schema()["properties"]
    assert {"command", "requirements", "setup", "python", "env_file", "wait"} <= properties.keys()
    assert {name for name, row in properties.items() if not row.get("description") or "title" in row} == set()


def test_variables_are_read_line_by_line_and_secrets_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "vars.env"
    path.write_text(
        "# a\n\nexport MODE=\"two words\"\nTOKENIZERS= no\nHF_TOKEN='s3'\nAWS_SECRET_ACCESS_KEY=x=y\nEMPTY=\n"
    )
    found, secrets = read_env_file(path)
    assert found == {"MODE": "two words", "TOKENIZERS": "no", "EMPTY": ""}
    assert secrets == {"HF_TOKEN": "s3", "AWS_SECRET_ACCESS_KEY": "x=y"}
    assert read_env_file(None) == ({}, {})
    with pytest.raises(UsageError, match="No such file"):
        read_env_file(tmp_path / "none")


@pytest.mark.parametrize(("letter", "count"), [("x", MOST_BYTES - 1), ("é", MOST_BYTES // 2)])
def test_a_file_of_variables_that_is_too_large_is_refused_whole(tmp_path: Path, letter: str, count: int) -> None:
    path = tmp_path / "vars.env"
    path.write_text(f"A={letter * count}", encoding="utf-8")
    with pytest.raises(UsageError, match=r"vars\.env: larger than 256 KiB"):
        read_env_file(path)


def test_a_file_of_variables_may_be_as_large_as_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "vars.env"
    half = "é" * (MOST_BYTES // 4 - 2)
    path.write_text(f"A={half}\nBC={half}\n\n", encoding="utf-8")
    assert path.stat().st_size == MOST_BYTES
    assert read_env_file(path)[0] == {"A": half, "BC": half}


def test_a_variable_that_no_process_can_be_started_with_is_refused_in_each_place() -> None:
    longest = "x" * (variables.MOST_BYTES - len("AB=") - 1)
    assert parse_env_file(f"AB={longest}") == ({"AB": longest}, [])
    longer = longest + "x"
    reason = "Linux has room for 128 KiB in a variable"
    assert parse_env_file(f"AB={longer}") == ({}, [f"  line 1   AB: {reason}"])
    with pytest.raises(ConfigError) as refused:
        parse_job_file(f"command: [a]\nenv: {{AB: {longer}}}\n", source="job.yaml")
    assert f"AB: {reason}" in refused.value.problems[0]
    assert longer not in refused.value.problems[0]
    with pytest.raises(ConfigError) as refused:
        parse_job_file('command: [a]\nenv: {AB: "a\\0b"}\n', source="job.yaml")
    assert "AB: a value has no NUL character" in refused.value.problems[0]


def test_lines_that_are_no_variables_are_told_without_what_may_be_secret(tmp_path: Path) -> None:
    _, problems = parse_env_file("A=1\nsecret\n1B=secret\nsecret/s==\n")
    assert [" ".join(row.split()) for row in problems] == [f"line {number} write NAME=VALUE" for number in (2, 3, 4)]
    assert parse_env_file("A=secret\0secret") == ({}, ["  line 1   A: a value has no NUL character"])
    (tmp_path / "vars.env").write_text("1B=secret\n")
    with pytest.raises(ConfigError, match="nothing was started"):
        read_env_file(tmp_path / "vars.env")


def package(name: str, *, sha256: str | None = None, url: str | None = None) -> dict[str, Any]:
    hashes = {"hashes": {"sha256": sha256}} if sha256 else {}
    return {
        "metadata": {"name": name, "version": "1.0"},
        "download_info": {"url": url or "https://x", "archive_info": hashes},
        "is_direct": url is not None,
    }


def test_a_lock_has_each_package_by_version_and_hash_and_the_file_s_own_options() -> None:
    report = {"install": [package("b", sha256="2"), package("a", sha256="1")]}
    text = "--index-url https://mine\n-r other.txt\n--requirement more.txt\nb>=1\n"
    assert locked(text, report) == "--index-url https://mine\na==1.0 --hash=sha256:1\nb==1.0 --hash=sha256:2\n"


def test_a_lock_where_one_package_has_no_hash_has_none() -> None:
    report = {"install": [package("b", sha256="2"), package("a", url="file:///w/a.whl")]}
    assert locked("b\n", report) == "a @ file:///w/a.whl\nb==1.0\n"


def test_errors_are_what_is_told_of_a_program_that_failed() -> None:
    assert last_of("noise\nERROR: no such thing\nnotice\n") == "ERROR: no such thing"
    assert last_of("a\nb\n\n") == "a / b"
    assert last_of("") == "it said nothing"

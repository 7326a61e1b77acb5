"""job.yaml: a job as a file, with the same fields as the flags of `clusterctl run`.

Loaded on use: pydantic takes 50 ms of a start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from clusterctl_infra.config.document import read_document
from clusterctl_infra.config.problems import ConfigProblem, problems_of
from clusterctl_infra.config.quantities import parse_seconds
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.nearest import did_you_mean
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from clusterctl.jobs.spec import AUTO, NAME
from clusterctl.jobs.variables import VARIABLE, value_problem
from clusterctl.on_node.job.launchers import LAUNCHERS
from clusterctl.text.quantities import count

HINT = "clusterctl run --help"
MOST_BYTES = 256 * 1024
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FLAG_OF = {
    "wait": "wait_s",
    "timeout": "timeout_s",
    "grace": "grace_s",
    "sudo": "is_sudo",
    "include": "including",
    "command": "words",
}
"""Key of job.yaml → field of `RunFlags`, where their names differ."""
IN_THE_FOLDER = ("workdir", "env_file")
"""Paths that are relative to the folder of job.yaml."""


def _text(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise ValueError("write one text")
    return value


def _time(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("write a time such as 30m")
    return parse_seconds(value)


def _name(value: object) -> object:
    if not isinstance(value, str) or NAME.fullmatch(value) is None:
        raise ValueError("write lower-case letters, digits and dashes, at most 40")
    return value


def _nproc(value: object) -> object:
    if value != AUTO and not (
        isinstance(value, str) and value.isascii() and value.isdigit() and 0 < int(value) < 10_000
    ):
        raise ValueError("write how many processes a node runs, or auto")
    return value


def _launcher(value: object) -> object:
    if value not in LAUNCHERS:
        near = did_you_mean(value, LAUNCHERS) if isinstance(value, str) else ""
        raise ValueError("no launcher" + (near or f"; there is {', '.join(LAUNCHERS)}"))
    return value


def _gpus(value: object) -> object:
    if not (isinstance(value, str) and value.isascii() and value.isdigit() and 0 < int(value) <= 1024):
        raise ValueError("write how many GPUs of each node, 1 to 1024")
    return int(value)


def _yes_or_no(value: object) -> object:
    if value not in ("true", "false"):
        raise ValueError("write true or false")
    return value == "true"


def _words(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("no shell reads it: write a list of words, such as [train.py, --lr, 0.1]")
    if not isinstance(value, list) or not value or not all(isinstance(word, str | None) for word in value):
        raise ValueError("write a list of words, such as [train.py, --lr, 0.1]")
    return tuple("" if word is None else word for word in value)


def _names(value: object) -> object:
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, str) and row for row in rows):
        raise ValueError("write a list of names")
    return tuple(rows)


def _variables(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("write NAME: VALUE lines")
    wrong = [name for name, text in value.items() if VARIABLE.fullmatch(name) is None or isinstance(text, dict | list)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is no variable with one value")
    for name, text in value.items():
        problem = value_problem(name, str(text))
        if problem is not None:
            raise ValueError(f"{name}: {problem}")
    return {name: "" if text is None else text for name, text in value.items()}


Text = Annotated[str, BeforeValidator(_text)]
Time = Annotated[float, BeforeValidator(_time), WithJsonSchema({"type": "string", "examples": ["30s", "12h"]})]
Names = Annotated[
    tuple[str, ...], BeforeValidator(_names), WithJsonSchema({"type": "array", "items": {"type": "string"}})
]


class JobFile(BaseModel):
    """A job: what `clusterctl run` starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[
        tuple[str, ...],
        BeforeValidator(_words),
        WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}),
    ] = Field(default=(), description="The program and its arguments, word by word; no shell reads them.")
    cluster: Text | None = Field(default=None, description="The cluster; else $CLUSTERCTL_CLUSTER, else the only one.")
    node: Text = Field(default="all", description="The nodes: 2, or 0,2-5, or train-2, or all.")
    launcher: (
        Annotated[str, BeforeValidator(_launcher), WithJsonSchema({"type": "string", "enum": list(LAUNCHERS)})] | None
    ) = Field(default=None, description="What starts the ranks; else chosen by the program.")
    nproc: Annotated[str, BeforeValidator(_nproc), WithJsonSchema({"type": ["integer", "string"]})] = Field(
        default=AUTO, description="Processes on each node; auto: its GPUs."
    )
    gpus: Annotated[int, BeforeValidator(_gpus)] | None = Field(
        default=None, description="This many GPUs of each node, not whole nodes."
    )
    wait: Time | None = Field(default=None, description="Wait this long for nodes that other jobs have.")
    name: Annotated[str, BeforeValidator(_name)] | None = Field(default=None, description="The job's name.")
    env: Annotated[
        dict[str, str],
        BeforeValidator(_variables),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
    ] = Field(default_factory=dict, description="Variables for the job.")
    env_file: Text | None = Field(default=None, description="A file of NAME=VALUE lines, by its path from this folder.")
    secrets: Names = Field(default=(), description="Variables where the job is started, kept out of all logs.")
    workdir: Text = Field(default=".", description="The folder to send, by its path from this file's folder.")
    include: Names = Field(default=(), description="Files to send though they look secret.")
    image: Text | None = Field(default=None, description="The image whose containers the ranks run in.")
    registry_secret: Text | None = Field(
        default=None, description="A variable where the job is started: USER:PASSWORD for the image's registry."
    )
    python: Text | None = Field(default=None, description="The interpreter on the nodes: a path, or conda:ENV.")
    requirements: Text | None = Field(
        default=None, description="requirements.txt, or pyproject.toml with uv.lock, in the folder to send."
    )
    setup: Text | None = Field(default=None, description="A shell command, run once on each node before the job.")
    timeout: Time | None = Field(default=None, description="Stop the job after this time.")
    grace: Time = Field(default=30.0, description="The time from SIGTERM to SIGKILL, when the job is stopped.")
    sudo: Annotated[bool, BeforeValidator(_yes_or_no), WithJsonSchema({"type": "boolean"})] = Field(
        default=False, description="The job may use sudo, and the key to the other nodes."
    )


def read_job_file(path: Path) -> dict[str, Any]:
    """Field of `RunFlags` → what the file says. Raises ConfigError with all problems, UsageError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}", hint=HINT) from e
    if len(data) > MOST_BYTES:
        raise UsageError(f"{path}: larger than {MOST_BYTES // 1024} KiB; this is no job file", hint=HINT)
    job = parse_job_file(data.decode("utf-8-sig", "replace"), source=str(path))
    values = {FLAG_OF.get(name, name): getattr(job, name) for name in job.model_fields_set}
    values.setdefault("workdir", ".")
    for name in IN_THE_FOLDER:
        if values.get(name) is not None:
            values[name] = path.parent / str(values[name])
    if values.get("requirements") is not None:
        values["requirements"] = Path(values["requirements"])
    return values


def parse_job_file(text: str, *, source: str) -> JobFile:
    """The job in `text`. Raises ConfigError with all problems and their lines. Pure."""
    read = read_document(text)
    problems = [ConfigProblem(path=each.path, message=each.message, line=each.line) for each in read.problems]
    job = None
    if isinstance(read.tree, dict):
        try:
            job = JobFile.model_validate(read.tree)
        except ValidationError as e:
            problems += problems_of(e, JobFile)
        if "command" not in read.tree:
            problems.append(ConfigProblem(path=("command",), message="missing: write [train.py, --lr, 0.1]"))
    elif not problems:
        problems.append(
            ConfigProblem(path=(), message="not a mapping: write key: value lines, such as command: [train.py]")
        )
    if job is None or problems:
        rows = sorted((each.line or read.line_of(each.path) or 0, each.text()) for each in problems)
        lines = [f"  line {line:<3} {words}" if line else f"  {words}" for line, words in rows]
        found = f"{source}: {count(len(lines), 'problem')}, nothing was started"
        raise ConfigError(found, problems=lines, hint="clusterctl schema --job")
    return job


def job_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) for editors."""
    schema = JobFile.model_json_schema()
    for row in schema["properties"].values():
        row.pop("title", None)
    return {**schema, "$schema": DIALECT, "title": "job.yaml", "required": ["command"]}

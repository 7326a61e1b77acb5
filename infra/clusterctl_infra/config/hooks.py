"""The `packages:` and `scripts:` parts of cluster.yaml: what is installed and run on each node, as root."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal  # Any: a script before it is checked, a JSON Schema

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from clusterctl_infra.config.fields import Text, check_text

SCRIPT_LIMIT_BYTES = 256 * 1024
"""The largest script, which is sent to every node; a larger file is data, and belongs on storage."""
LIMIT_S = 1800
"""A node ends packages or a script that takes longer; `TIMEOUT_S` of the agent's hooks.py (a test compares them)."""
TAKEN_NAMES = ("packages", "mount-clients")
"""Names of the agent's own logs."""


def check_package(value: object) -> str:
    """A package's name as apt-get and dnf take it. Raises ValueError."""
    text = check_text(value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9+._:~=-]*", text, re.ASCII):
        raise ValueError("not the name of a package, such as htop")
    return text


def check_script(value: object) -> str:
    """The path of a script whose file name can also be a log's name. Raises ValueError."""
    text = check_text(value)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", Path(text).name, re.ASCII):
        raise ValueError("not a file whose name has letters, digits, dots, - and _ only, such as setup.sh")
    if Path(text).name in TAKEN_NAMES:
        raise ValueError("clusterctl has a log with this name; rename the file")
    return text


class ScriptConfig(BaseModel):
    """A file to run as root on every node."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    run: Annotated[str, BeforeValidator(check_script)] = Field(
        description="The file, of 256 KiB at most; relative to the folder of cluster.yaml.", examples=["setup.sh"]
    )
    when: Literal["once", "boot"] = Field(
        default="once", description="`once`: at the first boot; `boot`: at every boot."
    )
    at: Literal["before-mounts", "before-ready", "after-ready"] = Field(
        default="before-ready",
        description="`before-mounts`: before storage is mounted; `before-ready`: with everything mounted, and a node "
        "is ready only when it has succeeded; `after-ready`: while the node is used already.",
    )
    _content: str = PrivateAttr(default="")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"run": value} if isinstance(value, str) else value

    @property
    def name(self) -> str:
        """The file's name without folders, which the file and its log have on a node."""
        return Path(self.run).name

    @property
    def content(self) -> str:
        """The file's text, once it has been read."""
        return self._content

    def with_content(self, text: str) -> ScriptConfig:
        """This script with its file's text."""
        copied = self.model_copy()
        copied._content = text
        return copied


def or_texts(schema: dict[str, Any]) -> None:
    """Makes a list's JSON Schema accept a text as an entry, too."""
    schema["items"] = {"anyOf": [schema["items"], {"type": "string"}]}


Package = Annotated[Text, BeforeValidator(check_package)]


def repeated_names(scripts: tuple[ScriptConfig, ...]) -> Iterator[tuple[int, str]]:
    """(index, sentence) of each script that would overwrite an earlier one of the same name."""
    seen: dict[str, str] = {}
    for index, script in enumerate(scripts):
        if script.name in seen:
            yield index, f"{script.run!r}: {seen[script.name]} has the same name; nodes keep them in one folder"
        seen.setdefault(script.name, script.run)


def hooks_before_ready(packages: Sequence[str], scripts: Sequence[ScriptConfig]) -> int:
    """How many hooks a node runs before it is ready; the packages are one."""
    return (1 if packages else 0) + sum(script.at != "after-ready" for script in scripts)


def with_texts(
    scripts: tuple[ScriptConfig, ...], folder: Path
) -> tuple[tuple[ScriptConfig, ...], list[tuple[int, str]]]:
    """The scripts whose files could be read, with their texts; (index, sentence) of each whose file could not."""
    read, problems = [], []
    for index, script in enumerate(scripts):
        try:
            read.append(read_script(script, folder))
        except ValueError as e:
            problems.append((index, f"{script.run!r}: {e}"))
    return tuple(read), problems


def read_script(script: ScriptConfig, folder: Path) -> ScriptConfig:
    """The script with its file's text. Raises ValueError with a sentence about what is wrong."""
    path = folder / script.run
    try:
        with path.open("rb") as file:
            data = file.read(SCRIPT_LIMIT_BYTES + 1)
    except FileNotFoundError as e:
        raise ValueError(f"no such file: {path}") from e
    except OSError as e:
        raise ValueError(f"cannot be read: {e.strerror or e}") from e
    return script.with_content(checked_text(data))


def checked_text(data: bytes) -> str:
    """The text of a script that a node can run. Raises ValueError."""
    if len(data) > SCRIPT_LIMIT_BYTES:
        raise ValueError(f"larger than {SCRIPT_LIMIT_BYTES // 1024} KiB; let it fetch data from storage")
    if not data.strip():
        raise ValueError("an empty file")
    if data.startswith(b"#!") and b"\r" in data.split(b"\n", 1)[0]:
        raise ValueError("its lines end in CR LF, as Windows writes them; nodes would find no such interpreter")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise ValueError(f"not UTF-8 text (byte {e.start}); have a script fetch the program instead") from e
    if "\0" in text:
        raise ValueError("holds a NUL character; it is not a script")
    return text

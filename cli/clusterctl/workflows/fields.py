"""The types of single values in a workflow's file: each check reads what a person wrote. Pure."""

from __future__ import annotations

import math
import re
import warnings
from typing import Annotated

from clusterctl_infra.config.quantities import parse_seconds
from clusterctl_infra.nearest import did_you_mean
from pydantic import BeforeValidator

from clusterctl.on_node.job.job_containers import HIDDEN_FOLDERS, SHARED_MEMORY
from clusterctl.workflows.tokens import ANYWHERE

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
DECIMAL = {"": 1, "K": 10**3, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
UNITS = {**DECIMAL, **BINARY}
SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([A-Za-z]*)")
CODES = re.compile(r"\d{1,3}(?:-\d{1,3})?(?:,\s*\d{1,3}(?:-\d{1,3})?)*")
REGEX_LENGTH = 1000
MOST_MOUNTS = 32
OWN_FOLDERS = ("/", "/tmp", "/bin", "/lib", "/lib64", "/usr", "/etc", "/sbin")
"""Places in a container where nothing may be mounted: it would hide what the image, or the task, has there."""
LINK_TO_RUN = "/var/run"
ACTIONS = ("COMPLETE", "FAIL", "RESCHEDULE", "RESTART")
LARGEST_CODE = 255
MOST_GPUS = 1024
MIB = 2**20


def check_task_name(value: object) -> str:
    """The name of a task, a group or the workflow. Raises ValueError."""
    text = _text(value)
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", text) is None:
        raise ValueError("letters, digits, - and _, a letter first, at most 63")
    return text


def check_flag(value: object) -> bool:
    """True or false. Raises ValueError."""
    text = _text(value)
    if text.lower() not in ("true", "false"):
        raise ValueError("write true or false")
    return text.lower() == "true"


def check_gpus(value: object) -> int:
    """A whole number of GPUs. Raises ValueError."""
    text = _text(value)
    if re.fullmatch(r"\d{1,5}", text) is None or int(text) > MOST_GPUS:
        raise ValueError(f"write a whole number of GPUs, 0 to {MOST_GPUS}")
    return int(text)


def check_cpus(value: object) -> float:
    """A number of processors, not necessarily whole. Raises ValueError."""
    text = _text(value)
    if re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text) is None:
        raise ValueError("write a number of processors, such as 16")
    return float(text)


def check_size_mib(value: object) -> int:
    """A size in MiB, rounded up. Raises ValueError."""
    found = SIZE.fullmatch(_text(value).strip())
    if found is None or found[2] not in UNITS:
        near = "" if found is None else did_you_mean(found[2], [unit for unit in UNITS if unit])
        raise ValueError(f"write a size such as 30Gi{near}")
    return math.ceil(float(found[1]) * UNITS[found[2]] / MIB)


def check_time_s(value: object) -> float:
    """A time in seconds. Raises ValueError."""
    return parse_seconds(_text(value))


def check_file_path(value: object) -> str:
    """The absolute path of a file, without `..`. Raises ValueError."""
    text = _text(value)
    if not text.startswith("/") or text.endswith("/") or ".." in text.split("/"):
        raise ValueError("write the absolute path of a file, without ..")
    return text


def check_dataset_name(value: object) -> str:
    """A dataset's name, which may have tokens in it. Raises ValueError."""
    text = _text(value)
    plain = ANYWHERE.sub("x", text)
    if "/" in plain:
        raise ValueError("a bucket before the name is not built yet: datasets lie on the cluster's shared storage")
    if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}(:[A-Za-z0-9][\w.-]{0,99})?", plain, re.ASCII) is None:
        raise ValueError("letters, digits, -, _ and .; a version may follow after a colon")
    return text


def check_exit_actions(value: object) -> tuple[tuple[str, int, int], ...]:
    """(action, first exit code, last exit code) for each range. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("write an action and its exit codes, such as RESTART: 10-20,30")
    found: list[tuple[str, int, int]] = []
    for key, codes in value.items():
        action = str(key).upper()
        if action not in ACTIONS:
            raise ValueError(f"{key}: no action{did_you_mean(action, ACTIONS) or '; there are ' + ', '.join(ACTIONS)}")
        if not isinstance(codes, str) or CODES.fullmatch(codes.strip()) is None:
            raise ValueError(f"{key}: write exit codes such as 1-10,16")
        for part in codes.split(","):
            first, _, last = part.strip().partition("-")
            found.append((action, int(first), int(last or first)))
    _refuse_bad_ranges(found)
    return tuple(found)


def check_regex(value: object) -> str:
    """A regular expression of Python's. Raises ValueError."""
    text = _text(value)
    if not 0 < len(text) <= REGEX_LENGTH:
        raise ValueError(f"write a regular expression of at most {REGEX_LENGTH} characters")
    try:
        with warnings.catch_warnings():  # Python warns of `[[a]`, which may mean something else in a later version
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as e:
        raise ValueError(f"not a regular expression: {e}") from e
    return text


def check_frequency_s(value: object) -> float:
    """How long to wait between two copies, in seconds, at least one. Raises ValueError."""
    seconds = check_time_s(value)
    if seconds < 1:
        raise ValueError("write at least 1s")
    return seconds


def check_volume_mounts(value: object) -> tuple[tuple[str, str], ...]:
    """(folder of the node, its path in the container) for each mount. Raises ValueError."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("write a list of folders, as /data or /data:/in/the/container")
    if len(value) > MOST_MOUNTS:
        raise ValueError(f"{len(value)} mounts; at most {MOST_MOUNTS}")
    found: list[tuple[str, str]] = []
    for each in value:
        source, colon, target = each.partition(":")
        target = target if colon else source
        if ":" in target or not target:
            raise ValueError(f"{each!r}: write FOLDER or FOLDER:PLACE")
        for path in (source, target):
            _refuse_odd_path(path)
        if source != SHARED_MEMORY:
            _refuse_hidden(source)
        if target != source:
            _refuse_hidden(target)
        if target in OWN_FOLDERS:
            raise ValueError(f"{target}: the image, or the task, has its own")
        if target in [other for _, other in found]:
            raise ValueError(f"{target}: mounted twice")
        found.append((source, target))
    return tuple(found)


def _refuse_odd_path(path: str) -> None:
    parts = path.split("/")[1:]
    if not path.startswith("/") or not path.isprintable() or {"", ".", ".."}.intersection(parts):
        raise ValueError(f"{path!r}: write an absolute path, without .. and without a slash at its end")
    if "," in path or '"' in path:
        raise ValueError(f"{path!r}: docker and podman take no comma and no quote")


def _refuse_hidden(path: str) -> None:
    for hidden in (*HIDDEN_FOLDERS, LINK_TO_RUN):
        if f"{path}/".startswith(f"{hidden}/") or f"{hidden}/".startswith(f"{path}/"):
            raise ValueError(
                f"{path}: no task mounts {hidden}, which has keys or other people's jobs, or is the system's"
            )


def _refuse_bad_ranges(ranges: list[tuple[str, int, int]]) -> None:
    for place, (action, first, last) in enumerate(ranges):
        if not first <= last <= LARGEST_CODE:
            raise ValueError(f"{action}: {first}-{last}: exit codes go from 0 to {LARGEST_CODE}, the smaller one first")
        for other, other_first, other_last in ranges[:place]:
            if first <= other_last and other_first <= last and other != action:
                raise ValueError(f"{other} and {action} both have the exit code {max(first, other_first)}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a single value")
    return value


Regex = Annotated[str, BeforeValidator(check_regex)]
FrequencyS = Annotated[float, BeforeValidator(check_frequency_s)]
VolumeMounts = Annotated[tuple[tuple[str, str], ...], BeforeValidator(check_volume_mounts)]
TaskName = Annotated[str, BeforeValidator(check_task_name)]
Flag = Annotated[bool, BeforeValidator(check_flag)]
Gpus = Annotated[int, BeforeValidator(check_gpus)]
Cpus = Annotated[float, BeforeValidator(check_cpus)]
SizeMib = Annotated[int, BeforeValidator(check_size_mib)]
TimeS = Annotated[float, BeforeValidator(check_time_s)]
FilePath = Annotated[str, BeforeValidator(check_file_path)]
DatasetName = Annotated[str, BeforeValidator(check_dataset_name)]
ExitActions = Annotated[tuple[tuple[str, int, int], ...], BeforeValidator(check_exit_actions)]

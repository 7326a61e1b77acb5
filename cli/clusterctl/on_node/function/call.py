"""Calls the function of a job in one rank, and keeps what it returns or raises for whoever started the job."""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Mapping

FOLDER = ".clusterctl-function"
"""A folder in the job's folder, with all that is ours: beside it lie a person's own files."""
MAIN, CALL = "main.py", "call.pickle"
MOST_RESULT_BYTES = 64 * 1024 * 1024
MOST_TEXT = 64 * 1024
VALUE, RAISED, NOT_KEPT = "value", "raised", "not kept"
"""What is kept of a rank: its pickled value, the exception as text, or why the value could not be kept."""
Dumps = Callable[[Any], bytes]


def main(folder: Path) -> int:
    """The rank's exit code: 0, or 1 where the function raised."""
    import cloudpickle  # noqa: PLC0415 sent with the program, and found only beside it

    sys.path.insert(1, os.getcwd())
    target = result_path(os.environ)
    with (folder / CALL).open("rb") as stream:
        words = json.loads(stream.readline())
        if words["python"] != python_version():
            why = "pickled by Python %s, and this node has %s" % (words["python"], python_version())
            print("clusterctl: %s: %s" % (words["function"], why), file=sys.stderr)
            _keep(target, {"kind": RAISED, "type": "PythonDiffers", "message": why, "text": why}, b"")
            return 1
        try:
            function, args, kwargs = pickle.load(stream)
            value = function(*args, **kwargs)
        except Exception as e:  # noqa: BLE001 whatever a person's function raises
            text = traceback.format_exc()
            print(text, file=sys.stderr, flush=True)
            _keep(target, raised(e, text), b"")
            return 1
    _keep(target, *kept(value, cloudpickle.dumps))
    return 0


def python_version() -> str:
    """`3.11`: a pickled function can be read by the same version only."""
    return "%d.%d" % sys.version_info[:2]


def result_path(environment: Mapping[str, str]) -> Path:
    """Where this rank's result is kept."""
    attempt, local_rank = environment["CLUSTERCTL_ATTEMPT"], environment["LOCAL_RANK"]
    return Path(environment["CLUSTERCTL_JOB_DIR"]) / result_name(int(attempt), int(local_rank))


def result_name(attempt: int, local_rank: int) -> str:
    """The name of the file in `CLUSTERCTL_JOB_DIR`: a line of JSON, and the pickled value behind it."""
    return "result-%d-%d" % (attempt, local_rank)


def kept(value: Any, dumps: Dumps, most_bytes: int = MOST_RESULT_BYTES) -> tuple[dict[str, Any], bytes]:
    """What to keep for a value: a header and its pickle, which is empty where the header says why there is none."""
    try:
        content = dumps(value)
    except Exception as e:  # noqa: BLE001 an object's own __reduce__ may raise anything
        text = "the result, of type %s, cannot be pickled: %s: %s" % (type(value).__name__, type(e).__name__, e)
        return {"kind": NOT_KEPT, "text": text[-MOST_TEXT:]}, b""
    if len(content) > most_bytes:
        text = "the result has %d bytes, and at most %d are brought back: write it to storage, and return its path"
        return {"kind": NOT_KEPT, "text": text % (len(content), most_bytes)}, b""
    return {"kind": VALUE, "bytes": len(content)}, content


def raised(error: BaseException, text: str) -> dict[str, Any]:
    """What to keep of an exception, whose traceback is `text`: only text, and only the end of a long one."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 a person's own __str__
        message = ""
    return {
        "kind": RAISED,
        "type": type(error).__name__,
        "message": message[:MOST_TEXT],
        "text": text[-MOST_TEXT:],
    }


def _keep(target: Path, words: dict[str, Any], content: bytes) -> None:
    fresh = target.with_name(target.name + ".new")
    try:
        with fresh.open("wb") as stream:
            stream.write(json.dumps({**words, "python": python_version()}).encode() + b"\n")
            stream.write(content)
        os.replace(fresh, target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise

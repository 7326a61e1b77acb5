"""What goes to the nodes for a call, and what is read of what comes back."""

from __future__ import annotations

import io
import json
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from clusterctl.functions.payload import REQUIREMENTS, own_files, pickled_call, staged
from clusterctl.functions.results import remote_error, value_of
from clusterctl.on_node.function import call
from clusterctl_infra.errors import ClusterctlError, UsageError

from tests.unit.cli.file_size_limit import room_for_files_of

WHERE = "first: Node 0 (train-0) rank 0"


def written(words: dict[str, Any], content: bytes = b"") -> bytes:
    return json.dumps({"python": call.python_version(), **words}).encode() + b"\n" + content


def test_a_call_is_pickled_with_its_arguments_behind_the_version_of_python() -> None:
    stream = io.BytesIO(pickled_call(lambda a, b: a + b, (1,), {"b": 2}))
    assert json.loads(stream.readline())["python"] == call.python_version()
    function, args, kwargs = pickle.load(stream)
    assert function(*args, **kwargs) == 3


def test_what_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()

    def locked(first: object, second: object = None) -> None:
        with lock:
            pass

    with pytest.raises(UsageError, match=r"lock, which locked\(\) uses, cannot go to the nodes"):
        pickled_call(locked, (1,), {})
    with pytest.raises(UsageError, match=r"argument second of free\(\) cannot go"):
        pickled_call(free, (1,), {"second": lock})
    with pytest.raises(TypeError, match="missing a required argument"):
        pickled_call(free, (), {})


def free(first: object, second: object = None) -> None:
    """Takes anything."""


def test_what_calls_the_function_goes_along_with_it() -> None:
    with staged(None, own_files(b"call", ("--no-index", "einops")), including=()) as snapshot:
        assert (snapshot.folder / call.FOLDER / REQUIREMENTS).read_text() == "--no-index\neinops\n"
        assert f"{call.FOLDER}/{call.MAIN}" in snapshot.files
        assert (snapshot.folder / call.FOLDER / call.CALL).read_bytes() == b"call"
        assert (snapshot.folder / call.FOLDER / "cloudpickle" / "cloudpickle.py").is_file()
    assert not snapshot.folder.exists()


def test_a_result_that_has_no_room_on_the_node_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / call.CALL).write_bytes(pickled_call(lambda: 0.5, (), {}))
    monkeypatch.setenv("CLUSTERCTL_JOB_DIR", str(tmp_path))
    monkeypatch.setenv("CLUSTERCTL_ATTEMPT", "1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr("sys.path", list(sys.path))
    with room_for_files_of(8), pytest.raises(OSError, match="File too large"):
        call.main(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [call.CALL]


def test_a_value_comes_back_and_one_that_is_too_large_or_cannot_be_pickled_is_told() -> None:
    words, content = call.kept({"loss": 0.5}, cloudpickle.dumps)
    assert value_of(written(words, content), WHERE) == {"loss": 0.5}
    for value, most_bytes, message in (
        (b"x" * 100, 50, "at most 50 are"),
        (threading.Lock(), 50, "of type lock, cannot"),
    ):
        words, content = call.kept(value, cloudpickle.dumps, most_bytes)
        with pytest.raises(ClusterctlError, match=message):
            value_of(written(words, content), WHERE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "left no result"),
        (b"[1]\n", "its result is damaged"),
        (b"{" * 2_000_000, "its result is damaged"),
        (written({"kind": "value", "bytes": 3}, b"x"), "1 bytes instead of 3"),
        (written({"kind": "value", "bytes": 1}, b"x"), "cannot be unpickled here"),
        (written({"kind": "value", "bytes": 1, "python": "2.7"}, b"x"), "of Python 2.7"),
    ],
)
def test_a_result_that_is_none_is_told_with_its_rank(content: bytes, message: str) -> None:
    with pytest.raises(ClusterctlError, match=message) as e:
        value_of(content, WHERE)
    assert e.value.message.startswith(WHERE)


def test_an_exception_comes_back_as_text() -> None:
    content = written(call.raised(ValueError("wrong"), "Traceback: wrong"))
    error = remote_error(content, WHERE, node="train-0", rank=0)
    assert error is not None
    assert (error.type_name, error.node, error.rank) == ("ValueError", "train-0", 0)
    assert str(error) == f"{WHERE}: ValueError: wrong\n\nTraceback: wrong"
    assert remote_error(b"", WHERE, node="train-0", rank=0) is None

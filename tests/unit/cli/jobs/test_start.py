"""What is sent to the nodes of a job."""

from __future__ import annotations

import io
import json
import os

import pytest
from clusterctl.jobs.start import started_by, write_header


def test_a_header_is_written_into_its_place_before_the_folder() -> None:
    payload = io.BytesIO(b"{}" + b" " * 20 + b"\nfolder")
    write_header(payload, {"gpus": [4, 5]})
    payload.seek(0)
    assert json.loads(payload.readline()) == {"gpus": [4, 5]}
    assert payload.read() == b"folder"
    with pytest.raises(ValueError, match="in a place of 22"):
        write_header(payload, {"gpus": "x" * 30})


def test_who_started_a_job_is_told_also_where_a_user_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert started_by().startswith("ada@")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 9)
    assert started_by().startswith("unknown@")
    assert started_by().endswith(f" ({os.getpid()})")

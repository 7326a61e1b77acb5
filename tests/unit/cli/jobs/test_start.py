"""What is sent to the nodes of a job."""

from __future__ import annotations

import io
import json

import pytest
from clusterctl.jobs.start import write_header


def test_a_header_is_written_into_its_place_before_the_folder() -> None:
    payload = io.BytesIO(b"{}" + b" " * 20 + b"\nfolder")
    write_header(payload, {"gpus": [4, 5]})
    payload.seek(0)
    assert json.loads(payload.readline()) == {"gpus": [4, 5]}
    assert payload.read() == b"folder"
    with pytest.raises(ValueError, match="in a place of 22"):
        write_header(payload, {"gpus": "x" * 30})

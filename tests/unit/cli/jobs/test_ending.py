"""What comes here before a cluster ends never keeps it from ending."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from clusterctl.home import Home
from clusterctl.jobs.ending import keep_all

from tests.unit.cli.conftest import MakeInventory


def test_whatever_goes_wrong_with_a_jobs_output_is_told_and_no_more(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    broken: Any = {"ssh": None}
    (told,) = keep_all(dataclasses.replace(make_inventory(), **broken), Home(path=tmp_path))
    assert told.startswith("their output is not kept here: ")

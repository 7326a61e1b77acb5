"""One home for the command line, the program, our provider and the rehearsal."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.home import home_directory
from clusterctl_infra.home_path import home_path
from clusterctl_rehearsal.home import rehearsal_home


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"CLUSTERCTL_HOME": "/x/y", "HOME": "/h"}, "/x/y"),
        ({"HOME": "/h"}, "/h/.local/state/clusterctl"),
        ({"CLUSTERCTL_HOME": "", "HOME": "/h"}, "/h/.local/state/clusterctl"),
        ({"CLUSTERCTL_HOME": "here"}, Path.cwd() / "here"),
        ({"CLUSTERCTL_HOME": "~/there"}, Path.home() / "there"),
    ],
)
def test_everybody_looks_in_the_same_place(environ: dict[str, str], path: str) -> None:
    assert home_path(environ) == Path(path)
    assert home_directory(environ).path == Path(path)
    assert rehearsal_home(environ).root == Path(path) / "rehearsal"

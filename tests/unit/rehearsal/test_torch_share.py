"""torch in machines: which copy, and how their Python finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_rehearsal.region.torch_share import torch_files, torch_share


@pytest.mark.parametrize(
    ("copies", "shared", "path_file"),
    [
        ([], None, None),
        (["2.13.0-cp311"], "2.13.0-cp311", "/usr/local/lib/python3.11/dist-packages/clusterctl-torch.pth"),
        (["2.12.1-cp312", "2.13.0-cp39"], "2.13.0-cp39", "/usr/local/lib/python3.9/dist-packages/clusterctl-torch.pth"),
        ([".making-x3"], None, None),
    ],
)
def test_machines_get_the_last_copy_and_their_python_its_path(
    tmp_path: Path, copies: list[str], shared: str | None, path_file: str | None
) -> None:
    for copy in copies:
        (tmp_path / "torch" / copy).mkdir(parents=True)
    assert torch_share(tmp_path) == ({} if shared is None else {str(tmp_path / "torch" / shared): "/opt/torch"})
    files = torch_files(tmp_path)
    assert {path: file.content for path, file in files.items()} == (
        {} if path_file is None else {path_file: b"/opt/torch\n"}
    )

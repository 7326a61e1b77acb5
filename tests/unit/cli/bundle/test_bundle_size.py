"""What goes into a bundle of the files that nodes sent."""

from __future__ import annotations

from pathlib import Path

from clusterctl.bundle.request import kept_files
from clusterctl.jobs.job_state import merged
from clusterctl.jobs.kept_logs import KeptJob

from tests.unit.cli.jobs.job_specs import spec


def test_large_files_are_left_out_before_small_ones_and_that_is_said(tmp_path: Path) -> None:
    for name, size_bytes in (("node-0/output", 5000), ("node-1/output", 100), ("node-1/state.json", 20)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size_bytes))
    (tmp_path / "node-1/link").symlink_to("/etc/passwd")
    kept = KeptJob(state=merged(spec(), {}), folder=tmp_path, kept_s=0.0, states={}, whole={})
    errors: list[str] = []
    assert kept_files(kept, 1024, errors) == [tmp_path / "node-1/output", tmp_path / "node-1/state.json"]
    assert errors == [f"1 file of {kept.state.name} left out: the limit is 1 KiB; --limit SIZE raises it"]
    assert len(kept_files(kept, 10_000, errors)) == 3
    assert len(errors) == 1

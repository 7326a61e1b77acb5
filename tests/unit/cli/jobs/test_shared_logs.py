"""The output of a job that is copied to storage that its nodes share."""

from __future__ import annotations

from pathlib import Path

from clusterctl.on_node.job.layout import Layout, write_json
from clusterctl.on_node.job.shared_logs import share_logs

from tests.unit.cli.jobs.job_specs import spec


def test_output_and_how_it_went_lie_under_the_node_s_name_and_no_link_is_followed(tmp_path: Path) -> None:
    layout, shared = Layout(tmp_path), tmp_path / "fsx/first"
    attempt = layout.attempt("first", 1)
    (attempt / "ranks").mkdir(parents=True)
    layout.node_file.parent.mkdir(parents=True)
    write_json(layout.node_file, {"slot": 3})
    write_json(layout.spec("first"), spec(shared=str(shared)))
    write_json(layout.state("first"), {"state": "running"})
    (attempt / "output.000001").write_text("loss 0.1\n")
    (attempt / "secret.log").symlink_to("/etc/passwd")
    share_logs(layout, "first")
    there = {str(path.relative_to(shared / "logs")) for path in shared.rglob("*") if path.is_file()}
    assert there == {"train-3/spec.json", "train-3/attempt-1/output.000001"}, "the state is not final yet"
    assert (shared / "logs/train-3/attempt-1/output.000001").read_text() == "loss 0.1\n"

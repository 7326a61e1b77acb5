"""Which cluster a job runs on that was started here."""

from __future__ import annotations

import os
from pathlib import Path

from clusterctl.engine.jobs_here import MOST_JOBS, cluster_of_job, note_job
from clusterctl.home import Home


def home_with(tmp_path: Path, *clusters: str) -> Home:
    home = Home(path=tmp_path)
    home.inventory_dir.mkdir()
    for cluster in clusters:
        home.inventory_file(cluster).write_text("{}")
    return home


def test_a_job_stands_for_its_cluster_while_that_is_known(tmp_path: Path) -> None:
    home = home_with(tmp_path, "train@rehearsal", "lab@hosts")
    note_job("first", "train@rehearsal", home)
    note_job("gone", "other", home)
    note_job("train-2", "train@rehearsal", home)
    note_job("lab-2", "lab@hosts", home)
    assert cluster_of_job("first", home) == "train@rehearsal"
    assert cluster_of_job("gone", home) is None
    assert cluster_of_job("train-2", home) is None, "a node is called so"
    assert cluster_of_job("lab-2", home) is None, "a node is called so"
    for word in ("", ".", "..", "../inventory/train", "x" * 300, "nothing"):
        assert cluster_of_job(word, home) is None


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    home = home_with(tmp_path, "train")
    for number in range(MOST_JOBS):
        note_job(f"job{number}", "train", home)
        os.utime(home.job_clusters_dir / f"job{number}", (number, number))
    note_job("last", "train", home)
    assert cluster_of_job("job0", home) is None
    assert cluster_of_job("job1", home) == "train"
    assert cluster_of_job("last", home) == "train"
    assert len(list(home.job_clusters_dir.iterdir())) == MOST_JOBS


def test_the_output_that_is_kept_of_a_job_called_as_its_cluster_is_in_nobody_s_way(tmp_path: Path) -> None:
    home = home_with(tmp_path, "train")
    for number in range(MOST_JOBS):
        (home.jobs_dir / f"cluster{number}/first").mkdir(parents=True)
    (home.jobs_dir / "train/train").mkdir(parents=True)
    note_job("train", "train", home)
    assert cluster_of_job("train", home) == "train"

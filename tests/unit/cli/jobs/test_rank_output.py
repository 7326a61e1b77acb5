"""What a rank says is kept on its node within bounds, however much it says."""

from __future__ import annotations

import io
from pathlib import Path

from clusterctl.on_node.job.rank import LOG_BYTES, RankOutput

LINE = b"x" * 65535 + b"\n"


def test_a_ranks_log_is_bounded_and_its_last_part_is_kept_whole(tmp_path: Path) -> None:
    """An older part is let go of: a training that prints for days fills no disk."""
    log = tmp_path / "rank-0.log"
    output = RankOutput(0, log, io.BytesIO())
    for number in range(3):
        output.copy(io.BytesIO(LINE * (LOG_BYTES // len(LINE)) + b"part %d\n" % number))
    output.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rank-0.log", "rank-0.log.1"]
    assert all(file.stat().st_size <= LOG_BYTES for file in tmp_path.iterdir())
    assert log.read_bytes().endswith(b"part 2\n")


def test_a_log_that_is_there_counts_from_its_size(tmp_path: Path) -> None:
    """A rank that is started again goes on with the log of the one before."""
    log = tmp_path / "rank-0.log"
    log.write_bytes(b"x" * LOG_BYTES)
    output = RankOutput(0, log, io.BytesIO())
    output.copy(io.BytesIO(b"one more\n"))
    output.close()
    assert log.read_bytes() == b"one more\n"

"""What a rank says is kept on its node within bounds, however much it says."""

from __future__ import annotations

import io
from pathlib import Path

from clusterctl.on_node.job.output_socket import rank_output
from clusterctl.on_node.job.rank import LOG_BYTES, RankOutput

LINE = b"x" * 65535 + b"\n"


def test_output_goes_to_stdout_where_no_socket_is_named() -> None:
    stream = io.BytesIO()
    assert rank_output({}, stream) is stream


def test_a_ranks_log_is_bounded_and_its_last_part_is_kept_whole(tmp_path: Path) -> None:
    """An older part is deleted: a training that prints for days fills no disk."""
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


ASSERTED = b"""\
IndexKernel.cu:111: operator(): block: [0,0,0], thread: [0,0,0] Assertion `index < sizes[i]` failed.
Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7fec2997305d in torch/lib/libc10.so)
frame #1: <unknown function> + 0xc114 (0x7fec29cc0114 in torch/lib/libc10_cuda.so)

terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: CUDA error: \
device-side assert triggered

Exception raised from run at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2125 (most recent call first):
"""
"""The output of torch 2.11 on an H100, 2026-11-26, shortened."""


def test_a_program_s_own_frames_are_last_lines(tmp_path: Path) -> None:
    output = RankOutput(1, tmp_path / "rank-1.log", io.BytesIO())
    output.copy(io.BytesIO(b"frame #12 of the video is broken\n"))
    output.close()
    assert output.last_lines() == ["frame #12 of the video is broken"]


def test_the_last_lines_of_a_rank_are_not_its_stack_trace(tmp_path: Path) -> None:
    """The error stands before 20 frames; the log and the stream have them all."""
    stream = io.BytesIO()
    output = RankOutput(1, tmp_path / "rank-1.log", stream)
    frame = b"frame #%d: <unknown function> + 0x9cb84 (0x7fec in libc.so.6)\n"
    frames = b"".join((b"[rank1]: " if n % 2 else b"") + frame % n for n in range(20))
    output.copy(io.BytesIO(ASSERTED + frames))
    output.close()
    first, *others = output.last_lines()
    assert first.startswith("IndexKernel.cu:111")
    assert [line.split()[0] for line in others] == ["terminate", "what():"]
    assert others[-1].endswith("device-side assert triggered")
    assert (tmp_path / "rank-1.log").read_bytes() == ASSERTED + frames
    assert stream.getvalue().count(b"frame #") == 22

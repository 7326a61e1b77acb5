"""How jobs scale: a coordinator of a thousand members, ten thousand lines a second, a supervisor's CPU use."""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from clusterctl.on_node.job.coordinator import Coordinator
from clusterctl.on_node.job.layout import Layout

from bench.light_supervisors import KEY, TIMEOUT_S, spec_of
from bench.timing import CommandFailed
from bench.top import cpu_s
from bench.waiting import allow_many_connections
from bench.workspace import CLUSTERCTL, workspace

MEMBERS = 1024
MEMBERS_PER_PROCESS = 256
NODES = 4
LINES_PER_S = 10_000
OUTPUT_S = 10
IDLE_S = 10.0
PRINTS = f"""\
import time
began, printed = time.time(), 0
while printed < {LINES_PER_S // NODES * OUTPUT_S}:
    now = time.time()
    due = int((now - began) * {LINES_PER_S // NODES})
    while printed < min(due, {LINES_PER_S // NODES * OUTPUT_S}):
        print(printed, repr(time.time()), "x" * 60)
        printed += 1
    time.sleep(0.01)
"""
Row = tuple[str, ...]


def table() -> list[Row]:
    """Rows: what, the figure, its aim."""
    return [*_coordinator_rows(), *_output_rows()]


def _coordinator_rows() -> list[Row]:
    """Rows about the coordinator, which runs in its own process, as on a node."""
    argv = [sys.executable, "-m", "bench.job_scale"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as child:
        port = int(_words_after(child, "port")[0])
        try:
            started_s, finished_s = _start_and_finish_s(port)
        finally:
            child.kill()
    what = f"a coordinator with {MEMBERS:,} supervisors"
    return [
        (f"{what}: from the last one's arrival until all are told to start", f"{started_s:.2f} s", "< 2 s"),
        (f"{what}: from a cancel until all know how the job ended", f"{finished_s:.2f} s", "< 2 s"),
    ]


def _start_and_finish_s(port: int) -> tuple[float, float]:
    """Seconds from the last member's arrival to the start of all, and from a cancel until all know the end."""
    with contextlib.ExitStack() as stack:
        early = [
            stack.enter_context(_members(port, first))
            for first in range(0, MEMBERS - MEMBERS_PER_PROCESS, MEMBERS_PER_PROCESS)
        ]
        for child in early:
            _words_after(child, "ready")
        came_s = time.monotonic()
        children = [*early, stack.enter_context(_members(port, MEMBERS - MEMBERS_PER_PROCESS))]
        started_s = max(float(_words_after(child, "started")[0]) for child in children)
        cancelled_s = time.monotonic()
        print("cancel", file=children[0].stdin, flush=True)
        return started_s - came_s, max(float(_words_after(child, "finished")[0]) for child in children) - cancelled_s


@contextlib.contextmanager
def _members(port: int, first: int) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "bench.light_supervisors", *map(str, (port, MEMBERS, first, MEMBERS_PER_PROCESS))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
            child.wait(timeout=TIMEOUT_S)
        finally:
            child.kill()


def _words_after(child: subprocess.Popen[str], what: str) -> list[str]:
    """The words that the child prints after `what`; raises CommandFailed if something else comes first."""
    while child.stdout is not None:
        word, *words = child.stdout.readline().split() or [""]
        if word == what:
            return words
        if word not in ("ready", "started"):
            break
    raise CommandFailed(f"{child.args!r}: it did not print {what!r}")


def _output_rows() -> list[Row]:
    with workspace() as space:
        stack = str(space.stack("blines", nodes=NODES, machines="process"))
        space.clusterctl("up", stack)
        try:
            work = space.folder / "work"
            work.mkdir()
            (work / "speaks.py").write_text(PRINTS)
            (work / "waits.py").write_text("import time\ntime.sleep(600)\n")
            return [*_followed(space.env, work), _idle(space.env, work)]
        finally:
            space.clusterctl("down", stack)


def _followed(env: Mapping[str, str], work: Path) -> list[Row]:
    """Rows about a job with much output. Each line says when it was printed; all machines here have one clock."""
    words = ("run", "--launcher", "plain", "--workdir", str(work), "--name", "speaks", "--json", "--", "speaks.py")
    lags_s: list[float] = []
    shares: list[float] = []
    with subprocess.Popen(
        [CLUSTERCTL, *words], env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        before: dict[int, float] = {}
        began_s = 0.0
        for row in process.stdout:
            parsed = json.loads(row)
            if "line" not in parsed:
                continue
            lags_s.append(time.time() - float(parsed["line"].split()[1]))
            if not before:
                before, began_s = {pid: cpu_s(pid) for pid in supervisors("speaks")}, time.monotonic()
            elif not shares and time.monotonic() - began_s > OUTPUT_S / 2:
                shares = [(cpu_s(pid) - at_s) / (time.monotonic() - began_s) for pid, at_s in before.items()]
    wanted = LINES_PER_S * OUTPUT_S
    lag_s = statistics.quantiles(lags_s, n=100)[98]
    what = f"{LINES_PER_S:,} lines/s over {NODES} nodes for {OUTPUT_S} s"
    return [
        (f"{what}: from written to read, for 99 % of them", f"{lag_s:.2f} s (at most {max(lags_s):.2f} s)", "< 0.5 s"),
        (f"{what}: lost", f"{wanted - len(lags_s)}", "0"),
        ("a supervisor meanwhile, share of a core", f"{100 * max(shares):.1f} %", "< 5 %"),
    ]


def _idle(env: Mapping[str, str], work: Path) -> Row:
    words = ("run", "--launcher", "plain", "--workdir", str(work), "--name", "waits", "--detach", "--", "waits.py")
    subprocess.run([CLUSTERCTL, *words], env=dict(env), check=True, capture_output=True, timeout=TIMEOUT_S)
    before = {pid: cpu_s(pid) for pid in supervisors("waits")}
    time.sleep(IDLE_S)
    most = max((cpu_s(pid) - at_s) / IDLE_S for pid, at_s in before.items())
    return ("a supervisor of a job without output, share of a core", f"{100 * most:.1f} %", "< 5 %")


def supervisors(job: str) -> list[int]:
    """The process ids, here, of the job's supervisors on all machines of this computer."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b"\0")[-3:-1] == [b"supervise", job.encode()]:
                found.append(int(path.parent.name))
    return found


def main() -> None:
    """Runs a coordinator alone until it is killed; prints its port."""
    allow_many_connections()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        thread = Coordinator(Layout(Path(folder)), spec_of(port, MEMBERS), KEY).start()
        print("port", port, flush=True)
        thread.join()


if __name__ == "__main__":
    main()

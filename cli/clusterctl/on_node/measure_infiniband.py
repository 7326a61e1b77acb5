"""Runs ib_write_bw with the other node of this node's pair, link by link; prints one JSON line.

Python 3.9, standard library only; sent to the node as it stands, with its slot as an argument and the round as JSON on
stdin. Both nodes of a pair run it at the same time. The sender says over TCP when the receiver is to start its
ib_write_bw for the next link, and when that one is over; so nothing is left behind on either.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from typing import Any, Iterator

BYTES, WRITES = 1048576, 5000
"""Sent over one link: 5 GB, a tenth of a second at 400 Gb/s, and 4 s at 10 Gb/s."""
PROGRAM = ["ib_write_bw", "--report_gbits", "-F", "-s", str(BYTES), "-n", str(WRITES)]
"""-F: a processor that changes its frequency is no reason to fail (perftest(1))."""
POLL_S = 0.05
"""Between two looks whether the other side is there."""
CLOSING_S = 2.0
"""How long a program may take to end after its peer."""
MOST_TEXT = 4000
"""Bytes of a program's output, or of a line from the other node."""
TIMED_OUT = 124
"""The exit code of timeout(1)."""
ENDED = "ended"
"""What the receiver sends when its program exited with 0."""
LISTENS = "0A"
"""The state in /proc/net/tcp (Linux, include/net/tcp_states.h: TCP_LISTEN = 10)."""


def send(pair: dict[str, Any], port: int, limit_s: float, rows: list[dict[str, Any]]) -> None:
    """Adds to `rows` what ib_write_bw printed for each link, by its place in the pair's list. Raises OSError."""
    with connected(pair["address"], port, limit_s) as wire:
        for index, (device, _) in enumerate(pair["links"]):
            say(wire, str(index))
            answer = read_line(wire, limit_s + CLOSING_S)
            if answer != "ready":
                rows.append({"link": index, "text": "", "why": answer or "the other node went away"})
                continue
            code, text = run([*argv_of(device, port + 1 + index, pair["address"]), pair["address"]], limit_s)
            say(wire, "done")
            theirs = read_line(wire, limit_s + CLOSING_S)
            why = "" if code == 0 else reason(code, text) + ("; there: " + theirs if theirs not in ("", ENDED) else "")
            rows.append({"link": index, "text": text[-MOST_TEXT:], "why": why})


def receive(pair: dict[str, Any], port: int, limit_s: float) -> str:
    """Serves the pair's links until the sender hangs up; returns an empty text."""
    family = socket.AF_INET6 if ":" in pair["address"] else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((pair["address"], port))
        door.listen(1)
        door.settimeout(limit_s)
        wire, _ = door.accept()
    with wire:
        while True:
            index = read_line(wire, limit_s + CLOSING_S)
            if not index:
                return ""
            own_port = port + 1 + int(index)
            with served(argv_of(pair["links"][int(index)][1], own_port, pair["address"])) as process:
                state = ready(process, own_port, limit_s)
                say(wire, state)
                if state == "ready" and read_line(wire, limit_s + CLOSING_S) == "done":
                    say(wire, last_words(process))


def argv_of(link: str, port: int, address: str) -> list[str]:
    """The argv for the link `mlx5_0:1`; the sender adds the receiver's address.

    Without --ipv6-addr the ends meet by IPv4: linux-rdma/perftest, src/perftest_parameters.c (read 2026-11).
    """
    device, _, number = link.partition(":")
    family = ["--ipv6-addr"] if ":" in address else []
    return [*PROGRAM, "-d", device, "-i", number, "-p", str(port), *family]


def run(argv: list[str], limit_s: float) -> tuple[int, str]:
    """Exit code and output; the code is TIMED_OUT if it took too long."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s
        )
    except subprocess.TimeoutExpired as e:
        return TIMED_OUT, (e.output or b"").decode(errors="replace")
    return done.returncode, done.stdout.decode(errors="replace")


@contextlib.contextmanager
def served(argv: list[str]) -> Iterator[Any]:
    """The receiver's program, which is killed when the block ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: Any, port: int, limit_s: float) -> str:
    """`ready` as soon as the program listens; else why it does not."""
    until_s = time.monotonic() + limit_s
    while process.poll() is None:
        if listens(port):
            return "ready"
        if time.monotonic() > until_s:
            return "ib_write_bw does not listen there"
        time.sleep(POLL_S)
    return last_words(process) or "ib_write_bw ended there with %d" % process.returncode


def listens(port: int) -> bool:
    """Whether any program on this node listens on the port."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(path) as file:
            for line in file:
                words = line.split()
                if words[3] == LISTENS and words[1].endswith(":%04X" % port):
                    return True
    return False


def last_words(process: Any) -> str:
    """Waits for the receiver's program, or kills it; why it failed, ENDED if it did not."""
    try:
        process.wait(CLOSING_S)
    except subprocess.TimeoutExpired:
        process.kill()
    code = process.wait()
    return reason(code, process.stdout.read().decode(errors="replace")) if code else ENDED


def reason(code: int, text: str) -> str:
    """The last line with a letter in it; else the exit code."""
    if code == TIMED_OUT:
        return "no result in time"
    lines = [line.strip() for line in text.splitlines() if any(letter.isalpha() for letter in line)]
    return " ".join(lines[-1].split())[:200] if lines else "exit %d" % code


def connected(address: str, port: int, limit_s: float) -> socket.socket:
    """A connection to the receiver. Raises OSError without one in time."""
    until_s = time.monotonic() + limit_s
    while True:
        try:
            return socket.create_connection((address, port), max(POLL_S, until_s - time.monotonic()))
        except OSError:
            if time.monotonic() > until_s:
                raise
        time.sleep(POLL_S)


def say(wire: socket.socket, word: str) -> None:
    wire.sendall(word.replace("\n", " ").encode() + b"\n")


def read_line(wire: socket.socket, limit_s: float) -> str:
    """A line from the other node; empty if it closed the connection."""
    wire.settimeout(limit_s)
    line = b""
    while not line.endswith(b"\n") and len(line) < MOST_TEXT:
        chunk = wire.recv(1)
        if not chunk:
            break
        line += chunk
    return line.decode(errors="replace").strip()


def main(slot: int, round_: dict[str, Any]) -> dict[str, Any]:
    """What this node has measured in its pair; `trouble`: why not all links."""
    port, limit_s = round_["port"], round_["limit_s"]
    trouble, rows = "not in a pair", list[Any]()
    try:
        for pair in round_["pairs"]:
            if pair["from"] == slot:
                send(pair, port, limit_s, rows)
                trouble = ""
            elif pair["to"] == slot:
                trouble = receive(pair, port, limit_s)
    except socket.timeout:
        trouble = "the other node said nothing in time"
    except OSError as e:
        trouble = e.strerror or str(e)
    return {"trouble": trouble, "links": rows}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), json.load(sys.stdin))), flush=True)

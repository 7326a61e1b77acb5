"""Prints one JSON line per interval with a node's load: sent to the node as it stands, and run there.

Python 3.9, standard library only. It ends when writing fails because its reader has gone. One nvidia-smi runs as long
as it does, since starting one costs a tenth of a second of a core.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
import threading
import time

FIELDS = (
    "count,index,utilization.gpu,memory.used,memory.total,power.draw,power.limit,temperature.gpu,clocks.sm,"
    "clocks_throttle_reasons.active"
)
RETRY_S = 5.0


class Gpus:
    """The newest complete answer of a long-lived nvidia-smi; a thread of its own reads it."""

    def __init__(self, interval_s: float) -> None:
        self.rows: list[list[str]] = []
        self.error = ""
        self._argv = ["nvidia-smi", "--query-gpu=" + FIELDS, "--format=csv,noheader,nounits"]
        self._argv += ["-l", str(max(1, round(interval_s)))]
        self._child: subprocess.Popen[str] | None = None
        threading.Thread(target=self._read_on, daemon=True).start()

    def end(self) -> None:
        """Ends nvidia-smi."""
        if self._child is not None:
            self._child.kill()

    def _read_on(self) -> None:
        while True:
            try:
                self._read()
            except OSError:
                self.error = "no nvidia-smi"
                return
            self.rows = []
            time.sleep(RETRY_S)

    def _read(self) -> None:
        child = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._child = child
        block: list[list[str]] = []
        for line in child.stdout or ():
            words = [word.strip() for word in line.split(",")]
            if len(words) < 10 or not words[0].isdigit():
                self.error = line.strip()[:200] or self.error
                continue
            block.append(words[1:10])
            if len(block) >= int(words[0]):
                self.rows, self.error, block = block, "", []
        child.wait()


def main(interval_s: float) -> None:
    """Prints samples until nobody reads them, and ends the process."""
    gpus = Gpus(interval_s)
    try:
        while True:
            sample = {"gpus": gpus.rows, "error": gpus.error, "load": os.getloadavg()[0], "cpus": os.cpu_count()}
            sample["received_bytes"], sample["sent_bytes"] = network_bytes()
            sample["memory_kib"] = memory_kib()
            sample["at_s"] = time.time()
            print(json.dumps(sample, separators=(",", ":")), flush=True)
            time.sleep(interval_s)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        gpus.end()
        os._exit(0)


def network_bytes() -> tuple[int, int]:
    """Bytes received and sent since boot by all real interfaces and EFA devices."""
    received = sent = 0
    with open("/proc/net/dev") as file:
        for line in file:
            name, is_interface, counts = line.partition(":")
            words = counts.split()
            if is_interface and len(words) >= 9 and not name.strip().startswith(("lo", "docker", "veth", "br-")):
                received += int(words[0])
                sent += int(words[8])
    for folder in glob.glob("/sys/class/infiniband/*/ports/1/hw_counters"):
        received += count_in(folder + "/rx_bytes")
        sent += count_in(folder + "/tx_bytes")
    return received, sent


def count_in(path: str) -> int:
    """The number in a file; 0 where there is none."""
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def memory_kib() -> list[int]:
    """Total and available memory."""
    found = {}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, value = line.partition(":")
            found[name] = value.split()
    return [int(found[name][0]) for name in ("MemTotal", "MemAvailable")]


if __name__ == "__main__":
    main(float(sys.argv[1]))

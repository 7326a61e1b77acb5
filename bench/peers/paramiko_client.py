"""paramiko's SSHClient in threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko


def main(key: str, hosts: str, port: str, fan_out: str, command: str) -> None:
    lines = [line.split(" ", 1) for line in Path(hosts).read_text().splitlines()]
    known = Path(f"{hosts}.known_hosts")

    def run_on(address: str) -> str:
        with paramiko.SSHClient() as client:
            client.load_host_keys(str(known))
            client.connect(address, int(port), key_filename=key, allow_agent=False, look_for_keys=False)
            _, stdout, _ = client.exec_command(command)
            return f"{address} {stdout.read().decode()}"

    with ThreadPoolExecutor(int(fan_out)) as pool:
        for output in pool.map(run_on, [address for address, _ in lines]):
            print(output, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])

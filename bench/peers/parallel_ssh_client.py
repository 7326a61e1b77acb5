"""parallel-ssh's native client, which believes every host key."""

from __future__ import annotations

import sys
from pathlib import Path

from pssh.clients import ParallelSSHClient


def main(key: str, hosts: str, port: str, fan_out: str, command: str) -> None:
    addresses = [line.split(" ", 1)[0] for line in Path(hosts).read_text().splitlines()]
    client = ParallelSSHClient(addresses, port=int(port), pkey=key, pool_size=int(fan_out), allow_agent=False)
    for done in client.run_command(command):
        print(done.host, *done.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""asyncssh, one event loop."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh


async def main(key: str, hosts: str, port: str, fan_out: str, command: str) -> None:
    places = asyncio.Semaphore(int(fan_out))

    async def run_on(address: str, host_key: str) -> None:
        known = asyncssh.import_known_hosts(f"[{address}]:{port} {host_key}\n")
        async with (
            places,
            asyncssh.connect(address, int(port), client_keys=[key], known_hosts=known, config=None) as connection,
        ):
            done = await connection.run(command, check=True)
            print(address, done.stdout, end="")

    lines = [line.split(" ", 1) for line in Path(hosts).read_text().splitlines()]
    await asyncio.gather(*(run_on(address, host_key) for address, host_key in lines))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

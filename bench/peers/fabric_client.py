"""Fabric's ThreadingGroup, which has no limit and believes every host key."""

from __future__ import annotations

import sys
from pathlib import Path

import fabric


def main(key: str, hosts: str, port: str, fan_out: str, command: str) -> None:
    addresses = [line.split(" ", 1)[0] for line in Path(hosts).read_text().splitlines()]
    settings = {"key_filename": key, "allow_agent": False, "look_for_keys": False}
    group = fabric.ThreadingGroup(*addresses, port=int(port), connect_kwargs=settings)
    for connection, done in group.run(command, hide=True).items():
        print(connection.host, done.stdout, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])

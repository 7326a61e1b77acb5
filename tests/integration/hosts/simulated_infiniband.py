"""InfiniBand as hosts show it, simulated: the kernel's tree, `ibnetdiscover` and `ib_write_bw`, which move no data."""

from __future__ import annotations

import json
import shlex

from tests.integration.hosts.foreign import Foreign

IB_WRITE_BW = """\
#!/usr/bin/python3
import json, socket, sys, time
# Simulated: prints in perftest's form what the file beside it has for the port; the slower end's figure counts.
words, options = sys.argv[1:], {}
while words and words[0].startswith("-"):
    word = words.pop(0)
    if word not in ("--report_gbits", "-F", "--ipv6-addr"):
        options[word] = words.pop(0)
gbps = json.load(open(__file__ + ".gbps")).get(options["-d"] + ":" + options["-i"], 0)
if words:
    socket.getaddrinfo(words[0], None, socket.AF_INET6 if "--ipv6-addr" in sys.argv else socket.AF_INET)
    with socket.create_connection((words[0], int(options["-p"])), 10) as wire:
        wire.sendall(b"%f\\n" % gbps)
        gbps = float(wire.makefile().readline() or 0)
else:
    family, own = (socket.AF_INET6, "::") if "--ipv6-addr" in sys.argv else (socket.AF_INET, "0.0.0.0")
    with socket.socket(family) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((own, int(options["-p"])))
        door.listen(1)
        with door.accept()[0] as wire:
            gbps = min(gbps, float(wire.makefile().readline()))
            wire.sendall(b"%f\\n" % gbps)
if not gbps:
    print(" Failed to modify QP 26 to RTR\\n Unable to Connect the HCA's through the link")
    raise SystemExit(1)
print("-" * 87)
print("                    RDMA_Write BW Test")
print(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
print(" %-7s    %-10s       %-7.2f            %-7.2f\\t\\t   %-7.6f" % (options["-s"], options["-n"], gbps, gbps, 0.04))
print("-" * 87)
"""
"""Beside it lies a file with the figure of each port."""

IBNETDISCOVER = """\
#!/bin/sh
# Simulated: what a subnet manager would have made known. Only root may open /dev/infiniband/umad*.
[ "$(id -u)" = 0 ] || { echo "ibwarn: [7] mad_rpc_open_port: can't open UMAD port ((null):0)" >&2; exit 1; }
cat /root/simulated-fabric
"""

PLUG_IN = """\
set -e
mkdir -p /root/class; cp -a /sys/class/net /root/class/
port=/root/class/infiniband/mlx5_0/ports/1
mkdir -p $port/pkeys
echo {guid} > /root/class/infiniband/mlx5_0/node_guid
mkdir -p /root/class/infiniband/mlx5_0/device/mlx5_core
ln -s mlx5_core /root/class/infiniband/mlx5_0/device/driver
echo InfiniBand > $port/link_layer; echo '4: ACTIVE' > $port/state; echo '5: LinkUp' > $port/phys_state
echo '400 Gb/sec (4X NDR)' > $port/rate; echo 0x1a > $port/lid; echo 0x1 > $port/sm_lid; echo 0xffff > $port/pkeys/0
mount --bind /root/class /sys/class
"""
UNPLUG = """\
umount /sys/class; rm -rf /root/class /root/simulated-fabric
rm -f /usr/sbin/ibnetdiscover /usr/bin/ib_write_bw /usr/bin/ib_write_bw.gbps
"""


def plug_in(net: Foreign, number: int, guid: str) -> None:
    """The machine has an adapter with one ACTIVE port from now on."""
    as_root(net, number, PLUG_IN.format(guid=":".join(guid[place : place + 4] for place in range(0, 16, 4))))


def unplug(net: Foreign, number: int) -> None:
    """The machine is as before, whatever of this it had."""
    net.ssh(number, f"sudo sh -c {shlex.quote(UNPLUG)}")


def give(net: Foreign, number: int, path: str, text: str) -> None:
    """The machine has the file from now on, as a program where it is in a folder of programs."""
    mode = "755" if "bin/" in path else "644"
    as_root(net, number, f"printf %s {shlex.quote(text)} > {path}; chmod {mode} {path}")


def carries(net: Foreign, number: int, gbps: float) -> None:
    """The machine has perftest from now on, and its port carries so much."""
    give(net, number, "/usr/bin/ib_write_bw", IB_WRITE_BW)
    give(net, number, "/usr/bin/ib_write_bw.gbps", json.dumps({"mlx5_0:1": gbps}))


def as_root(net: Foreign, number: int, script: str) -> None:
    done = net.ssh(number, f"sudo sh -c {shlex.quote(script)}")
    assert done.returncode == 0, done.stderr

"""Sound inputs of the readers: what nodes, AWS, the engine and files say when all is well."""

from __future__ import annotations

from clusterctl_infra.names import IDENTITY_TYPE, MEMBERSHIP_TYPE, SLOT_TAG

AT = "2026-11-21T10:00:00+00:00"
REPORT = {
    "phase": "ready",
    "generation": 3,
    "since": AT,
    "error": {"phase": "network", "message": "no address", "log": ["a", "b"]},
    "checks": [{"name": "interfaces", "verdict": "ok", "detail": "4 of 4"}],
    "idle": {"at": AT, "limit_s": 1800, "since": AT, "keeps": ["train-1: 8 GPU processes"], "ends": False},
    "notice": {"kind": "interruption", "time": AT, "at": AT},
    "watch": {"idle": "no answer"},
    "membership": "0123456789abcdef",
    "deadline": AT,
}
SAMPLE = {
    "at_s": 1795255200.0,
    "gpus": [["0", "97", "70000", "81559", "650", "700", "60", "1980", "0x0"]],
    "error": "",
    "load": 3.5,
    "cpus": 192,
    "memory_kib": [2097152000, 1048576000],
    "received_bytes": 12345,
    "sent_bytes": 54321,
}
ROWS = [
    {"now": 1795255200.0},
    ["kernel", "s=1", 1795255200.0, True, "2026-11-21T10:00:00Z NVRM: Xid", "", False],
    ["/shared/*.log", "7:9", 1795255200.0, True, "step 1", "/shared/a.log", True],
    ["cloud-init", "8:26", 1795255200.0, False, "Nov 21 10:00:00 node x: y", "/var/log/cloud-init.log", False],
    {"source": "kernel", "trouble": "no journal", "missing": True, "over": True},
]
PROBED = """@@probe load
0.10 0.20 0.30 1/100 42
4
MemTotal: 1048576 kB
MemAvailable: 524288 kB

@@end 0

@@probe disk
/dev/root 101430960 20000000 81430960 20% /
@@end 0

@@probe efa
device efa_0 4: ACTIVE
rx_drops 0
@@end 0

@@probe clock
now 1000000000.5
System time     : 0.000001 seconds slow of NTP time
@@end 0

@@probe kernel
1795255200.1 node kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.
@@end 0

@@probe nvlink
GPU 0: NVIDIA H100
  Link 0: 26.562 GB/s
@@end 0

@@probe versions
kernel 6.8.0-1018-aws
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 03:22:07 UTC 2024
@@end 0

@@probe infiniband
port|mlx5_0:1|4: ACTIVE|5: LinkUp|400 Gb/sec (4X NDR)|0x1a|0x1|0xffff|/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0
@@end 0

@@probe spot
{"notice": {"kind": "interruption", "time": "2026-11-21T10:00:00Z"}}
@@end 0

@@probe gpu
<gpu id="00000000:53:00.0"><product_name>NVIDIA H100</product_name>
<fb_memory_usage><total>81559 MiB</total> </fb_memory_usage></gpu>
@@end 0
"""
LOOKED = """clock 1795255200
kernel Linux 5.15.0-1063-generic
python 3.10
sudo yes
path yes
systemd yes
room 73400320
sshd yes
ssh yes
variables yes
home ext2/ext3
environment free
address 10.0.8.10
gpus 8
ib mlx5_0:1 InfiniBand ACTIVE B83FD203000a0001
ibnetdiscover yes
place free /data
end yes
"""
NETWORK = {
    "slot": 0,
    "trouble": "10.0.8.0: no",
    "busy": [{"port": 29500}],
    "names": [{"name": "train-1", "means": "127.0.1.1"}],
    "are_names_known": True,
    "unreached": [{"slot": 1, "port": 29400, "why": "no answer"}],
}
IB_WRITE_BW = """---------------------------------------------------------------------------------------
 Mtu             : 4096[B]
 Link type       : IB
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 3902.477000 != 400.000000. CPU Frequency is not max.
 1048576    5000             394.97             394.52             0.047031
"""
BANDWIDTH = {
    "trouble": "",
    "links": [{"link": 0, "text": IB_WRITE_BW, "why": ""}, {"link": 1, "text": "", "why": "Couldn't connect"}],
}
MACHINES = {
    "nodes": [{"name": "gpu1", "host_key": "ssh-ed25519 AAAA", "address": "10.0.0.1", "slot": 0}],
    "ssh": {"user": "me", "key_file": "~/.ssh/key", "proxy_command": ["nc", "{host}", "{port}"], "port": 22},
}
SPAN = {"slot": 0, "instance_id": "i-1", "started_at": AT, "ended_at": None, "price_usd_per_hour": 55.0}
STANDING = {"kind": "disks", "started_at": AT, "ended_at": AT, "price_usd_per_hour": 1.0}
SEEN = {"instance_id": "i-1", "slot": 0, "instance_type": "p5.48xlarge", "launched_at": AT, "at": AT, "alive": True}
RESERVED = {"reservation_id": "cr-1", "places": 4, "created_at": AT, "ends_at": None, "held": True, "ended_at": None}
RUN = {
    "verb": "up",
    "user": "ada",
    "host": "box",
    "boot": "b",
    "began_at": AT,
    "cli_pid": 77,
    "cli_ticks": 5,
    "tokens": ["t"],
    "stack": "stacks/train",
    "engines": [{"pid": 78, "ticks": 6, "at": AT, "host": "box", "boot": "b", "machine": "m", "pids": ""}],
}
IDENTITY = {
    "name": "train",
    "owner": "ada",
    "image_spec": "ubuntu",
    "image_candidate": "ami-0abc1234def567890",
    "zone_candidate": "us-west-2b",
    "run": 1,
}
MEMBERSHIP = {
    "cluster": "train",
    "cluster_id": "0123456789ab",
    "run": 1,
    "started_at": AT,
    "deadline": AT,
    "planned_at": AT,
    "node_price_usd_per_hour": 55.04,
    "disks_usd_per_hour": 0.0,
    "members": [{"slot": 0, "name": "train-0", "instance_id": "i-1", "public_ip": None}],
}
_URN = "urn:pulumi:dev::train::"
STATE = {
    "deployment": {
        "resources": [
            {"urn": _URN + "i", "type": IDENTITY_TYPE, "custom": True, "id": "0123456789ab", "outputs": {
                "cluster_id": "0123456789ab", "started_at": AT, "owner": "ada", "run": 1,
                "image_id": "ami-1", "zone": "z",
            }},
            {"urn": _URN + "m", "type": MEMBERSHIP_TYPE, "custom": True, "id": "0123456789ab", "outputs": {
                "generation": 3, "deadline": AT, "ledger": [SPAN, STANDING],
            }},
            {"urn": _URN + "n", "type": "aws:ec2/instance:Instance", "custom": True, "id": "i-1", "inputs": {
                "tags": {SLOT_TAG: "0"}}, "outputs": {"instanceType": "p5.48xlarge"}},
            {"urn": _URN + "r", "type": "aws:ec2/capacityReservation:CapacityReservation", "custom": True, "id": "cr-1",
             "inputs": {"instanceType": "p5.48xlarge", "instanceCount": 1}},
        ],
        "pending_operations": [{"type": "creating", "resource": {"urn": _URN + "n", "type": "t"}}],
    }
}  # fmt: skip

"""What a user without rights tries on booted machines: end the cluster, stop root's watch, be in everybody's way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any  # parsed JSON

import pytest

from tests.integration.bootstrap.bootstrapped import Bootstrapped, wait_until
from tests.integration.bootstrap.test_torchrun import TRIO, push_next

ALLOWED_S = 10
ATTACK_S = 14
"""Longer than nodes may be without each other."""
FLOOD = """\
import socket, sys, time
data, pause_s, seconds = eval(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
until, sent = time.monotonic() + seconds, 0
while time.monotonic() < until:
    try:
        s.sendto(data, ("10.0.8.0", 329))
        sent += 1
    except PermissionError:
        pass
    time.sleep(pause_s)
print(sent)
"""
"""Prints how many datagrams could be sent."""
REGISTER = "/run/clusterctl/warn"


BOX = """\
ip netns add box
ip link add inside type veth peer name outside
ip link set inside netns box
ip addr add 10.99.0.1/30 dev outside
ip link set outside up
ip -n box addr add 10.99.0.2/30 dev inside
ip -n box link set inside up
ip -n box route add default via 10.99.0.1
mkdir -p /run/writable-proc
mount -t proc proc /run/writable-proc
echo 1 >/run/writable-proc/sys/net/ipv4/ip_forward
nft -f - <<'END'
table inet seen {
    chain leaves { type filter hook postrouting priority 10; ip saddr 10.99.0.2 udp dport 329 counter
        ip saddr 10.99.0.2 udp dport 330 counter; }
    chain arrives { type filter hook input priority 10; ip saddr 10.99.0.2 udp dport 329 counter
        ip saddr 10.99.0.2 udp dport 330 counter; }
}
END
ip netns exec box python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for place in (("10.0.8.0", 329), ("10.0.8.0", 330), ("10.0.8.1", 329), ("10.0.8.1", 330)):
    s.sendto(b"x", place)
'
for _ in $(seq 100); do # the kernel may take its time
    [ "$(nft list table inet seen | grep -c 'packets 1')" = 2 ] && break
    sleep 0.1
done
nft list table inet seen
"""
"""A network of its own on slot 1, as a container has one; counts which of its datagrams get through."""
NO_BOX = """\
ip netns del box
nft delete table inet seen
echo 0 >/run/writable-proc/sys/net/ipv4/ip_forward
umount /run/writable-proc
"""


@pytest.fixture(scope="module")
def watched(trio: Bootstrapped) -> Iterator[Bootstrapped]:
    """Three nodes that watch for each other; at the end they get a membership without `dead_man`."""
    push_next(trio, TRIO, nodes=3, dead_man_s=ALLOWED_S)
    for slot in TRIO:
        closed = "sudo nft list table inet clusterctl_beats"
        wait_until(lambda: trio.ssh(slot, closed).code == 0, lambda: f"{trio.ssh(slot, closed)}", 30)  # noqa: B023
    yield trio
    push_next(trio, TRIO, nodes=3)


def flood(trio: Bootstrapped, slot: int, user: str, data: str, pause_s: float, seconds: float = ATTACK_S) -> int:
    """How many datagrams the user could send to slot 0's port."""
    command = f"cat >/tmp/flood-{user}.py; sudo -u {user} python3 /tmp/flood-{user}.py '{data}' {pause_s} {seconds}"
    answer = trio.ssh(slot, command, stdin=FLOOD, timeout_s=ATTACK_S + 40)
    assert answer.code == 0, answer
    return int(answer.out)


def watch_of(trio: Bootstrapped, slot: int) -> str:
    """The process id of the watch; another one after each start."""
    return trio.output(slot, "systemctl show --value -p MainPID clusterctl-watch").strip()


def test_floods_of_a_user_reach_nobody_and_odd_datagrams_of_root_stop_nothing(watched: Bootstrapped) -> None:
    before = [watch_of(watched, slot) for slot in TRIO]
    with ThreadPoolExecutor(4) as pool:
        users = [pool.submit(flood, watched, slot, "nobody", 'b"x"', 0.0003) for slot in TRIO]
        root = pool.submit(flood, watched, 1, "root", 'b"[" * 2000', 0.005)
    assert [user.result() for user in users] == [0, 0, 0]
    assert root.result() > 0
    assert [watch_of(watched, slot) for slot in TRIO] == before
    for slot in TRIO:
        log = watched.output(slot, "sudo cat /var/log/clusterctl.log")
        assert "dead man" not in log, log
        assert watched.status(slot).get("watch") is None


def test_what_a_container_sends_to_the_port_goes_no_further_than_its_own_node(watched: Bootstrapped) -> None:
    try:
        counted = watched.output(1, "sudo sh -e", stdin=BOX)
    finally:
        watched.ssh(1, "sudo sh", stdin=NO_BOX)
    packets = re.findall(r"dport (\d+) counter packets (\d+)", counted)
    assert packets == [("329", "0"), ("330", "1")] * 2, counted


def test_systemd_starts_the_watch_again_however_often_it_is_killed(watched: Bootstrapped) -> None:
    assert watched.output(2, "systemctl show --value -p StartLimitIntervalUSec clusterctl-watch") == "0\n"
    before = watch_of(watched, 2)
    watched.output(2, f"sudo kill -9 {before}")
    wait_until(lambda: watch_of(watched, 2) not in ("0", before), lambda: "no watch", 20)


def test_the_register_stays_open_for_others_when_a_user_fills_it(watched: Bootstrapped) -> None:
    fill = f"cd {REGISTER} && mkdir -p a/b/c && touch a/b/c/d .hidden && touch $(seq 100000 105000) || true"
    watched.output(2, f"sudo -u nobody sh -c '{fill}'")
    watched.output(2, f"sleep 60 >/dev/null 2>&1 & touch {REGISTER}/$!")

    def entries() -> list[str]:
        return watched.output(2, f"ls -A {REGISTER}").split()

    wait_until(lambda: len(entries()) == 1, lambda: f"{len(entries())} entries", 20)
    refused = watched.ssh(2, f"sudo -u nobody touch {REGISTER}/1")
    assert (refused.code, "Permission denied" in refused.err) == (1, True), refused
    log = watched.output(2, "sudo cat /var/log/clusterctl.log")
    assert re.search(r"user 65534 filled /run/clusterctl/warn", log)


def test_nobody_but_root_holds_the_lock_of_roots_services(watched: Bootstrapped) -> None:
    held = watched.ssh(2, "sudo -u nobody flock -n /var/lib/clusterctl/lock echo held")
    assert held.out == ""
    assert "Permission denied" in held.err


def test_a_rule_that_is_taken_away_is_told_and_made_again(watched: Bootstrapped) -> None:
    """Programs that fail take the place of nft and iptables."""
    refusing = "printf '#!/bin/sh\\nexit 1\\n' | sudo tee /usr/local/sbin/nft /usr/local/sbin/iptables >/dev/null"
    watched.output(2, f"{refusing}; sudo chmod +x /usr/local/sbin/nft /usr/local/sbin/iptables")
    try:
        watched.output(2, "sudo systemctl restart clusterctl-watch")
        found: dict[str, Any] = {}

        def is_reported() -> bool:
            found.update(watched.status(2))
            return "port of beats" in (found.get("watch") or {})

        wait_until(is_reported, lambda: json.dumps(found), 20)
    finally:
        watched.output(2, "sudo rm /usr/local/sbin/nft /usr/local/sbin/iptables")
        watched.output(2, "sudo systemctl restart clusterctl-watch")
    wait_until(lambda: not watched.status(2).get("watch"), lambda: f"{watched.status(2)}", 20)

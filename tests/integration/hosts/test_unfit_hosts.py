"""Hosts that cannot be nodes: every reason is reported, and nothing is changed on any of them."""

from __future__ import annotations

from pathlib import Path

from clusterctl_infra.keys import host_key

from tests.integration.hosts.foreign import BOTH, SEED, Foreign, address


def test_bad_hosts_are_all_named_and_nothing_is_changed_on_good_ones(net: Foreign, tmp_path: Path) -> None:
    before = net.snapshot(1)
    other = " ".join(host_key(SEED, 7).public.split()[:2])
    hosts = f"  - {address(1)}\n  - {{address: {address(2)}, host_key: {other}}}\n  - {address(3)}\n"
    stack = str(net.write_stack(tmp_path / "lab", hosts=hosts))
    done = net.clusterctl("up", stack, "--yes")
    assert done.returncode == 1, done.stderr
    assert "2 of 3 hosts cannot be a node, nothing was changed on any" in done.stderr
    assert f"lab-1 ({address(2)}): " in done.stderr
    assert "shows the host key SHA256:" in done.stderr
    assert f"lab-2 ({address(3)}): " in done.stderr
    assert net.snapshot(1) == before
    assert net.clusterctl("nodes").returncode == 3, "a cluster that was never begun is not known"


def test_a_host_without_python_sudo_or_its_address_is_told_before_anything(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=f"  - {{address: {address(1)}, private_ip: 10.0.8.77}}\n"))
    nfs = "printf '#!/bin/sh\\necho nfs\\n' | sudo tee /usr/local/bin/stat && sudo chmod 755 /usr/local/bin/stat"
    hide = f"sudo mv /usr/bin/python3 /usr/bin/python3.away; {nfs}"
    assert net.ssh(1, hide).returncode == 0
    try:
        done = net.clusterctl("up", stack, "--yes")
    finally:
        back = "sudo mv /usr/bin/python3.away /usr/bin/python3; sudo rm /usr/local/bin/stat"
        assert net.ssh(1, back).returncode == 0
    assert done.returncode == 1
    assert "there is no /usr/bin/python3, and the agent needs Python 3.9 or newer" in done.stderr
    assert "the user's home is on a network file system (nfs)" in done.stderr, (
        "stat is simulated: it says so of every path"
    )
    assert f"no interface has the address 10.0.8.77, the host has {address(1)}" in done.stderr
    assert ": write private_ip" in done.stderr


def test_an_install_that_fails_on_one_host_is_taken_back_on_all(net: Foreign, tmp_path: Path) -> None:
    """Somebody's own file lies where one of ours would: it is left, and the other host is as before, too."""
    assert net.ssh(2, "sudo touch /etc/ssh/sshd_config.d/00-clusterctl.conf").returncode == 0
    try:
        before = [net.snapshot(number) for number in (1, 2)]
        stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
        done = net.clusterctl("up", stack, "--yes")
        after = [net.snapshot(number) for number in (1, 2)]
    finally:
        net.ssh(2, "sudo rm /etc/ssh/sshd_config.d/00-clusterctl.conf")
    assert done.returncode == 1, done.stderr
    assert "00-clusterctl.conf is there already and is not clusterctl's" in done.stderr
    assert "what was begun is removed" in done.stderr
    assert after == before
    assert net.clusterctl("nodes").returncode == 3

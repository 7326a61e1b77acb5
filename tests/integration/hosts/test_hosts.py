"""`target: hosts` on booted machines that somebody else set up: from `up` to `down`, and what is refused before."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl_infra.keys import host_key

from tests.integration.hosts.foreign import ANSWER_S, SEED, USER, Foreign, address, address_6, foreign_network
from tests.integration.hosts.simulated_infiniband import IBNETDISCOVER, carries, give, plug_in, unplug
from tests.integration.jobs.container_image import MAKE_IMAGE
from tests.integration.rehearsed import wait_until
from tests.unit.cli.hosts.fabrics import adapter_guid, printed

BOTH = f"  - {address(1)}\n  - {address(2)}\n"
ENV = 'env: {GREETING: "it\'s me"}\ncaps: {runtime: 2h}\nprice_usd_per_hour: 12.5\n'


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    """Three machines; nobody is at the third address."""
    with foreign_network(tmp_path_factory.mktemp("foreign")) as made:
        for number in (1, 2, 4):
            made.boot(number)
        for number in (1, 2, 4):
            made.wait_for_ssh(number)
        yield made


@pytest.fixture(autouse=True)
def cleaned(net: Foreign) -> Iterator[None]:
    """The machines are nobody's nodes afterwards, whatever became of the test."""
    yield
    net.clean()


def ok(net: Foreign, *words: str) -> str:
    done = net.clusterctl(*words)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_hosts_become_nodes_run_a_job_and_are_as_before_after_down(net: Foreign, tmp_path: Path) -> None:
    before = [net.snapshot(number) for number in (1, 2)]
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH, more=ENV))
    planned = ok(net, "plan", stack)
    assert "lab@hosts · 2 × host · $25.00/h · nothing ends these hosts" in planned
    assert "no deadline and no cap ends them" in planned
    assert "(caps.runtime, which is advice only)" in planned

    up = net.clusterctl("up", stack, "--yes")
    assert up.returncode == 0, up.stderr
    assert "(caps.runtime, which is advice only)" in up.stderr
    status = json.loads(ok(net, "status", "--json"))
    assert [node["state"] for node in status["nodes"]] == ["ready", "ready"]
    assert (status["deadline"], status["generation"], status["cluster"]) == (None, 1, "lab@hosts")
    # By ssh's own environment, by name over the declared keys, and as the hosts' own user.
    said = ok(net, "ssh", "--node", "all", 'echo "$GREETING $NODE_RANK $MASTER_ADDR"; ssh lab-1 id -un')
    assert sorted(said.splitlines()) == sorted(
        [f"[lab-{slot}] it's me {slot} {address(1)}" for slot in (0, 1)] + [f"[lab-{slot}] {USER}" for slot in (0, 1)]
    )
    assert "NODE_RANK='1'" in ok(net, "env", "--node", "1")
    assert "GLOO_SOCKET_IFNAME='host0'" in ok(net, "env", "--node", "1")
    # Whoever else is on the machine goes to the other one as before.
    goes_as = net.ssh(1, "sudo ssh -G lab-1 | grep '^user '; ssh -G lab-1 | grep '^user '").stdout
    assert goes_as == f"user root\nuser {USER}\n"
    assert "membership of generation 1: 2 nodes" in ok(net, "logs", "--node", "0")
    job = ok(net, "run", "--node", "all", "--yes", "--", "sh", "-c", "echo rank $NODE_RANK of $NNODES")
    assert "rank 0 of 2" in job
    assert "rank 1 of 2" in job
    assert net.ssh(1, KEEPS_SHARED_MEMORY).stdout == "b false\n"
    named = ok(net, "run", "--node", "0", "--name", "told", "--", "echo", "outlives its node")
    assert "outlives its node" in named
    for verb in (["extend", "1h"], ["replace", "--node", "0"], ["cost"]):
        refused = net.clusterctl(*verb, "--cluster", "lab")
        assert refused.returncode == 2, verb
        assert f"{verb[0]} is not for lab@hosts" in refused.stderr

    ok(net, "up", stack, "--yes")
    assert json.loads(ok(net, "status", "--json"))["generation"] == 1, "nothing new, nothing is told anew"
    ok(net, "cp", f"{stack}/cluster.yaml", "all:/tmp/")
    assert ok(net, "ssh", "--node", "all", "head -n 1 /tmp/cluster.yaml").count("target: hosts") == 2
    ok(net, "sync", f"{stack}/", "all:synced/")
    assert ok(net, "ssh", "--node", "all", "head -n 1 synced/cluster.yaml").count("target: hosts") == 2
    assert net.ssh(1, "rm -r synced").returncode == net.ssh(2, "rm -r synced").returncode == 0
    ok(net, "check")
    ok(net, "top")
    ok(net, "down", "--cluster", "lab@hosts", "--yes")
    assert [net.snapshot(number) for number in (1, 2)] == before
    assert (
        net.ssh(1, "systemctl list-unit-files 'clusterctl*' --no-legend; systemctl is-active ssh").stdout == "active\n"
    )
    assert net.ssh(1, KEEPS_SHARED_MEMORY).stdout == "b true\n", "logind is as before, and has read that"
    assert net.clusterctl("nodes").returncode == 3
    assert "outlives its node" in ok(net, "job", "logs", "told"), "the output is kept here"


KEEPS_SHARED_MEMORY = (
    "sudo busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager RemoveIPC"
)
"""What logind does with the shared memory of a user who logs out."""
OWNERS = """
sudo cp -a /etc/ssh/sshd_config /root/sshd_config && sudo cp -a /etc/hosts /root/hosts
printf 'AuthorizedKeysFile /etc/ssh/keys/%%u\\nMatch User ada\\n    AuthorizedKeysFile .ssh/authorized_keys\\n' |
  sudo tee -a /etc/ssh/sshd_config
printf '127.0.1.1 lab-0.corp.example lab-0\\n10.9.9.9 storage\\n' | sudo tee -a /etc/hosts
sudo systemctl reload ssh && sudo systemd-run --unit clusterctl-reap sleep infinity
"""
BACK = """
sudo mv /root/sshd_config /etc/ssh/sshd_config; sudo mv /root/hosts /etc/hosts
sudo systemctl reload ssh; sudo systemctl stop clusterctl-reap
"""


def keys_of(net: Foreign, user: str, address_from: str) -> list[str]:
    """Where the first host's sshd finds the keys of a user who comes from an address."""
    spec = f"user={user},host=x,addr={address_from},laddr={address(1)},lport=22"
    return net.ssh(1, f"sudo sshd -T -C {spec} | grep -i ^authorizedkeysfile").stdout.split()[1:]


def test_what_the_owner_set_holds_for_everybody_else_and_is_there_after_down(net: Foreign, tmp_path: Path) -> None:
    """Settings of sshd for all and for one user, a name at a loopback address, a unit that is called like ours."""
    assert net.ssh(1, OWNERS).returncode == 0
    try:
        before = net.snapshot(1)
        stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
        for _ in range(2):
            ok(net, "up", stack, "--yes")
            assert keys_of(net, USER, address(2)) == [".ssh/authorized_keys", "/etc/ssh/clusterctl/keys-%u"]
            assert keys_of(net, USER, "10.0.0.1") == [".ssh/authorized_keys"]
            assert keys_of(net, "root", address(2)) == ["/etc/ssh/keys/%u"]
        said = ok(net, "ssh", "--node", "all", "getent hosts lab-0; ssh lab-0 id -un; ssh lab-1 id -un")
        assert sorted(set(said.split())) == sorted({"[lab-0]", "[lab-1]", address(1), "lab-0", USER})
        ok(net, "down", stack, "--yes")
        assert net.snapshot(1) == before
        assert net.ssh(1, "systemctl is-active clusterctl-reap").stdout == "active\n"
    finally:
        net.ssh(1, BACK)


def test_a_remove_that_is_cut_short_is_known_and_done_again(net: Foreign, tmp_path: Path) -> None:
    before = net.snapshot(1)
    stack = str(net.write_stack(tmp_path / "lab", hosts=f"  - {address(1)}\n"))
    ok(net, "up", stack, "--yes")
    busy = "/var/lib/clusterctl/zz"
    assert net.ssh(1, f"sudo mkdir {busy} && sudo mount -t tmpfs none {busy}").returncode == 0
    done = net.clusterctl("down", stack, "--yes")
    left = net.ssh(1, f"ls /var/lib/clusterctl; sudo umount {busy}").stdout.split()
    assert left == ["birth.json", "host.json", "zz"]
    assert done.returncode == 4, done.stderr
    assert f"1 host could not be cleaned: {address(1)}" in done.stderr
    ok(net, "down", stack, "--yes")
    assert net.snapshot(1) == before


def test_a_host_that_boots_again_is_a_node_again(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
    ok(net, "up", stack, "--yes")
    booted = net.ssh(1, "cat /run/clusterctl/boot-id").stdout
    net.driver.reboot(net.name, "gpu-1")
    wait_until(
        lambda: net.ssh(1, "cat /run/clusterctl/boot-id").stdout not in ("", booted),
        what="another boot",
        timeout_s=ANSWER_S,
    )
    ok(net, "up", stack, "--yes")
    status = json.loads(ok(net, "status", "--json"))
    assert [(node["state"], node["membership"]) for node in status["nodes"]] == [("ready", None)] * 2
    ok(net, "down", stack, "--yes")


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
    assert "the user's home is on a network file system (nfs)" in done.stderr, "stat is simulated: it says so of all"
    assert f"no interface has the address 10.0.8.77, it has {address(1)}: write private_ip" in done.stderr


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


def test_a_host_that_down_does_not_reach_stays_known_until_it_is_clean(net: Foreign, tmp_path: Path) -> None:
    before = [net.snapshot(number) for number in (1, 2)]
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
    ok(net, "up", stack, "--yes")
    net.driver.unplug(net.name, "gpu-2")
    try:
        done = net.clusterctl("down", stack, "--yes")
    finally:
        net.driver.plug(net.name, "gpu-2")
    assert done.returncode == 4, done.stderr
    assert f"1 host could not be cleaned: {address(2)}; lab@hosts stays known" in done.stderr
    assert net.snapshot(1) == before[0]
    assert [row["public_ip"] for row in json.loads(ok(net, "nodes", "--json"))["nodes"]] == [address(2)]
    ok(net, "down", stack, "--yes")
    assert net.snapshot(2) == before[1]
    assert net.clusterctl("nodes").returncode == 3


def test_a_node_of_one_cluster_is_refused_to_another(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
    ok(net, "up", stack, "--yes")
    other = net.write_stack(tmp_path / "other", hosts=f"  - {address(1)}\n")
    text = (other / "cluster.yaml").read_text()
    (other / "cluster.yaml").write_text(text.replace("name: lab", "name: other"))
    done = net.clusterctl("up", str(other), "--yes")
    assert done.returncode == 1
    assert "it is a node of another cluster" in done.stderr
    # One host fewer: what leaves is cleaned, the one that stays is told.
    net.write_stack(tmp_path / "lab", hosts=f"  - {address(1)}\n")
    ok(net, "up", stack, "--yes")
    assert ok(net, "ssh", "--cluster", "lab", "--node", "0", "echo $NNODES; cat /etc/clusterctl/hostfile") == (
        "1\nlab-0 slots=1\n"
    )
    assert net.ssh(2, "ls /etc/clusterctl").returncode == 2
    ok(net, "down", stack, "--yes")


STORAGE = """\
storage:
- {mount: /shared, nfs: {source: "fileserver:/export"}}
- {mount: /mnt/lab/fast, lustre: {source: "fastserver@tcp:/fast", writable: false}}
"""
SETUP = "#!/bin/sh\nset -e\nmountpoint -q /shared\necho $NODE_RANK >>/var/tmp/ran\n"
CLIENT = "sudo cp /usr/local/lib/clusterctl-rehearsal/mount.lustre /usr/sbin/"


def test_what_lies_at_a_mount_or_is_missing_for_it_is_told_before_anything(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH, more=STORAGE))
    theirs = (
        "sudo mkdir -p /shared /mnt/lab/fast && sudo touch /shared/theirs && sudo mount -t tmpfs none /mnt/lab/fast"
    )
    assert net.ssh(2, theirs).returncode == 0
    try:
        before = net.snapshot(1)
        done = net.clusterctl("up", stack, "--yes")
        kept = net.ssh(2, "ls /shared; findmnt -n -o FSTYPE /mnt/lab/fast").stdout
    finally:
        net.ssh(2, "sudo umount /mnt/lab/fast; sudo rm -r /shared /mnt/lab")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("there is no /sbin/mount.nfs, the client of NFS: install it, or list it under pack") == 2
    assert "nfs-common on Ubuntu and Debian" in done.stderr
    assert f"lab-1 ({address(2)}): /shared: something lies there, which a mount would hide" in done.stderr
    assert f"lab-1 ({address(2)}): /mnt/lab/fast: something is mounted there already" in done.stderr
    assert "/etc/fstab" not in done.stderr
    assert (net.snapshot(1), kept) == (before, "theirs\ntmpfs\n")


def test_mounts_packages_and_scripts_of_hosts_from_up_to_down(net: Foreign, tmp_path: Path) -> None:
    """The first host has an empty /shared of its own, which stays."""
    for name in ("fileserver", "fastserver"):
        (net.shares / name).mkdir(exist_ok=True)
    (net.shares / "fastserver/set").write_text("hello")
    (net.shares / "fileserver").chmod(0o1777)
    assert net.ssh(1, "sudo mkdir /shared").returncode == 0
    assert net.ssh(1, CLIENT).returncode == net.ssh(2, CLIENT).returncode == 0
    before = [net.snapshot(number) for number in (1, 2)]
    more = "packages: [nfs-common]\nscripts: [setup.sh]\n"
    stack = net.write_stack(tmp_path / "lab", hosts=BOTH, more=STORAGE + more)
    (stack / "setup.sh").write_text(SETUP)
    try:
        ok(net, "up", str(stack), "--yes")
        seen = ok(net, "ssh", "--node", "0", "findmnt -n -o FSTYPE /shared; findmnt -n -o FSTYPE,OPTIONS /mnt/lab/fast")
        assert seen.startswith("fuse.simulated-nfs\nfuse.simulated-lustre ro,"), seen
        ok(net, "ssh", "--node", "0", "echo from 0 >/shared/note")
        assert ok(net, "ssh", "--node", "1", "cat /shared/note /mnt/lab/fast/set /var/tmp/ran") == "from 0\nhello1\n"
        assert net.clusterctl("ssh", "--node", "1", "touch /mnt/lab/fast/mine").returncode == 1
        # A mount that is taken out of the file goes, and a script that was changed runs again.
        net.write_stack(tmp_path / "lab", hosts=BOTH, more=STORAGE.partition("- {mount: /mnt")[0] + more)
        (stack / "setup.sh").write_text(SETUP.replace("$NODE_RANK", "again"))
        ok(net, "up", str(stack), "--yes")
        assert ok(net, "ssh", "--node", "1", "cat /var/tmp/ran; ls /mnt; mountpoint /shared") == (
            "1\nagain\n/shared is a mountpoint\n"
        )
        net.driver.reboot(net.name, "gpu-2")
        wait_until(
            lambda: net.ssh(2, "mountpoint -q /shared && grep -q ready /etc/clusterctl/status.json").returncode == 0,
            what="the mount after another boot",
            timeout_s=ANSWER_S,
        )
        assert net.ssh(2, "cat /var/tmp/ran").stdout == "1\nagain\n"
        assert net.ssh(2, "sudo systemd-run --unit busy sh -c 'cd /shared && exec sleep infinity'").returncode == 0
        done = net.clusterctl("down", str(stack), "--yes")
        assert done.returncode == 4, done.stderr
        assert f"{address(2)}: /shared cannot be unmounted, something uses it: fuser -vm /shared" in done.stderr
        assert net.ssh(2, "sudo systemctl stop busy").returncode == 0
        ok(net, "down", str(stack), "--yes")
        assert [net.snapshot(number) for number in (1, 2)] == before
        left = "cat /proc/mounts | grep -c fuse.simulated; ls -d /shared /mnt/*; ls /etc/systemd/system/*.mount"
        assert [net.ssh(number, left).stdout for number in (1, 2)] == ["0\n/shared\n", "0\n"]
        assert (net.shares / "fileserver/note").read_text() == "from 0\n"
        assert [path.name for path in (net.shares / "fileserver").iterdir()] == ["note"]
    finally:
        net.ssh(2, "sudo systemctl stop busy")
        for number in (1, 2):
            net.ssh(number, "sudo rm -f /usr/sbin/mount.lustre /usr/sbin/mount.nfs /usr/sbin/mount.nfs4 /var/tmp/ran")
        net.ssh(1, "sudo rmdir /shared")


PORTS = "/etc/ssh/sshd_config.d/10-ports.conf"
AT_BOTH_PORTS = f"printf 'Port 22\\nPort 2222\\n' | sudo tee {PORTS} && sudo systemctl restart ssh"
AT_ONE_PORT = f"sudo rm -f {PORTS}; sudo systemctl restart ssh"
GROUP = """
import clusterctl
lab = clusterctl.nodes("lab")
print(*sorted(each.stdout.strip() for each in lab.run("hostname", hide=True).values()))
print(lab[1].run("hostname", hide=True, in_stream=False).stdout.strip())
"""


def test_hosts_by_ipv6_and_at_another_port_work_as_others_do(net: Foreign, tmp_path: Path) -> None:
    """From here and from host to host; the second host's key is declared for its port."""
    for number in (1, 2):
        net.gain_ipv6(number)
    with (net.folder / "known_hosts").open("a") as file:
        file.write(f"{address_6(1)} {host_key(SEED, 1).public}\n[{address_6(2)}]:2222 {host_key(SEED, 2).public}\n")
    assert net.ssh(2, AT_BOTH_PORTS).returncode == 0
    try:
        before = [net.snapshot(number) for number in (1, 2)]
        hosts = f"  - '{address_6(1)}'\n  - {{address: '{address_6(2)}', port: 2222}}\n"
        stack = str(net.write_stack(tmp_path / "lab", hosts=hosts))
        ok(net, "up", stack, "--yes")
        said = ok(net, "ssh", "--node", "all", "echo $MASTER_ADDR $NCCL_SOCKET_FAMILY ${SSH_CONNECTION##* }")
        assert sorted(said.splitlines()) == [
            f"[lab-0] {address_6(1)} AF_INET6 22",
            f"[lab-1] {address_6(1)} AF_INET6 2222",
        ]
        there = ok(net, "ssh", "--node", "0", "ssh lab-1 'echo ${SSH_CONNECTION}'").split()
        assert (there[0], there[2:]) == (address_6(1), [address_6(2), "2222"])
        ok(net, "check")
        ok(net, "cp", f"{stack}/cluster.yaml", "all:/tmp/")
        ok(net, "sync", f"{stack}/", "all:synced/")
        assert ok(net, "ssh", "--node", "all", "head -n 1 synced/cluster.yaml; rm -r synced").count("hosts") == 2
        assert "membership of generation 1: 2 nodes" in ok(net, "logs", "--node", "1")
        assert ok(net, "ssh", "--node", "all", "sudo clusterctl-node barrier met").count('"barrier": "met"') == 2
        tell = "echo rank $NODE_RANK of $NNODES by $JAX_COORDINATOR_ADDRESS"
        job = ok(net, "run", "--node", "all", "--yes", "--", "sh", "-c", tell)
        assert all(f"rank {rank} of 2 by [{address_6(1)}]:" in job for rank in (0, 1))
        assert net.python(GROUP).stdout == "gpu-1 gpu-2\ngpu-2\n"
        ok(net, "down", stack, "--yes")
        assert [net.snapshot(number) for number in (1, 2)] == before
    finally:
        net.clean()
        net.ssh(2, AT_ONE_PORT)


def ranks(net: Foreign) -> list[int]:
    """The rank of each slot, as `clusterctl nodes` has it."""
    rows = json.loads(ok(net, "nodes", "--json"))["nodes"]
    return [row["rank"] for row in sorted(rows, key=lambda row: int(row["slot"]))]


def test_hosts_of_one_infiniband_switch_have_neighbouring_ranks_and_pairs_are_measured(
    net: Foreign, tmp_path: Path
) -> None:
    """The adapters and the programs are simulated; the first and the third host hang below one switch."""
    numbers = (1, 2, 4)
    fabric = printed({1: [adapter_guid(1), adapter_guid(4)], 2: [adapter_guid(2)]}, {1: [10], 2: [10]})
    stack = str(
        net.write_stack(
            tmp_path / "lab",
            hosts="".join(f"  - {address(number)}\n" for number in numbers),
            more="ranks: topology\nfabric: infiniband\n",
        )
    )
    try:
        for number in numbers:
            plug_in(net, number, adapter_guid(number))
        up = net.clusterctl("up", stack, "--yes")
        assert up.returncode == 0, up.stderr
        assert (
            "ranks       as they were: no host has ibnetdiscover, which is in the package infiniband-diags" in up.stderr
        )
        give(net, 2, "/usr/sbin/ibnetdiscover", IBNETDISCOVER)
        up = net.clusterctl("up", stack, "--yes", "--reorder-ranks")
        assert up.returncode == 0, up.stderr
        assert "as they were: ibnetdiscover on lab-1: cat: /root/simulated-fabric: No such file" in up.stderr
        assert ranks(net) == [0, 1, 2]
        give(net, 2, "/root/simulated-fabric", fabric)
        assert "ranks" not in net.clusterctl("up", stack, "--yes").stderr, "it is ordered once"
        up = net.clusterctl("up", stack, "--yes", "--reorder-ranks")
        assert "ranks       by InfiniBand switch (2 groups of neighbours): 2 nodes changed rank" in up.stderr
        assert ranks(net) == [0, 2, 1]
        said = ok(net, "ssh", "--node", "all", "echo $CLUSTERCTL_SLOT $NODE_RANK $NCCL_IB_HCA")
        assert sorted(said.splitlines()) == [
            f"[lab-{slot}] {slot} {rank} =mlx5_0:1" for slot, rank in enumerate((0, 2, 1))
        ]
        hostfile = ok(net, "ssh", "--node", "1", "--", "cut", "-d ", "-f1", "/etc/clusterctl/hostfile")
        assert hostfile.split() == ["lab-0", "lab-2", "lab-1"]

        done = net.clusterctl("check", "--bandwidth", "infiniband")
        assert done.returncode == 4
        assert "lab-1: not measured: there is no ib_write_bw: install the package perftest" in done.stdout
        for number, gbps in zip(numbers, (394.0, 394.0, 196.0), strict=True):
            carries(net, number, gbps)
        done = net.clusterctl("check", "--bandwidth", "infiniband")
        assert done.returncode == 4
        assert done.stdout.count("slow: below") == 2
        assert "lab-2: every pair that it is in, and no other, is not ok" in done.stdout
        assert "3 pairs, 3 links, 3 rounds of ib_write_bw: 2 of the links not ok" in done.stdout
        carries(net, 4, 0)
        told = json.loads(net.clusterctl("check", "--bandwidth", "infiniband", "--json").stdout)
        verdicts = {row["verdict"] for row in told["links"] if "lab-2" in (row["from"], row["to"])}
        assert verdicts == {"failed: " + "; there: ".join(["Unable to Connect the HCA's through the link"] * 2)}
        carries(net, 4, 391.0)
        said = ok(net, "check", "--bandwidth", "infiniband", "--rounds", "1")
        assert said.endswith("1 pair, 1 link, 1 round of ib_write_bw: ok\n")
        ok(net, "down", stack, "--yes")
    finally:
        for number in numbers:
            unplug(net, number)


SECOND_USER = """
sudo useradd -m -s /bin/bash bob && sudo cp -a ~/.ssh ~bob/ && sudo chown -R bob ~bob/.ssh
echo 'bob ALL=(ALL) NOPASSWD:ALL' | sudo tee /etc/sudoers.d/bob; echo mine > ~/.ssh/mine
"""


def test_another_login_user_takes_over_and_the_one_before_has_what_was_theirs(net: Foreign, tmp_path: Path) -> None:
    assert net.ssh(1, SECOND_USER).returncode == 0
    try:
        before = net.snapshot(1)
        hosts = f"  - {address(1)}\n"
        stack = str(net.write_stack(tmp_path / "lab", hosts=hosts))
        ok(net, "up", stack, "--yes")
        assert net.ssh(1, "ls ~/.ssh").stdout.split() == ["authorized_keys", "environment", "mine"]
        net.write_stack(tmp_path / "lab", hosts=hosts, user="bob")
        ok(net, "up", stack, "--yes")
        assert ok(net, "ssh", "--node", "0", "id -un; echo $NODE_RANK") == "bob\n0\n"
        assert net.ssh(1, "ls ~/.ssh; sudo ls ~bob/.ssh").stdout.split() == [
            *("authorized_keys", "mine"),
            *("authorized_keys", "environment"),
        ]
        ok(net, "down", stack, "--yes")
        assert net.snapshot(1) == before
    finally:
        net.ssh(1, "sudo userdel -r bob; sudo rm /etc/sudoers.d/bob; rm ~/.ssh/mine")


def test_down_ends_a_job_s_containers_and_waits_for_whoever_changes_the_host(net: Foreign, tmp_path: Path) -> None:
    assert net.ssh(1, f"sudo sh -c {shlex.quote(MAKE_IMAGE)}").returncode == 0
    before = net.snapshot(1)
    stack = str(net.write_stack(tmp_path / "lab", hosts=f"  - {address(1)}\n"))
    ok(net, "up", stack, "--yes")
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stays = f"{deaf}; print('running in', os.environ['container'], flush=True); time.sleep(98765)"
    options = ("--image", "test/python:1", "--launcher", "plain", "--name", "stays", "--detach")
    ok(net, "run", *options, "--", "python3", "-c", stays)
    wait_until(
        lambda: ok(net, "job", "logs", "stays").endswith(" running in podman\n"),
        what="the container runs",
        timeout_s=30,
    )
    # Somebody else's install has the host until the remove is there, which then waits its turn.
    assert net.ssh(1, HELD_UNTIL_ANOTHER_COMES).returncode == 0
    done = net.clusterctl("down", stack, "--yes")
    assert done.returncode == 0, done.stderr
    assert "the output of 1 job is kept here: clusterctl job logs stays" in done.stderr
    assert net.ssh(1, "cat /run/other-came; sudo rm /run/other-came").stdout == "waited\n"
    assert net.ssh(1, "sudo podman ps --all --quiet; pgrep -f 'sleep.9876[5]'").stdout == ""
    assert net.snapshot(1) == before
    assert ok(net, "job", "logs", "stays").endswith(" running in podman\n")


HELD_UNTIL_ANOTHER_COMES = """
sudo systemd-run --quiet --collect --unit holder flock /run/clusterctl-host.lock sh -c '
  touch /run/holder-has; until pgrep -f "^/usr/bin/python3 -ISc"; do sleep 0.1; done; echo waited > /run/other-came'
until [ -e /run/holder-has ]; do sleep 0.1; done; sudo rm /run/holder-has
"""
"""A lock that is let go once the program that removes runs: no other has these flags."""


def test_hosts_behind_a_bastion_are_reached_through_it_alone(net: Foreign, tmp_path: Path) -> None:
    """Only the bastion, with a real sshd, knows the hosts' names; this computer's ssh settings say how to reach it."""
    names = "".join(f"{address(number)} gpu-{number}.lab.internal\n" for number in (1, 2))
    assert net.ssh(4, f"printf %s {shlex.quote(names)} | sudo tee -a /etc/hosts").returncode == 0
    settings = tmp_path / "ssh_config"
    settings.write_text(
        f"Host door.example.com\n  HostName {address(4)}\n  HostKeyAlias {address(4)}\n  User {USER}\n"
        f"  IdentityFile {net.key_file}\n  UserKnownHostsFile {net.folder}/known_hosts\n"
        "  StrictHostKeyChecking yes\n"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {settings} "$@"\n')
    (tmp_path / "bin/ssh").chmod(0o755)
    inside = replace(net, environ=(("PATH", f"{tmp_path}/bin:{os.environ['PATH']}"),))
    keys = {number: " ".join(host_key(SEED, number).public.split()[:2]) for number in (1, 2)}
    hosts = "".join(
        f"  - {{address: gpu-{number}.lab.internal, private_ip: {address(number)}, host_key: {keys[number]}}}\n"
        for number in (1, 2)
    )
    before = [net.snapshot(number) for number in (1, 2)]
    stack = str(net.write_stack(tmp_path / "lab", hosts=hosts, bastion="door.example.com"))
    try:
        ok(inside, "up", stack, "--yes")
        assert [row["state"] for row in json.loads(ok(inside, "status", "--json"))["nodes"]] == ["ready", "ready"]
        said = ok(inside, "ssh", "--node", "all", "echo $NODE_RANK; ssh lab-1 hostname")
        assert sorted(said.split()) == sorted(["[lab-0]", "0", "[lab-0]", "gpu-2", "[lab-1]", "1", "[lab-1]", "gpu-2"])
        ok(inside, "cp", f"{stack}/cluster.yaml", "all:/tmp/")
        ok(inside, "sync", f"{stack}/", "1:synced/")
        assert ok(inside, "ssh", "--node", "1", "cat synced/cluster.yaml; rm -r synced").startswith("target: hosts")
        job = ok(inside, "run", "--node", "all", "--yes", "--name", "far", "--", "sh", "-c", "echo rank $NODE_RANK")
        assert "rank 0" in job
        assert "rank 1" in job
        assert "generation 1" in ok(inside, "logs", "--node", "0")
        ok(inside, "down", stack, "--yes")
        assert [net.snapshot(number) for number in (1, 2)] == before
        assert "rank 1" in ok(inside, "job", "logs", "far")
    finally:
        inside.clean()
        net.ssh(4, "sudo sed -i /lab.internal/d /etc/hosts")

"""What a host says of itself, and what keeps it from being a node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterctl.hosts.host_check import HostLook, hindrances, look_command, parse_look
from clusterctl.probes.probe import ProbeUnreadable
from clusterctl_infra.config.hosts import HostsConfig

OWN = "0123456789ab"
NOW_S = 1_795_000_000
LOOK_OUTPUT = f"""\
clock {NOW_S}
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
address 127.0.0.1
address 10.1.0.5
gpus 8
ib mlx5_0:1 InfiniBand ACTIVE B83FD203000a0001
ib mlx5_1:1 InfiniBand DOWN
ib mlx5_2:1 Ethernet ACTIVE b83fd203000a0003
ibnetdiscover yes
end yes
"""
LOOK = parse_look(LOOK_OUTPUT)
CONFIG = HostsConfig.model_validate(
    {"target": "hosts", "name": "lab", "hosts": ["10.1.0.5"], "ssh": {"user": "ada"}, "gpus": "h100:8"}
)


def why(look: HostLook, config: HostsConfig = CONFIG) -> list[str]:
    return hindrances(look, config, 0, cluster_id=OWN, began_s=NOW_S, ended_s=NOW_S)


def test_a_sound_host_has_no_hindrance() -> None:
    assert why(LOOK) == []
    assert (LOOK.active_infiniband, LOOK.infiniband) == (("mlx5_0:1",), ("mlx5_0:1", "mlx5_1:1"))
    assert (LOOK.adapters, LOOK.has_ibnetdiscover) == (("b83fd203000a0001",), True)


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        ("python 3.10", "python 3.6", "/usr/bin/python3 is Python 3.6, the agent needs 3.9 or newer"),
        ("python 3.10", "python ", "there is no /usr/bin/python3"),
        ("sudo yes", "sudo no sudo: a password is required", "refused (sudo: a password is required)"),
        ("path yes", "path no", "sudo does not look in /usr/local/bin"),
        ("systemd yes", "systemd no", "systemd does not run there"),
        ("room 73400320", "room 2048", "/var/lib has 2 MiB free, 512 are needed"),
        ("sshd yes", "sshd no", "/etc/ssh/sshd_config does not include"),
        ("ssh yes", "ssh no", "/etc/ssh/ssh_config does not include"),
        ("variables yes", "variables no", "sshd's files say PermitUserEnvironment no"),
        ("home ext2/ext3", "home nfs", "the user's home is on a network file system (nfs)"),
        ("environment free", "environment theirs", "the user has a ~/.ssh/environment"),
        ("environment free", "cluster ffffffffffff\nenvironment free", "a node of another cluster (id ffffffffffff)"),
        (f"clock {NOW_S}", f"clock {NOW_S - 90}", "its clock is 90 s behind this computer's"),
        ("address 10.1.0.5", "address 10.9.9.9", "no interface has the address 10.1.0.5, the host has 10.9.9.9"),
        ("gpus 8", "gpus none", "there is no nvidia-smi in the PATH of commands over SSH"),
        ("gpus 8", "gpus 7", "nvidia-smi -L lists 7 GPUs, cluster.yaml says 8"),
    ],
)
def test_each_hindrance_is_told_with_what_was_seen(line: str, other: str, message: str) -> None:
    (found,) = why(parse_look(LOOK_OUTPUT.replace(f"{line}\n", f"{other}\n", 1)))
    assert message in found


@pytest.mark.parametrize(
    ("clock_s", "subject"),
    [
        (NOW_S, None),
        (NOW_S + 20, None),
        (NOW_S + 40, None),
        (NOW_S - 30, None),
        (NOW_S + 70, None),
        (NOW_S - 31, "its clock is 31 s behind this computer's"),
        (NOW_S + 71, "its clock is 31 s ahead of this computer's"),
    ],
)
def test_a_host_that_answers_late_makes_no_other_host_s_clock_wrong(clock_s: int, subject: str | None) -> None:
    """The look took 40 s: a clock between its beginning and its end is right."""
    found = hindrances(
        replace(LOOK, clock_s=clock_s), CONFIG, 0, cluster_id=OWN, began_s=float(NOW_S), ended_s=NOW_S + 40.0
    )
    assert [line.partition(":")[0] for line in found] == ([] if subject is None else [subject])


def test_its_own_cluster_is_no_hindrance() -> None:
    assert why(replace(LOOK, cluster_id=OWN)) == []


def test_infiniband_that_is_wanted_has_to_be_active() -> None:
    wanted = CONFIG.model_copy(update={"fabric": "infiniband"})
    assert why(LOOK, wanted) == []
    down = replace(LOOK, active_infiniband=(), infiniband=("mlx5_1:1",))
    assert "none of mlx5_1:1 is ACTIVE" in why(down, wanted)[0]
    assert "there is no InfiniBand port" in why(replace(LOOK, active_infiniband=(), infiniband=()), wanted)[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "was cut short: "),
        (LOOK_OUTPUT.replace("end yes\n", ""), "was cut short: clock"),
        (LOOK_OUTPUT.replace("sudo yes\n", ""), r"cannot be read \('sudo'\): clock"),
        (LOOK_OUTPUT.replace(f"clock {NOW_S}", "clock x"), r"cannot be read \(.* 'x'\): clock"),
        (
            LOOK_OUTPUT.replace(f"clock {NOW_S}", f"clock {'9' * 400}"),
            r"cannot be read \(a time that no clock shows: 999.*\): clock",
        ),
    ],
)
def test_a_look_that_was_cut_short_or_says_what_no_host_says_is_no_look(text: str, message: str) -> None:
    with pytest.raises(ProbeUnreadable, match=message):
        parse_look(text)


STORAGE = CONFIG.model_copy(
    update={
        "storage": HostsConfig.model_validate(
            {
                **CONFIG.model_dump(exclude={"ssh", "caps", "hosts", "storage"}),
                "hosts": ["10.1.0.5"],
                "ssh": {"user": "ada"},
                "storage": [
                    {"mount": "/data", "nfs": {"source": "10.1.0.9:/export"}},
                    {"mount": "/fast", "lustre": {"source": "10.1.0.20@tcp:/fs"}},
                ],
            }
        ).storage
    }
)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("free", None),
        ("ours", None),
        ("mounted", "/data: something is mounted there already"),
        ("unit", "/data: systemd has a unit for it, or /etc/fstab a line"),
        ("link", "/data: there is a symbolic link in it"),
        ("files", "/data: something lies there, which a mount would hide"),
    ],
)
def test_nothing_of_the_owner_s_is_hidden_by_a_mount(state: str, message: str | None) -> None:
    found = why(parse_look(LOOK_OUTPUT.replace("end yes", f"place {state} /data\nplace free /fast\nend yes")), STORAGE)
    assert (found == []) if message is None else (message in found[0] and len(found) == 1)


def test_a_line_that_a_login_prints_is_no_place() -> None:
    assert why(parse_look("place orders at the desk\nplace orders\n" + LOOK_OUTPUT), STORAGE) == []


def test_a_client_that_is_not_there_is_named_with_its_package_unless_something_may_bring_it() -> None:
    look = parse_look(
        LOOK_OUTPUT.replace("end yes", "lacks nfs\nplace free /data\nlacks lustre\nplace free /fast\nend yes")
    )
    lustre, nfs = why(look, STORAGE)
    assert nfs.startswith(
        "/data: there is no /sbin/mount.nfs, the client of NFS: install it, or list it under packages:"
    )
    assert "nfs-common on Ubuntu and Debian, nfs-utils on Red Hat" in nfs
    assert lustre.startswith("/fast: there is no /sbin/mount.lustre, the client of Lustre")
    assert why(look, STORAGE.model_copy(update={"packages": ("nfs-common",)})) == []


def test_a_host_is_asked_about_each_mount() -> None:
    assert look_command(STORAGE).endswith(" look /data nfs /fast lustre")

"""`clusterctl ssh` to one node, against a real sshd."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl_infra.plan.inventory import proxy_command

from tests.integration.cli.conftest import make_key
from tests.integration.cli.terminal import at_a_terminal
from tests.integration.cli.waiting import has_ended
from tests.unit.infra.plan.plan_cases import a_config, a_plan

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster


def test_a_command_gives_its_output_and_its_exit_code(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "2", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 7)


def test_words_after_the_options_reach_the_node_unchanged(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "train-1", "printf", "%s|", "a b", "$HOME", "--node", "*", "'")
    assert done.stdout == b"a b|$HOME|--node|*|'|"


def test_one_word_is_a_line_for_the_shell(steady_cluster: LoopbackCluster) -> None:
    assert steady_cluster.run("ssh", "--node", "0", "echo $((6*7)) | cat").stdout == b"42\n"
    assert steady_cluster.run("ssh", "--node", "0", "--command", "echo a; echo b").stdout == b"a\nb\n"


def test_stdin_and_any_bytes_pass_through(steady_cluster: LoopbackCluster) -> None:
    data = os.urandom(3_000_000)
    done = steady_cluster.run("ssh", "--node", "0", "cat", stdin=data)
    assert done.returncode == 0
    assert done.stdout == data


def test_a_command_that_does_not_read_its_stdin_still_ends(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "0", "true", stdin=b"x" * 8_000_000)
    assert done.returncode == 0


def test_a_stdin_that_cannot_be_read_is_not_taken_for_an_empty_one(steady_cluster: LoopbackCluster) -> None:
    argv = steady_cluster.command("ssh", "--node", "0", "cat && echo all of it")
    with open("/proc/self/mem", "rb") as broken:  # nothing is mapped where it begins
        done = subprocess.run(argv, stdin=broken, env=steady_cluster.environ, capture_output=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"clusterctl: stdin cannot be read: input/output error\n"


def test_a_command_ended_by_a_signal_has_the_shells_exit_code(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "0", "--json", "kill -KILL $$")
    assert done.returncode == 137
    assert json.loads(done.stdout)["signal"] == "KILL"


def test_a_changed_host_key_is_refused(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.change_host_key(2)
    done = loopback_cluster.run("ssh", "--node", "2", "echo", "secret")
    assert done.returncode == 255
    assert done.stdout == b""
    assert b"host key SHA256:" in done.stderr
    assert b"but the declared one is SHA256:" in done.stderr
    assert b"next: clusterctl replace" in done.stderr


def test_a_host_known_by_an_rsa_key_is_reached_by_every_client(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    """OpenSSH no longer signs by the name `ssh-rsa`: the fan-out, a login, a copy and plain ssh ask for newer ones."""
    loopback_cluster.declare_host_key(1, "rsa")
    assert loopback_cluster.run("ssh", "--node", "1", "echo in").stdout == b"in\n"
    with at_a_terminal(loopback_cluster.command("ssh", "--node", "1", "-t", "echo in"), loopback_cluster.environ) as it:
        assert "in\r\n" in it.rest()
    (tmp_path / "file").write_text("copied")
    copied = loopback_cluster.run("cp", str(tmp_path / "file"), f"1:{tmp_path}/copy")
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "copy").read_text() == "copied"
    (tmp_path / "config").write_bytes(loopback_cluster.run("ssh-config").stdout)
    argv = ["ssh", "-F", str(tmp_path / "config"), "train-1", "echo in"]
    assert subprocess.run(argv, capture_output=True, timeout=20, stdin=subprocess.DEVNULL).stdout == b"in\n"


def test_a_port_that_refuses_is_said_so(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.stop(1)
    done = loopback_cluster.run("ssh", "--node", "1", "true")
    assert done.returncode == 255
    assert b"refuses connections" in done.stderr


def test_a_port_that_says_nothing_is_waited_for_no_longer_than_asked(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.stop(1)
    with socket.create_server(("127.0.17.2", loopback_cluster.port)):
        done = loopback_cluster.run("ssh", "--node", "1", "--connect-timeout", "1", "true")
    assert done.returncode == 255
    assert b"says nothing (waited 1 s)" in done.stderr


def test_something_that_is_no_ssh_server_is_named_as_such(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.stop(1)
    script = (
        "import socket,sys; s=socket.create_server(('127.0.17.2', int(sys.argv[1]))); print(flush=True);"
        "c,_=s.accept(); c.sendall(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n'); c.close()"
    )
    argv = [sys.executable, "-c", script, str(loopback_cluster.port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        done = loopback_cluster.run("ssh", "--node", "1", "true")
    assert done.returncode == 255
    assert b"train-1" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_key_that_the_node_does_not_know_is_a_login_refused(loopback_cluster: LoopbackCluster) -> None:
    (loopback_cluster.folder / "login.pub").write_text("")
    done = loopback_cluster.run("ssh", "--node", "0", "true")
    assert done.returncode == 255
    assert b"does not let" in done.stderr


def test_a_missing_private_key_is_named(loopback_cluster: LoopbackCluster) -> None:
    (loopback_cluster.home / "keys" / "train" / "id_ed25519").unlink()
    done = loopback_cluster.run("ssh", "--node", "0", "true")
    assert done.returncode == 255
    assert b"id_ed25519 is not there" in done.stderr


def test_timeout_ends_the_command_on_the_node_too(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "0", "--timeout", "1", "echo $$; exec sleep 300")
    assert done.returncode == 255
    assert b"still ran after 1 s" in done.stderr
    assert has_ended(int(done.stdout))


@pytest.mark.parametrize("line", ["echo $$; exec sleep 300", "trap '' TERM; echo $$; sleep 300; sleep 301"])
def test_ctrl_c_ends_the_command_on_the_node_too(steady_cluster: LoopbackCluster, line: str) -> None:
    client = subprocess.Popen(
        steady_cluster.command("ssh", "--node", "0", line),
        env=steady_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    client.send_signal(signal.SIGINT)
    _, stderr = client.communicate(timeout=10)
    assert client.returncode == 130
    assert b"interrupted" in stderr
    assert has_ended(pid)


def test_a_node_is_reached_by_the_proxy_command(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.by_proxy("nc", "{host}", "{port}")
    done = loopback_cluster.run("ssh", "--node", "3", "echo", "by", "proxy")
    assert (done.stdout, done.returncode) == (b"by proxy\n", 0)


def test_a_private_node_is_reached_through_session_manager(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    """The command is the plan's own; the stand-ins for AWS's programs lead to a real sshd on this computer."""
    access = {"mode": "private"}
    way = proxy_command(a_config(access=access), a_plan(access=access))
    assert way is not None
    loopback_cluster.by_proxy(*way)
    wanted = " ".join(way).replace("{instance_id}", f"i-{2:017x}").replace("{port}", str(loopback_cluster.port))
    host = loopback_cluster.inventory.nodes[2].private_ip
    program = (
        f'#!/bin/sh\n[ "aws $*" = "{wanted}" ] && exec nc {host} {loopback_cluster.port}\necho "asked: aws $*" >&2\n'
    )
    for name, text in {"aws": program, "session-manager-plugin": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = loopback_cluster.run("ssh", "--node", "2", "echo", "by", "session", environ=environ)
    assert (done.stdout, done.returncode) == (b"by session\n", 0), done.stderr
    login = loopback_cluster.run("ssh", "--node", "2", stdin=b"exit 5\n", environ=environ)
    assert login.returncode == 5, login.stderr


def test_a_way_in_without_its_programs_says_what_to_install(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    loopback_cluster.by_proxy("aws", "ssm", "start-session", "--target", "{instance_id}")
    for arguments in (("true",), ()):
        done = loopback_cluster.run("ssh", "--node", "2", *arguments, environ={"PATH": str(tmp_path)})
        assert done.returncode == 255
        assert b"aws: install the AWS CLI" in done.stderr


def test_a_proxy_command_that_fails_says_why(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.by_proxy("sh", "-c", "echo no bastion today >&2; exit 3")
    done = loopback_cluster.run("ssh", "--node", "3", "true")
    assert done.returncode == 255
    assert b"no bastion today" in done.stderr


def test_a_proxy_command_that_is_not_installed_is_named(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.by_proxy("no-such-program", "{host}")
    done = loopback_cluster.run("ssh", "--node", "3", "true")
    assert done.returncode == 255
    assert b"no-such-program did not start" in done.stderr


def test_a_login_by_the_systems_ssh_believes_the_declared_key_only(loopback_cluster: LoopbackCluster) -> None:
    done = loopback_cluster.run("ssh", "--node", "2", stdin=b"echo logged in; exit 5\n")
    assert done.stdout.endswith(b"logged in\n")
    assert done.returncode == 5
    loopback_cluster.change_host_key(2)
    done = loopback_cluster.run("ssh", "--node", "2", stdin=b"echo logged in\n")
    assert done.returncode == 255
    assert b"logged in" not in done.stdout
    assert b"next: clusterctl replace --node 2 --cluster train" in done.stderr
    assert b"IDENTIFICATION" not in done.stderr, "OpenSSH is not even started"


def test_a_login_goes_through_the_proxy_command(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.by_proxy("sh", "-c", 'echo "100% by proxy" >&2; exec nc {host} {port}')
    done = loopback_cluster.run("ssh", "--node", "2", stdin=b"exit 5\n")
    assert done.returncode == 5
    assert b"100% by proxy" in done.stderr


@pytest.mark.parametrize("flags", [(), ("-t",)])
def test_of_keys_that_a_configuration_names_for_each_node_its_own_are_tried(
    loopback_cluster: LoopbackCluster, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Seven keys in all, and sshd takes six tries."""
    settings = tmp_path / ".ssh"
    settings.mkdir()
    blocks = []
    for slot in range(3):
        keys = [settings / f"other-{slot}-{number}" for number in range(2)]
        for key in keys:
            make_key(key)
        blocks += [f"Host train-{slot}", *(f"  IdentityFile {key}" for key in keys)]
    blocks += ["Host train-3", f"  IdentityFile {loopback_cluster.folder / 'login'}"]
    (settings / "config").write_text("\n".join(blocks) + "\n")
    inventory = loopback_cluster.inventory
    loopback_cluster.write_inventory(replace(inventory, ssh=replace(inventory.ssh, key_file=None)))
    persons = {"HOME": str(tmp_path), "SSH_AUTH_SOCK": ""}
    done = loopback_cluster.run("ssh", "--node", "3", *flags, "echo here", environ=persons)
    assert (done.returncode, done.stdout.strip()) == (0, b"here"), done.stderr

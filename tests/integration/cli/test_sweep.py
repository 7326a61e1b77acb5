"""`clusterctl sweep` over real sshd, with the rehearsal's nvidia-smi on the nodes."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any  # parsed JSON

import pytest

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.simulated_gpus import install_gpus


def lose_gpu_3(data: dict[str, Any]) -> None:
    data["gpus"][3]["lost"] = True


def heat_gpu_5(data: dict[str, Any]) -> None:
    data["gpus"][5].update(temperature_c=88, sm_mhz=1155, slowdowns=["hw_thermal_slowdown"])


def break_driver(data: dict[str, Any]) -> None:
    data["driver"] = "broken"


@pytest.fixture
def gpu_cluster(loopback_cluster: LoopbackCluster) -> LoopbackCluster:
    """Four nodes: one well, one hot, one that lost a GPU, one without its driver."""
    for slot, change in enumerate((lambda data: None, heat_gpu_5, lose_gpu_3, break_driver)):
        install_gpus(loopback_cluster, slot, change)
    return loopback_cluster


def test_every_node_is_judged_and_the_exit_code_says_so(gpu_cluster: LoopbackCluster) -> None:
    done = gpu_cluster.run("sweep", "--probe", "gpu,nvlink")
    text = done.stdout.decode()
    rows = {line.split()[0]: line for line in text.splitlines()[2:]}
    assert rows["train-0"].endswith("  ok")
    assert "gpu 5: thermal slowdown (88 °C; median" in rows["train-1"]
    assert "gpu 3: does not answer" in rows["train-2"]
    assert rows["train-2"].split()[1] == "7"
    assert "couldn't communicate with the NVIDIA driver" in rows["train-3"]
    assert "3 of 4 nodes have a fault" in done.stderr.decode()
    assert done.returncode == 4


def test_a_watched_sweep_looks_again_until_ctrl_c(steady_cluster: LoopbackCluster) -> None:
    argv = steady_cluster.command("sweep", "--watch", "1s", "--json", "--node", "0", "--probe", "load")
    with subprocess.Popen(
        argv, env=steady_cluster.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        looks = [json.loads(client.stdout.readline()) for _ in range(2)]
        client.send_signal(signal.SIGINT)
        _, stderr = client.communicate(timeout=15)
    assert [look["nodes"][0]["readings"]["load"]["cpus"] > 0 for look in looks] == [True, True]
    assert (client.returncode, stderr.strip()) == (130, b"clusterctl: interrupted")


def test_a_node_that_is_not_there_does_not_keep_the_others_from_being_judged(gpu_cluster: LoopbackCluster) -> None:
    gpu_cluster.stop(1)
    done = gpu_cluster.run("sweep", "--node", "0-1", "--json", "--probe", "gpu,versions,kernel,clock,disk,efa")
    report = json.loads(done.stdout)
    assert [node["wrong"] for node in report["nodes"]] == [False, True]
    assert report["nodes"][1]["error_class"] == "refused"
    readings = report["nodes"][0]["readings"]
    assert readings["gpu"]["is_simulated"] is True
    assert readings["versions"]["kernel"]
    assert readings["disk"]
    assert readings["troubles"] == {}
    assert done.returncode == 4
    assert b"next:" not in done.stderr
    done = gpu_cluster.run("sweep", "--node", "0-1", "--probe", "disk")
    assert done.stderr == b"1 of 2 nodes has a fault\n  next: clusterctl status --cluster train\n"

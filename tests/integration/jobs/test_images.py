"""Jobs in containers of an image on booted machines: their interpreter, requirements and setup command."""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.jobs.container_image import NAME, make_image, write_archive
from tests.integration.jobs.job_folders import mpi_words, new_name
from tests.integration.jobs.left_of_job import output_in_the_end
from tests.integration.jobs.test_launchers import MPI_SUM, ODD
from tests.integration.jobs.wheels import write_wheel
from tests.integration.rehearsed import CLUSTERCTL, Done, Rehearsed, run

LAUNCHER = ("--image", NAME, "--launcher", "plain")
IN_IMAGE = "test -x /usr/bin/mpirun && ! test -e /etc/clusterctl/ssh_key"
"""A node has no mpirun, and has that key."""
SET_UP = f"{IN_IMAGE} && python -c 'import os; print(os.getuid(), os.environ[\"SIZE\"])' >> made && echo $HOME"
SHOW = """\
import os, sys
print("in", os.environ["container"], sys.executable, "made", open("made").read().split())
"""
USES = """\
import os, pip, sys, tinypkg
print("version", tinypkg.VERSION, "in", os.environ["container"], sys.prefix == os.environ["VIRTUAL_ENV"], pip.__file__)
try:
    open(sys.prefix + "/planted", "w")
except OSError as e:
    print("environment:", e.strerror)
"""
FUNCTION = """\
import clusterctl

@clusterctl.App("imaged").function(
    cluster=%r, num_instances=2, image=%r, distributed_mode="manual",
    requirements=["--no-index", "--find-links wheels", "tinypkg"],
)
def version():
    import os, tinypkg
    return [os.environ["container"], tinypkg.VERSION]

if __name__ == "__main__":
    print(version.remote())
"""
REGISTRY = """\
import base64, hashlib, http.server, json, os, subprocess, tarfile
with tarfile.open("/tmp/image.tar") as tar:
    config, layer = (tar.extractfile(name).read() for name in ("config.json", "layer.tar"))
def row(kind, content):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": digest, "size": len(content)}
kind = "application/vnd.oci.image.manifest.v1+json"
rows = {"config": row("config.v1+json", config), "layers": [row("layer.v1.tar", layer)]}
manifest = json.dumps({"schemaVersion": 2, "mediaType": kind, **rows}).encode()
blobs = {row("", each)["digest"]: each for each in (config, layer, manifest)}
wanted = "Basic " + base64.b64encode(b"ada:%s").decode()
class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("/tmp/seen", "a") as seen:
            print(subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout, file=seen)
            for base, folders, files in os.walk("/run/clusterctl/registry-logins"):
                for path in (base, *(base + "/" + name for name in files)):
                    print("mode %%o of %%s" %% (os.stat(path).st_mode & 0o777, os.path.basename(path)), file=seen)
        is_known = self.headers.get("Authorization") == wanted
        name = self.path.split("/")[-1]
        content = b"" if self.path == "/v2/" else manifest if "/manifests/" in self.path else blobs.get(name, b"")
        self.send_response(200 if is_known else 401)
        self.send_header("WWW-Authenticate", 'Basic realm="test"')
        self.send_header("Content-Type", kind if "/manifests/" in self.path else "application/octet-stream")
        self.send_header("Content-Length", str(len(content) if is_known else 0))
        self.end_headers()
        if is_known and self.command == "GET":
            self.wfile.write(content)
    do_HEAD = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 5000), Registry).serve_forever()
"""
"""A registry that wants a password, on a node's loopback, and notes what processes and files show of the login."""
INSECURE = '[[registry]]\nlocation = "localhost:5000"\ninsecure = true\n'
PASSWORD = "drowssap9"
PRIVATE = "localhost:5000/private/tools:1"
FUNCTION_OF_PRIVATE = """\
import clusterctl

@clusterctl.App("private").function(
    cluster=%r, num_instances=1, image=%r, registry_secret="REGISTRY", distributed_mode="manual"
)
def times(number):
    return number * 3

if __name__ == "__main__":
    assert times.remote(4) == 12
"""
WORKFLOW_OF_PRIVATE = """\
workflow:
  name: private
  tasks: [{name: only, image: "%s", command: [python3, -c, "print(6)"]}]
"""


@pytest.fixture(scope="module")
def cluster(booted_pair: Rehearsed, tmp_path_factory: pytest.TempPathFactory) -> Rehearsed:
    """Two booted machines that are up and have the image."""
    archive = tmp_path_factory.mktemp("image") / "image.tar"
    write_archive(make_image(), archive)
    booted_pair.ok("cp", str(archive), "all:/tmp/image.tar")
    booted_pair.ok("ssh", "--node", "all", "--sudo", "--command", "podman load --quiet --input /tmp/image.tar")
    return booted_pair


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to start jobs from."""
    folder = tmp_path / "work"
    (folder / "wheels").mkdir(parents=True)
    write_wheel(folder / "wheels", "tinypkg", "1.2")
    (folder / "show.py").write_text(SHOW)
    (folder / "uses.py").write_text(USES)
    (folder / "mpi_sum.py").write_text(MPI_SUM)
    # pip is in the image alone: no wheel of it is here.
    (folder / "requirements.txt").write_text("--no-index\n--find-links wheels\ntinypkg>=1\npip\n")
    return folder


LEFT = "podman ps --all --quiet; ls -A /run/clusterctl/job-lease 2>/dev/null; true"


def started(cluster: Rehearsed, work: Path, *words: str) -> Done:
    return cluster.run("run", *LAUNCHER, "--workdir", str(work), *words)


def left(cluster: Rehearsed) -> str:
    """Containers and leases of all nodes."""
    return cluster.ok("ssh", "--node", "all", "--sudo", "--command", LEFT).strip()


def test_a_setup_command_runs_in_the_image_for_each_job_and_what_it_makes_in_the_job_s_folder_lasts(
    cluster: Rehearsed, work: Path
) -> None:
    for size in ("3", "4"):
        flags = ("--python", "/usr/bin/python3", "--setup", SET_UP, "--env", f"SIZE={size}")
        done = started(cluster, work, *flags, "--", "show.py")
        assert done.exit_code == 0, done.text
        assert done.stdout.count(f"in podman /usr/bin/python3 made ['1000', '{size}']") == 2, done.text
        assert "/usr/bin/python3 (Python 3." in done.stderr, done.text


def test_a_setup_command_that_fails_in_the_image_starts_nothing(cluster: Rehearsed, work: Path) -> None:
    done = started(cluster, work, "--node", "0", "--setup", "echo no such wheel; exit 3", "--", "show.py")
    assert done.exit_code == 1, done.text
    assert "was not started: Node 0" in done.stderr
    assert "--setup exited with code 3: no such wheel" in done.stderr
    gone = started(cluster, work, "--node", "0", "--python", "/opt/none/python3", "--", "show.py")
    assert gone.exit_code == 1, gone.text
    assert "/opt/none/python3 is no Python that can be run" in gone.stderr
    assert left(cluster) == ""


def test_a_run_that_is_interrupted_takes_its_setup_s_container_with_it(cluster: Rehearsed, work: Path) -> None:
    options = ("--workdir", str(work), "--node", "0", "--setup", "sleep 98763", "--", "show.py")
    argv = [CLUSTERCTL, "run", *LAUNCHER, *options]
    with subprocess.Popen(argv, env=cluster.env, cwd=cluster.folder, stderr=subprocess.PIPE) as running:
        begun = 'until [ -n "$(podman ps --quiet)" ]; do sleep 0.2; done'
        cluster.ok("ssh", "--node", "0", "--sudo", "--timeout", "1m", "--command", begun)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 130
    assert output_in_the_end(cluster, LEFT, "--sudo") == ""


def test_requirements_are_made_once_by_the_image_s_python_beside_what_the_image_has(
    cluster: Rehearsed, work: Path
) -> None:
    for _ in range(2):
        done = started(cluster, work, "--requirements", "requirements.txt", "--", "uses.py")
        assert done.exit_code == 0, done.text
        own = "version 1.2 in podman True /usr/lib/python3/dist-packages/pip/__init__.py"
        assert done.stdout.count(own) == 2, done.text
        assert done.stdout.count("environment: Read-only file system") == 2, done.text
    made = cluster.ok(
        "ssh", "--node", "all", "--command", "ls /var/lib/clusterctl/image-environments/*/made-by-clusterctl"
    )
    assert made.count("made-by-clusterctl") == 2, made
    assert left(cluster) == ""


def test_a_function_has_its_requirements_in_a_container_of_its_image(cluster: Rehearsed, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    write_wheel(tmp_path / "wheels", "tinypkg", "1.3")
    name = uuid.uuid4().hex[:8]
    (tmp_path / f"program{name}.py").write_text(FUNCTION % (cluster.name, NAME))
    done = run([sys.executable, f"program{name}.py"], env=cluster.env, cwd=tmp_path, timeout_s=170)
    assert done.exit_code == 0, done.text
    assert "['podman', '1.3']\n" in done.stdout


def mpi(work: Path, name: str, *words: str) -> tuple[str, ...]:
    return (*mpi_words(work, name, "--image", NAME), *words)


def test_mpirun_and_its_daemons_run_in_containers_of_the_image(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    done = cluster.run(*mpi(work, name, "--", "mpi_sum.py", *ODD))
    assert done.exit_code == 0, done.text
    for rank in range(4):
        places = [str(rank), "4", str(rank % 2), str(rank // 2)]
        printed = f"[rank {rank}] mpi rank {rank} of 4 sum 10 {places}"
        assert any(line.startswith(f"[Node {rank // 2}]") and printed in line for line in done.stdout.splitlines()), (
            done.text
        )
    assert done.stdout.count(repr(list(ODD))) == 4, done.text
    assert left(cluster) == ""


def test_the_rank_of_an_mpi_job_in_containers_that_failed_is_named_and_nothing_is_left(
    cluster: Rehearsed, work: Path
) -> None:
    name = new_name()
    done = cluster.run(*mpi(work, name, "--", "mpi_sum.py", "fail"))
    assert done.exit_code == 7, done.text
    assert f"{name}: failed: Node 1 ({cluster.name}-1): rank 2 (local rank 0) exited with code 7" in done.stderr
    assert left(cluster) == ""


def test_a_command_enters_the_container_of_mpirun_s_daemon_and_a_cancelled_job_leaves_none(
    cluster: Rehearsed, work: Path
) -> None:
    name = new_name()
    cluster.ok(*mpi(work, name, "--detach", "--", "mpi_sum.py", "wait"))
    cluster.wait_for_output(name, "mpi rank", times=4)
    look = "import os; print(os.environ['RANK'], os.environ['container'], os.environ['OMPI_COMM_WORLD_SIZE'])"
    assert cluster.ok("job", "exec", name, "--rank", "3", "--", "python3", "-c", look) == "3 podman 4\n"
    cluster.ok("job", "cancel", name)
    assert left(cluster) == ""


def fetched_by(what: str, cluster: Rehearsed, folder: Path) -> Done:
    """The end of a function's call, or a workflow, whose image node 0 does not have."""
    if what == "workflow":
        (folder / "private.yaml").write_text(WORKFLOW_OF_PRIVATE % PRIVATE)
        return cluster.run("workflow", "submit", str(folder / "private.yaml"), "--registry-secret", "REGISTRY")
    (folder / "private.py").write_text(FUNCTION_OF_PRIVATE % (cluster.name, PRIVATE))
    return run([sys.executable, "private.py"], env=cluster.env, cwd=folder, timeout_s=120)


def test_a_registry_s_password_fetches_the_image_and_stays_nowhere(
    cluster: Rehearsed, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "registry.py").write_text(REGISTRY % PASSWORD)
    (tmp_path / "insecure.conf").write_text(INSECURE)
    cluster.ok("cp", str(tmp_path / "registry.py"), str(tmp_path / "insecure.conf"), "0:/tmp/")
    serve = "cp /tmp/insecure.conf /etc/containers/registries.conf.d/ && systemd-run --quiet python3 /tmp/registry.py"
    listens = "until nc -z 127.0.0.1 5000; do sleep 0.1; done"
    cluster.ok("ssh", "--node", "0", "--sudo", "--timeout", "30s", "--command", f"{serve} && {listens}")
    private = ("--image", PRIVATE, "--registry-secret", "REGISTRY")
    options = ("run", *private, "--launcher", "plain", "--node", "0", "--workdir", str(work), "--")
    refused = cluster.run(*options, "python3", "-c", "print(6 * 7)", env={"REGISTRY": "ada:wrong-one"})
    assert refused.exit_code == 1, refused.text
    assert "was not started: Node 0" in refused.stderr
    assert "wrong-one" not in refused.text
    cluster = replace(cluster, env={**cluster.env, "REGISTRY": f"ada:{PASSWORD}"})
    done = cluster.run(*options, "python3", "-c", "import os; print(6 * 7, os.environ['container'])")
    assert done.exit_code == 0, done.text
    assert "42 podman" in done.stdout
    for refetched in ("function", "workflow"):
        cluster.ok("ssh", "--node", "0", "--sudo", "--command", f"podman untag {PRIVATE} {PRIVATE}")
        (tmp_path / refetched).mkdir()  # the folder of a function goes along, and the registry knows the password
        again = fetched_by(refetched, cluster, tmp_path / refetched)
        assert again.exit_code == 0, again.text
        assert PASSWORD not in again.text
    seen = cluster.ok("ssh", "--node", "0", "--sudo", "--command", "cat /tmp/seen")
    assert "podman pull --quiet --authfile /run/clusterctl/registry-logins/" in seen
    assert PASSWORD not in seen
    assert "mode 700 of registry-logins" in seen
    assert "mode 600 of config.json" in seen
    words = (PASSWORD, base64.b64encode(f"ada:{PASSWORD}".encode()).decode())
    look = (
        "ls -A /run/clusterctl/registry-logins; grep -rlE '%s' /var/lib/clusterctl /run/clusterctl /root /var/log; true"
    )
    assert cluster.ok("ssh", "--node", "0", "--sudo", "--command", look % "|".join(words)) == ""
    kept = [path for path in cluster.home.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert kept == []

"""The engine's AWS plugin is announced when it is fetched, once; a failure is one error with the command."""

from __future__ import annotations

import functools
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pulumi_engine
import pytest
from clusterctl.engine.aws_plugin import listed, provide_aws_plugin
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.output import Output
from clusterctl_infra.errors import EngineError

from tests.integration.rehearsed import BIN

WANTED = version("pulumi_aws")
SYSTEMS = ("linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64")


class Asked(SimpleHTTPRequestHandler):
    """Gives files, and writes no log."""

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[str]:
    """Where a plugin that does nothing is to be had, on this computer."""
    folder = tmp_path / "source"
    folder.mkdir()
    program = b"#!/bin/sh\nexit 1\n"
    for system in SYSTEMS:
        with tarfile.open(folder / f"pulumi-resource-aws-v{WANTED}-{system}.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo("pulumi-resource-aws")
            member.size, member.mode = len(program), 0o755
            archive.addfile(member, io.BytesIO(program))
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Asked, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def environment(tmp_path: Path, source: str, **more: str) -> EngineEnvironment:
    """Of an engine that has nothing, and looks for plugins at `source`."""
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
        "PULUMI_HOME": str(tmp_path / "pulumi"),
        "PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES": f".*={source}",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        **more,
    }
    return EngineEnvironment(
        env=env,
        rehearsal=False,
        executable=str(BIN / "pulumi"),
        config_file=tmp_path / "Pulumi.dev.yaml",
        run_token="1",
    )


def provided(engine: EngineEnvironment) -> str:
    """What a person saw."""
    screen = io.BytesIO()
    provide_aws_plugin(engine, Output(stdout=io.BytesIO(), stderr=screen, stdin=io.StringIO()))
    return screen.getvalue().decode()


def test_it_is_announced_fetched_once_and_afterwards_nothing_is_said(tmp_path: Path, source: str) -> None:
    engine = environment(tmp_path, source)
    seen = provided(engine)
    assert f"the engine's AWS plugin {WANTED} is not here: pulumi fetches it now" in seen
    assert "fetched in" in seen
    assert listed(engine) == {WANTED}
    assert provided(environment(tmp_path, "http://127.0.0.1:1")) == ""


def test_what_cannot_be_fetched_is_one_error_with_the_command(tmp_path: Path, source: str) -> None:
    with pytest.raises(EngineError, match=r"could not be fetched: .*404 HTTP error.*\. Nothing was changed") as failed:
        provided(environment(tmp_path, f"{source}/none"))
    assert failed.value.hint == f"pulumi plugin install resource aws {WANTED}"


def test_a_person_may_forbid_it(tmp_path: Path, source: str) -> None:
    with pytest.raises(EngineError, match="is not on this computer, and PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"):
        provided(environment(tmp_path, source, PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION="true"))


def test_one_on_path_is_enough(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "pulumi-resource-aws"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    assert provided(environment(tmp_path, "http://127.0.0.1:1", PATH=path)) == ""


@pytest.mark.parametrize(
    ("environ", "reason"), [({}, "is not fetched, 127.0.0.1 does not answer"), ({"CI": "true"}, "is not fetched in CI")]
)
def test_scripts_engine_says_when_it_did_not_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], reason: str
) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    line = pulumi_engine.aws_plugin(host=("127.0.0.1", 1), environ=environ)
    assert reason in line
    assert line.endswith("; the first clusterctl up on AWS fetches it")

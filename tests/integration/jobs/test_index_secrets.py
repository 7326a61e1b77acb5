"""The login of a package index is in no argument of a process while requirements are resolved and installed."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from clusterctl.on_node.job import own_python
from clusterctl.on_node.job.layout import Layout

TOKEN = "glpat-hush-hush"
SPEC = {"job": "train-1", "requirements": "requirements.txt"}
BACKEND = """\
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    import helper
    name = "built-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        wheel.writestr("built-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: built\\nVersion: 1.0\\n")
        wheel.writestr("built-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("built-1.0.dist-info/RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = ["helper"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def helper_wheel() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("helper.py", "")
        wheel.writestr("helper-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: helper\nVersion: 1.0\n")
        wheel.writestr("helper-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("helper-1.0.dist-info/RECORD", "")
    return content.getvalue()


def source_archive() -> bytes:
    """A package that has to be built, by what another package of the same index has."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in (("pyproject.toml", PROJECT), ("backend.py", BACKEND), ("PKG-INFO", "Name: built\n")):
            row = tarfile.TarInfo(f"built-1.0/{name}")
            row.size = len(text)
            tar.addfile(row, io.BytesIO(text.encode()))
    return content.getvalue()


class Index(ThreadingHTTPServer):
    """A package index that wants a login, and looks at all processes' arguments whenever it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.files = {"built-1.0.tar.gz": source_archive(), "helper-1.0-py3-none-any.whl": helper_wheel()}
        self.asked: list[str] = []
        self.seen: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://ada:{TOKEN}@127.0.0.1:{self.server_address[1]}/simple"


class Asked(BaseHTTPRequestHandler):
    """One request."""

    server: Index

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(f"ada:{TOKEN}".encode()).decode()
        if self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        name = self.path.rstrip("/").rpartition("/")[2]
        self.server.asked.append(name)
        self.server.seen += [words for words in arguments() if TOKEN.encode() in words]
        names = [each for each in self.server.files if each.startswith(name)]
        links = "".join(f'<a href="/files/{each}">{each}</a>' for each in names)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.files.get(name, links.encode()))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def arguments() -> Iterator[bytes]:
    """The arguments of every process."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue  # it has ended


class Run:
    """Runs as `Readying` does, without a node."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(
        self,
        argv: list[str],
        *,
        keeps_output: bool = False,
        stdin: str | None = None,
        variables: Mapping[str, str] | None = None,
        is_contained: bool = False,
        making: Path | None = None,
    ) -> tuple[int, str]:
        assert is_contained or argv[0] in ("head", "rm", "sh"), "an image's Python is not the node's"
        done = subprocess.run(
            argv,
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=120,
            env={"PATH": os.environ["PATH"], "HOME": str(self.log.parent), **(variables or {})},
        )
        with self.log.open("a") as log:
            log.write(done.stderr + ("" if keeps_output else done.stdout))
        return done.returncode, done.stdout if keeps_output and not done.returncode else done.stderr


@pytest.fixture
def index() -> Iterator[Index]:
    with Index() as index:
        thread = threading.Thread(target=index.serve_forever)
        thread.start()
        yield index
        index.shutdown()
        thread.join()


def test_the_login_of_an_index_is_in_no_argument_and_no_log(index: Index, tmp_path: Path) -> None:
    layout, run = Layout(tmp_path), Run(tmp_path / "ready.log")
    layout.code("train-1").mkdir(parents=True)
    place = own_python.environments(layout, SPEC)
    place.mkdir(parents=True)
    text = f"--index-url {index.url}\nbuilt\n# {'x' * 200_000}\n"
    (layout.code("train-1") / "requirements.txt").write_text(text)
    python = own_python.facts_of(sys.executable, run)
    lock = own_python.lock(layout, SPEC, python, run)
    made = own_python.environment_of(layout, SPEC, lock + f"# {'x' * 200_000}\n", python, run)
    assert list(made.glob("lib/python*/site-packages/built-1.0.dist-info"))
    assert index.asked.count("helper") == 2  # pip started itself to get it, for the lock and for the environment
    assert index.seen == []
    assert TOKEN not in run.log.read_text()
    holding = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert {path.parent for path in holding} == {layout.code("train-1"), place}
    assert [path.stat().st_mode & 0o077 for path in holding if path.parent == place] == [0]

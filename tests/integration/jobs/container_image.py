"""An image that needs no registry: this computer's Python, shell and Open MPI, and pip; for `podman load`."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

NAME = "localhost/test/tools:1"
PROGRAMS = ("sh", "cat", "flock", "ls", "mkdir", "rm", "sleep", "touch", "python3")
OLD_LIBRARIES = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")
"""Parts of glibc that programs of wheels still name."""
MPI_PROGRAMS = ("mpirun", "orted")
MPI_FOLDERS = (
    *("/usr/lib/{machine}/openmpi", "/usr/share/openmpi", "/etc/openmpi"),
    *("/usr/lib/{machine}/pmix2", "/usr/share/pmix", "/etc/pmix"),
)
LEFT_OUT = {"__pycache__", "test", "idlelib", "lib2to3", "pydoc_data"}
ACCOUNTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n"}
MAKE_IMAGE = (
    "cd / && tar -c bin lib lib64 usr/lib64 usr/bin/python3* usr/bin/sleep usr/lib/python3* usr/lib/*-linux-gnu"
    " usr/local/lib/python3*"
    " | podman import -q - test/python:1"
)
"""The node's own Python as an image: machines reach no registry."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """What a registry would give."""

    config: bytes
    layer: bytes

    @property
    def id(self) -> str:
        """The id by which engines know it."""
        return digest(self.config)


def digest(content: bytes) -> str:
    """`sha256:…`, as registries and engines write it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def make_image() -> Image:
    """Gives equal bytes each time, so that each node that loads it has the same image."""
    layer = _tar((path, path.lstrip("/")) for path in _paths())
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
    }
    return Image(config=json.dumps(config).encode(), layer=layer)


def write_archive(image: Image, path: Path, name: str = NAME) -> None:
    """The image as a file for `podman load`."""
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for member, content in (("manifest.json", manifest), ("config.json", image.config), ("layer.tar", image.layer)):
            _add(tar, member, content, 0o644)


def _paths() -> Iterator[str]:
    """Programs, the libraries that they load, Python's own modules, and pip of the Python that runs the tests."""
    machine = sysconfig.get_config_var("MULTIARCH") or os.uname().machine + "-linux-gnu"
    folders = [folder.format(machine=machine) for folder in MPI_FOLDERS]
    programs = [f"/usr/bin/{name}" for name in (*PROGRAMS, *MPI_PROGRAMS)]
    modules = _output("/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip()
    files = [path for folder in (*folders, modules) for path in _below(folder)]
    libmpi = next(iter(Path(f"/usr/lib/{machine}").glob("libmpi.so.40")))
    loaded = [*programs, str(libmpi), *(path for path in files if path.endswith(".so") or ".so." in path)]
    old = {f"/lib/{machine}/{name}" for name in OLD_LIBRARIES}
    yield from sorted({*programs, *files, str(libmpi), *old, *_libraries(loaded)})


def _below(folder: str) -> Iterator[str]:
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        yield from (os.path.join(base, name) for name in sorted(files))


def _libraries(files: Iterable[str]) -> set[str]:
    """What the loader finds for them, and the loader."""
    lines = _output("ldd", *files).splitlines()
    words = [line.split() for line in lines if "=> /" in line or line.strip().startswith("/lib")]
    return {word for row in words for word in row if word.startswith("/") and not word.endswith(":")}


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout


def _tar(members: Iterable[tuple[str, str]]) -> bytes:
    """Whole files, whatever links lead to them: names of programs and libraries stay those that are asked for."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for folder in ("tmp", "proc", "sys", "dev", "run"):
            row = tarfile.TarInfo(folder)
            row.type, row.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(row)
        for path, name in members:
            _add(tar, name, Path(path).read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        for name, text in ACCOUNTS.items():
            _add(tar, name, text.encode(), 0o644)
        for module in _pip():
            _add(tar, f"usr/lib/python3/dist-packages/{module.relative_to(_site())}", module.read_bytes(), 0o644)
        row = tarfile.TarInfo("bin")
        row.type, row.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(row)
    return stream.getvalue()


def _site() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _pip() -> list[Path]:
    """pip's modules, and the metadata that says that it is installed."""
    found = [path for folder in _site().glob("pip*") for path in folder.rglob("*")]
    return sorted(path for path in found if path.is_file() and path.suffix != ".pyc")


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    row = tarfile.TarInfo(name)
    row.size, row.mode = len(content), mode
    tar.addfile(row, io.BytesIO(content))

"""AWS's descriptions of its services, as botocore's files have them, read once in a process and quickly.

botocore's own loader looks into the folders of all 400 services before it reads one, and reads JSON with Python's
parser: making the clients of EC2 and STS took 150 ms of processor time with it, and takes 75 with ours (botocore 1.44,
2026-11-27).
"""

from __future__ import annotations

import functools
import gzip
import os
from pathlib import Path
from typing import Any  # JSON

from botocore.loaders import JSONFileLoader, Loader
from pydantic_core import from_json


class DescriptionFiles(JSONFileLoader):
    """Files of JSON, compressed or not."""

    def load_file(self, file_path: str) -> Any:
        """The content of the file with this path plus `.json` or `.json.gz`; None if there is none."""
        plain, compressed = Path(f"{file_path}.json"), Path(f"{file_path}.json.gz")
        if plain.is_file():
            return from_json(plain.read_bytes())
        return from_json(gzip.decompress(compressed.read_bytes())) if compressed.is_file() else None


class Descriptions(Loader):
    """botocore's loader, except that it looks only into the folder of the service that is asked for."""

    def list_available_services(self, type_name: str) -> list[str]:
        """The names of all folders: whether one has a file of that type shows when the file is read."""
        folders = [folder for folder in self.search_paths if os.path.isdir(folder)]
        return sorted({name for folder in folders for name in os.listdir(folder)})


@functools.cache
def descriptions(folders: str | None) -> Loader:
    """The loader that all clients of a process share.

    `folders`: more places to look in, as `AWS_DATA_PATH` has them.
    """
    paths = [os.path.expanduser(os.path.expandvars(path)) for path in (folders or "").split(os.pathsep) if path]
    return Descriptions(extra_search_paths=paths, file_loader=DescriptionFiles())

"""What `python3 -m pip list -v --format json` says of each package: name, version, location. Run as a program.

The folder that a package leaves is named after it and its version (packaging.python.org, "Recording installed
projects"), so no file is read; pip reads them all, which takes twenty times as long.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator

_FOLDER = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+?)(-py\d[\d.]*)?\.(dist|egg)-info")


def packages(folders: Iterable[str]) -> Iterator[dict[str, str]]:
    """The packages of `folders`; of several with one name, the one that is imported."""
    seen = set()
    for folder in folders:
        for entry in _entries(folder):
            found = _FOLDER.fullmatch(entry)
            if found is not None and (name := _name(found["name"])) not in seen:
                seen.add(name)
                yield {"name": name, "version": found["version"], "location": folder}


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # entries of the path need not be there, and may be archives
        return []


def _name(written: str) -> str:
    """The name with hyphens, as the language host expects it: it looks for names that begin with `pulumi-`."""
    return re.sub(r"[-_.]+", "-", written).lower()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list(packages([os.getcwd(), *sys.path[1:]]))))

"""Files that are whole or not there, however this process ends."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Makes `path` hold `text`; readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=str(path.parent), prefix=".clusterctl-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, str(path))
    except BaseException:
        os.unlink(temporary)
        raise


def replace_block(text: str, block: str, name: str) -> str:
    """`text` with the block marked `name` replaced by `block`, or added at the end."""
    begin, end = "# clusterctl %s begin\n" % name, "# clusterctl %s end\n" % name
    before, found, rest = text.partition(begin)
    after = rest.partition(end)[2] if found else ""
    if before and not before.endswith("\n"):
        before += "\n"
    return before + begin + block + end + after

"""The S3 server of a rehearsal: moto's, in its own process, over a folder that holds one folder for each bucket.

SIMULATED: a rehearsal cannot know which buckets there are on AWS, so every name is a bucket. A bucket starts with the
files in the folder of its name; what nodes write is kept in memory, until the network that the server is in is gone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any  # moto has no types

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

REGION = "us-east-1"
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def main(descriptor: int, folder: Path) -> None:
    """Serves on a listening socket until the process is killed."""
    make_server("", 0, application(folder), threaded=True, fd=descriptor).serve_forever()


def application(folder: Path) -> Application:
    """The WSGI application; a bucket is made when a request first names it."""
    served: Application = create_backend_app("s3")
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        bucket = str(environ["PATH_INFO"]).split("/")[1]
        with lock:
            if bucket and bucket not in _backend().buckets:
                _fill(bucket, folder / bucket)
        return served(environ, start_response)

    return answer


def _backend() -> Any:
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _fill(bucket: str, folder: Path) -> None:
    _backend().create_bucket(bucket, REGION)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _backend().put_object(bucket, str(path.relative_to(folder)), path.read_bytes())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

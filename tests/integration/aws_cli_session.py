"""Runs commands of the AWS CLI, each in a fork of one process that has loaded it: a start of its own takes a second.

Run by the Python that has the CLI (scripts/aws-cli). A command is a line of JSON on stdin: its words. Each is answered
by a line: exit code, what it wrote on stdout and on stderr.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

from awscli.clidriver import CLIDriver, create_clidriver  # as the program `aws` does

MODELS = ("service-2", "waiters-2", "paginators-1", "endpoint-rule-set-1")


def main() -> None:
    driver = create_clidriver()
    loader = driver.session.get_component("data_loader")
    for service in sys.argv[1:]:
        for model in MODELS:
            with contextlib.suppress(Exception):  # not every service has all of them
                loader.load_service_model(service, model)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answer(driver, json.loads(line))
        os.waitpid(child, 0)


def answer(driver: CLIDriver, words: list[str]) -> None:
    """Never returns."""
    stdout, stderr = io.StringIO(), io.StringIO()
    code: int | str | None = 255
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = driver.main(words)
    except SystemExit as e:
        code = e.code
    finally:
        print(json.dumps([code, stdout.getvalue(), stderr.getvalue()]), flush=True)
        os._exit(0)


main()

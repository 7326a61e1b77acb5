"""Output to a descriptor that does not wait."""

from __future__ import annotations

import io
import os
import threading

from clusterctl.system.whole_write import WholeWriter


def test_a_pipe_that_does_not_wait_gets_all_of_it() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    sent = bytes(range(256)) * 4000
    came = bytearray()

    def read() -> None:
        while chunk := os.read(reader, 65536):
            came.extend(chunk)

    thread = threading.Thread(target=read)
    stream = io.BufferedWriter(WholeWriter(writer))
    thread.start()
    stream.write(sent)  # many times what a pipe holds
    stream.flush()
    os.close(writer)
    thread.join()
    os.close(reader)
    assert bytes(came) == sent

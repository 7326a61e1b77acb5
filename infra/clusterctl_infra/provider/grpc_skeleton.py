"""What all our raw gRPC providers have in common: serving, ending with the parent, the handshake, errors, the log.

A provider is a subclass of `Plugin` with the CRUD methods it needs, given to `serve`. The engine starts it with the
address of its own log server as the last argument, reads the port from standard output, and hides all later output.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Literal, NoReturn

import grpc
from google.protobuf import empty_pb2

from clusterctl_infra.provider.messages import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)

MESSAGE_LIMIT_BYTES = 400 * 1024 * 1024
"""As the engine's own limit: a whole state can be one message."""
PARENT_POLL_S = 0.5
ENDING_S = 4.0
Severity = Literal["debug", "info", "warning", "error"]


class EngineLog:
    """Shows messages beside a resource; a log that cannot be reached is not an error."""

    def __init__(self, address: str | None) -> None:
        self._stub: engine_pb2_grpc.EngineStub | None = None
        if address is not None:
            self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))

    def say(self, urn: str, message: str, *, severity: Severity = "info", ephemeral: bool = False) -> None:
        """Shows `message` beside the resource; ephemeral ones only while it is being made."""
        if self._stub is None:
            return
        request = engine_pb2.LogRequest(
            severity=engine_pb2.LogSeverity.Value(severity.upper()),
            message=message,
            urn=urn,
            ephemeral=ephemeral,
        )
        with contextlib.suppress(grpc.RpcError):
            self._stub.Log(request, timeout=5)


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """The calls that are the same for every provider; `cancelled` is set when the engine calls Cancel."""

    def __init__(self, *, version: str, log: EngineLog) -> None:
        self.version = version
        self.log = log
        self.cancelled = threading.Event()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self.version)

    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self.cancelled.set()
        return empty_pb2.Empty()


def serve(make_plugin: Callable[[EngineLog], Plugin], argv: Sequence[str], *, threads: int = 64) -> int:
    """Serves the plugin until the engine is gone and returns 0; `argv` is sys.argv.

    The engine ends a plugin by SIGINT and waits 5 s for it (engine 3.250): the plugin finishes the calls that are under
    way, and ends. A person's Ctrl-C never arrives here, since plugins have process groups of their own; the engine
    answers it with Cancel. When the parent ends without a word (SIGKILL), the process ends at once, so nothing is made
    for an engine that no longer records it.
    """
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    address = argv[-1] if len(argv) > 1 and ":" in argv[-1] else None
    # Twice the engine's --parallel on AWS (`parallel_for` in the command line). In a large rehearsal, some calls wait.
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=threads),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
        ],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(make_plugin(EngineLog(address)), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(ENDING_S).wait()
    return 0


def run_as_process(make_plugin: Callable[[EngineLog], Plugin]) -> NoReturn:
    """Serves until the end and exits: the whole of a plugin's `__main__`.

    It skips the interpreter's shutdown, which takes 50 ms of a plugin's 250 while the engine waits.
    """
    code = serve(make_plugin, sys.argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def refuse(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Ends the call with an error whose text the person sees as it is."""
    context.abort(grpc.StatusCode.UNKNOWN, message)


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(0)

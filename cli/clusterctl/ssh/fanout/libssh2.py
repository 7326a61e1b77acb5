"""libssh2 as the fan-out uses it: sessions and channels that never block, errors as exceptions.

The library is the one inside the wheel of ssh2-python, called through ctypes: that package's own classes report neither
which signal ended a command nor that there was no exit status, and give 0 for both (1.2.0, checked 2026-11-21;
docs/adr/0011). What takes long lets other threads run. A session belongs to one thread at a time.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any  # functions of a shared library

from clusterctl_infra.errors import ClusterctlError

AGAIN = -37
"""The call would block: call it again, with the same arguments, when the socket is ready."""
BLOCKED_READING, BLOCKED_WRITING = 1, 2
BUFFER_BYTES = 32 * 1024
STDOUT, STDERR = 0, 1
BROKEN = frozenset({-7, -13, -43})
"""Errors of the socket: the connection is gone."""

_HOST_KEY_METHOD = 1
_BY_APPLICATION = 11
_SHARED_LIBRARY = "channel.*.so"

_POINTER, _TEXT, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_INT, _UNSIGNED = ctypes.c_int, ctypes.c_uint
_OUT = _POINTER
_PROTOTYPES = (
    ("init", _INT, (_INT,)),
    ("session_init_ex", _POINTER, (_POINTER, _POINTER, _POINTER, _POINTER)),
    ("session_set_blocking", None, (_POINTER, _INT)),
    ("session_method_pref", _INT, (_POINTER, _INT, _TEXT)),
    ("session_handshake", _INT, (_POINTER, _INT)),
    ("session_banner_get", _TEXT, (_POINTER,)),
    ("session_hostkey", _POINTER, (_POINTER, _OUT, _OUT)),
    ("session_last_errno", _INT, (_POINTER,)),
    ("session_last_error", _INT, (_POINTER, _OUT, _OUT, _INT)),
    ("session_block_directions", _INT, (_POINTER,)),
    ("session_disconnect_ex", _INT, (_POINTER, _INT, _TEXT, _TEXT)),
    ("session_free", _INT, (_POINTER,)),
    ("userauth_publickey_frommemory", _INT, (_POINTER, _TEXT, _SIZE, _TEXT, _SIZE, _TEXT, _SIZE, _TEXT)),
    ("agent_init", _POINTER, (_POINTER,)),
    ("agent_set_identity_path", None, (_POINTER, _TEXT)),
    ("agent_connect", _INT, (_POINTER,)),
    ("agent_list_identities", _INT, (_POINTER,)),
    ("agent_get_identity", _INT, (_POINTER, _OUT, _POINTER)),
    ("agent_userauth", _INT, (_POINTER, _TEXT, _POINTER)),
    ("agent_disconnect", _INT, (_POINTER,)),
    ("agent_free", None, (_POINTER,)),
    ("keepalive_config", None, (_POINTER, _INT, _UNSIGNED)),
    ("keepalive_send", _INT, (_POINTER, _OUT)),
    ("channel_open_ex", _POINTER, (_POINTER, _TEXT, _UNSIGNED, _UNSIGNED, _UNSIGNED, _TEXT, _UNSIGNED)),
    ("channel_process_startup", _INT, (_POINTER, _TEXT, _UNSIGNED, _TEXT, _UNSIGNED)),
    ("channel_read_ex", ctypes.c_ssize_t, (_POINTER, _INT, _POINTER, _SIZE)),
    ("channel_window_read_ex", ctypes.c_ulong, (_POINTER, _OUT, _OUT)),
    ("channel_write_ex", ctypes.c_ssize_t, (_POINTER, _INT, _TEXT, _SIZE)),
    ("channel_send_eof", _INT, (_POINTER,)),
    ("channel_eof", _INT, (_POINTER,)),
    ("channel_wait_closed", _INT, (_POINTER,)),
    ("channel_close", _INT, (_POINTER,)),
    ("channel_free", _INT, (_POINTER,)),
    ("channel_get_exit_status", _INT, (_POINTER,)),
    ("channel_get_exit_signal", _INT, (_POINTER, _OUT, _OUT, _OUT, _OUT, _OUT, _OUT)),
)
"""Name after `libssh2_`, result, arguments."""
_LONG = frozenset(
    {"session_handshake", "userauth_publickey_frommemory", "agent_connect", "agent_list_identities", "agent_userauth"}
)
"""Key arithmetic, and talk with an agent: other threads run meanwhile. All else takes less time than to release
and retake the interpreter's lock, which switches threads each time that another one waits for it."""
_READ = "libssh2_channel_read_ex"
_READ_BESIDE = "libssh2_channel_read_ex_beside_other_threads"


class Libssh2Error(Exception):
    """libssh2 refuses something, or has lost the connection; `code` is its number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Identity(ctypes.Structure):
    """struct libssh2_agent_publickey."""

    _fields_ = (
        ("magic", ctypes.c_uint),
        ("node", ctypes.c_void_p),
        ("blob", ctypes.POINTER(ctypes.c_ubyte)),
        ("blob_length", ctypes.c_size_t),
        ("comment", ctypes.c_char_p),
    )


class Session:
    """One connection's protocol on a socket that does not block; the caller closes the socket after `free`."""

    def __init__(self, connection: socket.socket) -> None:
        self._library = load()
        self._socket = connection
        self._handle = self._library.libssh2_session_init_ex(None, None, None, None)
        self._library.libssh2_session_set_blocking(self._handle, 0)
        self._agent: int | None = None

    def want_host_key(self, types: str) -> None:
        """Asks for only these kinds of host key, in this order. Raises Libssh2Error for kinds unknown to libssh2."""
        self.checked(self._library.libssh2_session_method_pref(self._handle, _HOST_KEY_METHOD, types.encode()))

    def handshake(self) -> int:
        """0 when keys are exchanged, or AGAIN."""
        return self.checked(self._library.libssh2_session_handshake(self._handle, self._socket.fileno()))

    def has_greeting(self) -> bool:
        """Whether the server has said which SSH it speaks; libssh2 has a banner even if only a proxy spoke."""
        return bytes(self._library.libssh2_session_banner_get(self._handle) or b"").startswith(b"SSH-")

    def host_key(self) -> bytes:
        """The key that the server proved to have."""
        length, kind = ctypes.c_size_t(), ctypes.c_int()
        data = self._library.libssh2_session_hostkey(self._handle, ctypes.byref(length), ctypes.byref(kind))
        return ctypes.string_at(data, length.value) if data else b""

    def log_in_with_key(self, user: bytes, private_key: bytes) -> int:
        """0 when logged in, or AGAIN. Raises Libssh2Error when the server refuses the key."""
        return self.checked(
            self._library.libssh2_userauth_publickey_frommemory(
                self._handle, user, len(user), None, 0, private_key, len(private_key), None
            )
        )

    def log_in_with_agent(self, user: bytes, public_key: bytes, agent_socket: str) -> int:
        """0 when logged in by the agent's key, or AGAIN. Raises Libssh2Error."""
        if self._agent is None:
            self._agent = self._library.libssh2_agent_init(self._handle)
            self._library.libssh2_agent_set_identity_path(self._agent, agent_socket.encode())
            self.checked(self._library.libssh2_agent_connect(self._agent))
            self.checked(self._library.libssh2_agent_list_identities(self._agent))
        for identity in self._identities(self._agent):
            held = identity.contents
            if ctypes.string_at(held.blob, held.blob_length) == public_key:
                return self.checked(self._library.libssh2_agent_userauth(self._agent, user, identity))
        raise Libssh2Error(-42, "the agent does not hold the key any more")

    def keep_alive_every(self, interval_s: int) -> None:
        """Says how often `ask_for_a_sign_of_life` really asks."""
        self._library.libssh2_keepalive_config(self._handle, 1, interval_s)

    def ask_for_a_sign_of_life(self) -> None:
        """Sends a question that a living server answers, if one is due. Raises Libssh2Error."""
        seconds = ctypes.c_int()
        self.checked(self._library.libssh2_keepalive_send(self._handle, ctypes.byref(seconds)))

    def open_channel(self, window_bytes: int) -> Channel | None:
        """A session channel; None when it must be called again. Raises Libssh2Error when refused."""
        handle = self._library.libssh2_channel_open_ex(self._handle, b"session", 7, window_bytes, BUFFER_BYTES, None, 0)
        if handle:
            return Channel(self, handle)
        code = int(self._library.libssh2_session_last_errno(self._handle))
        self.checked(code or AGAIN)
        return None

    def blocked_directions(self) -> int:
        """BLOCKED_READING, BLOCKED_WRITING or both: what the last call that returned AGAIN waits for."""
        return int(self._library.libssh2_session_block_directions(self._handle))

    def disconnect(self) -> None:
        """Says good-bye; never raises."""
        self._library.libssh2_session_disconnect_ex(self._handle, _BY_APPLICATION, b"", b"")

    def free(self) -> None:
        """Frees the memory; before the socket is closed, or libssh2 writes to whatever has that number next."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if self._agent is not None:
            self._library.libssh2_agent_disconnect(self._agent)
            self._library.libssh2_agent_free(self._agent)
        for _ in range(10):
            if self._library.libssh2_session_free(handle) != AGAIN:
                return

    def checked(self, code: int) -> int:
        """`code` when it is a result or AGAIN. Raises Libssh2Error for an error."""
        if code >= 0 or code == AGAIN:
            return code
        message, length = ctypes.c_char_p(), ctypes.c_int()
        self._library.libssh2_session_last_error(self._handle, ctypes.byref(message), ctypes.byref(length), 0)
        raise Libssh2Error(code, (message.value or b"").decode(errors="replace") or f"libssh2 error {code}")

    def _identities(self, agent: int) -> Iterator[Any]:
        previous = None
        while True:
            found = ctypes.POINTER(_Identity)()
            if self._library.libssh2_agent_get_identity(agent, ctypes.byref(found), previous) != 0:
                return
            yield found
            previous = found


class Channel:
    """A command's channel on a session."""

    def __init__(self, session: Session, handle: int) -> None:
        self._library = load()
        self._session = session
        self._handle = handle
        self._read = getattr(self._library, _READ)

    def execute(self, line: bytes) -> int:
        """0 when the server has started it, or AGAIN. Raises Libssh2Error when refused."""
        return self._call("process_startup", b"exec", 4, line, len(line))

    def read(self, stream: int, buffer: ctypes.Array[ctypes.c_char]) -> bytes:
        """What has come on stdout (0) or STDERR (1); empty when nothing has come, or no more will (`is_at_end`)."""
        length = self._session.checked(self._read(self._handle, stream, buffer, len(buffer)))
        if length == AGAIN:
            return b""
        if length == len(buffer):  # much comes: it is deciphered while other threads run
            self._read = getattr(self._library, _READ_BESIDE)
        return ctypes.string_at(buffer, length)

    def has_unread(self) -> bool:
        """Whether something lies here that came while another stream was read: the socket will not report it."""
        # Not libssh2_poll_channel_read: it gives up at the first packet shorter than five bytes, and the answer to a
        # keepalive is one that stays in the queue (libssh2 1.11, channel.c; seen 2026-11-21).
        waiting = ctypes.c_ulong()
        self._library.libssh2_channel_window_read_ex(self._handle, ctypes.byref(waiting), None)
        return waiting.value > 0

    def write(self, chunk: bytes) -> int:
        """How many bytes were taken, or AGAIN. Raises Libssh2Error."""
        return self._call("write_ex", 0, chunk, len(chunk))

    def send_eof(self) -> int:
        """0 when the end of input was sent, or AGAIN."""
        return self._call("send_eof")

    def is_at_end(self) -> bool:
        """Whether everything that will ever come on this channel has been read."""
        return bool(self._call("eof"))

    def wait_closed(self) -> int:
        """0 when the server has closed the channel, so that the exit status is known; or AGAIN."""
        return self._call("wait_closed")

    def exit_status(self) -> int:
        """The command's exit code; 0 also when there is none."""
        return int(self._library.libssh2_channel_get_exit_status(self._handle))

    def exit_signal(self) -> str | None:
        """`KILL` for a command that SIGKILL ended, else None."""
        name, length = ctypes.c_char_p(), ctypes.c_size_t()
        self._library.libssh2_channel_get_exit_signal(
            self._handle, ctypes.byref(name), ctypes.byref(length), None, None, None, None
        )
        return None if not name.value else name.value.decode(errors="replace")

    def close(self) -> int:
        """0 when the closing was sent, or AGAIN."""
        return self._call("close")

    def free(self) -> None:
        """Gives the channel up; after this it must not be used."""
        self._call("free")

    def _call(self, name: str, *arguments: object) -> int:
        function: Callable[..., int] = getattr(self._library, f"libssh2_channel_{name}")
        return self._session.checked(function(self._handle, *arguments))


@functools.cache
def load() -> Any:
    """The shared library with its prototypes. Raises ClusterctlError when the wheel is not there."""
    spec = importlib.util.find_spec("ssh2")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    files = [path for folder in folders for path in Path(folder).glob(_SHARED_LIBRARY)]
    if not files:
        raise ClusterctlError("the Python package ssh2-python is not installed", hint="pip install ssh2-python")
    # Names looked up through the extension module are found in the libssh2 that it is linked with. A PyDLL keeps the
    # interpreter's lock during a call, a CDLL releases it (ctypes, checked 2026-11-22).
    library: Any = ctypes.PyDLL(str(files[0]))
    beside: Any = ctypes.CDLL(str(files[0]))
    for name, result, arguments in _PROTOTYPES:
        symbol = f"libssh2_{name}"
        function = getattr(beside if name in _LONG else library, symbol)
        function.restype, function.argtypes = result, arguments
        setattr(library, symbol, function)
    read, read_beside = getattr(library, _READ), getattr(beside, _READ)
    read_beside.restype, read_beside.argtypes = read.restype, read.argtypes
    setattr(library, _READ_BESIDE, read_beside)
    library.libssh2_init(0)
    return library

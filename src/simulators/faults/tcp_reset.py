"""A connection that breaks: the other end sees a TCP reset, as after a crash or behind a hasty proxy.

The HTTP server keeps its sockets to itself, but they are descriptors of this process: the one whose other
end is the client is told to throw away what is unsent when it closes, and then that nothing more will come,
upon which the server closes it.
"""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from litestar.types import HTTPScope

DESCRIPTORS = Path("/dev/fd")
AT_ONCE = struct.pack("ii", 1, 0)  # linger: on, for no time


def reset_connection(scope: HTTPScope) -> None:
    assert scope["client"] is not None, "a TCP client has an address"
    host, port = scope["client"]
    for descriptor in DESCRIPTORS.iterdir():
        with suppress(OSError), _copied(int(descriptor.name)) as copy:
            if copy.getpeername() == (host, int(port)):  # the server gives the port as text
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                copy.shutdown(socket.SHUT_RD)
                return


def _copied(descriptor: int) -> socket.socket:
    """A copy: what it refers to cannot be closed, and its number be used again, while we look. Raises OSError
    for what is no socket, and keeps nothing of it open.
    """
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise

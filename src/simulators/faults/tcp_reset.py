"""TCP reset of a client's connection, as after a crash or behind a proxy with a short timeout.

The HTTP server does not expose its sockets, but they are descriptors of this process. The socket connected
to the client is set to discard unsent data on close and then shut down for reading, so that the server
closes it.
"""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from litestar.types import HTTPScope

DESCRIPTORS = Path("/dev/fd")
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 seconds


def reset_connection(scope: HTTPScope) -> None:
    assert scope["client"] is not None, "a TCP client has an address"
    host, port = scope["client"]
    for descriptor in DESCRIPTORS.iterdir():
        with suppress(OSError), _copied(int(descriptor.name)) as copy:
            if copy.getpeername() == (host, int(port)):  # the server passes the port as text
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                copy.shutdown(socket.SHUT_RD)
                return


def _copied(descriptor: int) -> socket.socket:
    """Returns a duplicate, so that the descriptor cannot be closed and reused during the comparison. Raises
    OSError for a descriptor that is not a socket, and leaves nothing open.
    """
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise

"""Where a server of ours listens, settled before anything is started."""

import random
import socket
from contextlib import suppress

# Below what the system hands out by itself: nobody's outgoing connection takes a port of these between the
# moment we chose it and the moment we listen.
OWN_PORTS = range(20_000, 32_000)
TRIES = 100


class PortTaken(RuntimeError):
    pass


def free_port(host: str, port: int) -> int:
    """The port to bind; 0 asks for any."""
    if port == 0:
        for chosen in random.sample(OWN_PORTS, TRIES):
            with suppress(OSError):
                return _bound(host, chosen)
    try:
        return _bound(host, port)
    except OSError as error:
        raise PortTaken(f"Cannot listen on {host}:{port}: {error.strerror}. Try --port.") from None


def _bound(host: str, port: int) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return probe.getsockname()[1]

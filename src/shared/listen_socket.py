"""Ports of our servers: bound once, before anything is started, and kept."""

import random
import socket
from contextlib import suppress

# Below what the system hands out by itself: no outgoing connection takes a port of these before we listen.
OWN_PORTS = range(20_000, 32_000)
TRIES = 100


class PortTaken(RuntimeError):
    pass


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the port, 0 for any, which no other process may share."""
    if port == 0:
        for chosen in random.sample(OWN_PORTS, TRIES):
            with suppress(OSError):
                return _bound(host, chosen)
    # A server that has just ended leaves connections behind: only a socket that reuses addresses may follow.
    with suppress(OSError):
        return _bound(host, port)
    try:
        return _bound(host, port, reuses_address=True)
    except OSError as error:
        raise _taken(host, port, error) from None


def listen(bound: socket.socket, backlog: int) -> None:
    """Accept connections. Of several sockets that reuse one address, the first to listen keeps it."""
    host, port = bound.getsockname()[:2]
    try:
        # Its connections inherit this, so that the next server may follow it.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.listen(backlog)
    except OSError as error:
        raise _taken(host, port, error) from None


def free_port(host: str, port: int) -> int:
    """A port that was free at this moment, for another process to bind; 0 asks for any."""
    with bind(host, port) as bound:
        return bound.getsockname()[1]


def _bound(host: str, port: int, *, reuses_address: bool = False) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuses_address))
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections inherit it
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _taken(host: str, port: int, error: OSError) -> PortTaken:
    return PortTaken(f"Cannot listen on {host}:{port}: {error.strerror}. Try --port.")

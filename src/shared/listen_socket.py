"""Listening sockets, bound once before the process starts anything else."""

import random
import socket
from contextlib import suppress

# Below the system's ephemeral range, so no outgoing connection takes one of these ports before we listen.
OWN_PORTS = range(20_000, 32_000)
TRIES = 100


class PortTaken(RuntimeError):
    pass


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the port (0: any free port) that no other process can share."""
    if port == 0:
        for chosen in random.sample(OWN_PORTS, TRIES):
            with suppress(OSError):
                return _bound(host, chosen)
    # The connections of a server that has just stopped block the port unless the new socket reuses addresses.
    with suppress(OSError):
        return _bound(host, port)
    try:
        return _bound(host, port, reuses_address=True)
    except OSError as error:
        raise _taken(host, port, error) from None


def listen(bound: socket.socket, backlog: int) -> None:
    """Accept connections. If several sockets reuse one address, the first to listen keeps it."""
    host, port = bound.getsockname()[:2]
    try:
        # Accepted connections inherit this option, so the next server can bind the port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.listen(backlog)
    except OSError as error:
        raise _taken(host, port, error) from None


def free_port(host: str, port: int) -> int:
    """Return a port that is free at this moment, for another process to bind; 0 means any port."""
    with bind(host, port) as bound:
        return bound.getsockname()[1]


def _bound(host: str, port: int, *, reuses_address: bool = False) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuses_address))
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit it
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _taken(host: str, port: int, error: OSError) -> PortTaken:
    return PortTaken(f"Cannot listen on {host}:{port}: {error.strerror}. Try --port.")

"""Listen address of the HTTP server."""

from dataclasses import dataclass

# Loopback address under which this machine reaches a server that listens on all addresses.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104


@dataclass(slots=True)
class ListenAddress:
    """``address`` is the URL for requests from this machine; None before the server listens."""

    address: str | None = None


def own_address(host: str, port: int) -> str:
    host = EVERYWHERE.get(host) or (f"[{host}]" if ":" in host else host)
    return f"http://{host}:{port}"

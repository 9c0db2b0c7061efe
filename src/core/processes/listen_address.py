"""Where this process answers HTTP."""

from dataclasses import dataclass

# Listening on every address, we are reached at this one from here.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104


@dataclass(slots=True)
class ListenAddress:
    """``address``: as this machine reaches it; None: it does not serve, or not yet."""

    address: str | None = None


def own_address(host: str, port: int) -> str:
    host = EVERYWHERE.get(host) or (f"[{host}]" if ":" in host else host)
    return f"http://{host}:{port}"

"""Address of an anonymous client. Headers set by the client itself are not trusted."""

from ipaddress import IPv6Address, ip_address

from litestar.types import HTTPScope

UNKNOWN = "unknown"


def client_address(scope: HTTPScope, proxy_hops: int) -> str:
    """Return the peer's address, or the address that our outermost proxy saw.

    Each of the ``proxy_hops`` proxies appends to X-Forwarded-For, so only that many entries from the right
    are trusted. All addresses of an IPv6 /64 count as one client, because one client owns the whole /64.
    """
    peer = scope["client"]
    address = peer[0] if peer else ""
    if proxy_hops:
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        entries = forwarded.decode("latin-1").split(",") if forwarded else []
        if len(entries) >= proxy_hops:
            address = entries[-proxy_hops].strip()
    try:
        parsed = ip_address(address)
    except ValueError:
        return UNKNOWN
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)

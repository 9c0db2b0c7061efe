"""Where an anonymous call comes from. What a client says of itself is not believed."""

from ipaddress import IPv6Address, ip_address

from litestar.types import HTTPScope

UNKNOWN = "unknown"


def client_address(scope: HTTPScope, proxy_hops: int) -> str:
    """The peer's address, or the one that our own outermost proxy saw: each of the ``proxy_hops`` proxies
    in front of us appends to X-Forwarded-For, so only that many entries from the right are true. An IPv6
    client owns a whole /64 and is counted as one.
    """
    peer = scope["client"]
    address = peer[0] if peer else ""
    if proxy_hops:
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        entries = forwarded.decode("latin-1").split(",") if forwarded else []
        if len(entries) >= proxy_hops:
            address = entries[-proxy_hops].strip()
    try:
        known = ip_address(address)
    except ValueError:
        return UNKNOWN
    if isinstance(known, IPv6Address):
        return str(known.ipv4_mapped or IPv6Address(int(known) >> 64 << 64))
    return str(known)

"""Policy for destination addresses: only public addresses receive tenants' requests."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IANA's special-purpose registries; the standard library's lists change between releases.
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and a cloud's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host service at a public address
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, and a cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved and broadcast
        "2001::/23",  # protocol assignments; Teredo, which embeds an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds an IPv4 address
        "3fff::/20",  # documentation
    )
)
# Addresses outside are unassigned, local, multicast, or embed an IPv4 address (mapped, NAT64).
_GLOBAL_IPV6 = IPv6Network("2000::/3")
PORTS = frozenset({80, 443, 8080, 8443})


@dataclass(frozen=True, slots=True)
class IpPolicy:
    """``ports``: None permits all. ``allowed``: networks that are permitted although they are not public."""

    https_only: bool = True
    ports: frozenset[int] | None = PORTS
    allowed: tuple[Network, ...] = ()

    def permits(self, address: Address) -> bool:
        if any(address in network for network in self.allowed):
            return True
        if isinstance(address, IPv6Address) and (address.scope_id or address not in _GLOBAL_IPV6):
            return False
        return not any(address in network for network in _NOT_PUBLIC)

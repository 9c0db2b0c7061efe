"""Client address that an anonymous request is counted under."""

import pytest

from shared.middleware.client_address import UNKNOWN, client_address

PEER = "198.51.100.1"


def counted(*forwarded, hops, peer=PEER):
    """Return the address for these X-Forwarded-For header lines."""
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in forwarded]
    return client_address({"client": (peer, 1) if peer else None, "headers": headers}, hops)


@pytest.mark.parametrize(
    ("hops", "forwarded", "address"),
    [
        (0, [], PEER),
        (0, ["203.0.113.9"], PEER),
        (1, ["203.0.113.9"], "203.0.113.9"),
        (1, ["1.1.1.1, 2.2.2.2,203.0.113.9"], "203.0.113.9"),
        (1, ["1.1.1.1", "2.2.2.2", "203.0.113.9"], "203.0.113.9"),
        (2, ["1.1.1.1, 203.0.113.9, 10.0.0.1"], "203.0.113.9"),
        (2, ["1.1.1.1, 203.0.113.9", "10.0.0.1"], "203.0.113.9"),
        (3, ["1.1.1.1,203.0.113.9, 10.0.0.2", " 10.0.0.1 "], "203.0.113.9"),
    ],
)
def test_each_proxy_makes_one_more_entry_from_the_right_trusted(hops, forwarded, address):
    assert counted(*forwarded, hops=hops) == address


@pytest.mark.parametrize(("hops", "forwarded"), [(1, []), (2, []), (2, ["203.0.113.9"]), (1, [""])])
def test_request_that_bypassed_the_proxies_is_counted_under_the_peer(hops, forwarded):
    assert counted(*forwarded, hops=hops) == PEER


@pytest.mark.parametrize(
    "garbage",
    ["x", "203.0.113.9.9", "203.0.113.256", "::1::", "1", "\xff", "203.0.113.9, ", "<script>", "0x7f.1"],
)
def test_invalid_trusted_entry_is_counted_as_unknown(garbage):
    assert counted(garbage, hops=1) == UNKNOWN


@pytest.mark.parametrize("garbage", ["x", "\xff\xfe", ",,,,", "a" * 10_000, "unknown", "[::1]:80"])
def test_untrusted_entries_are_ignored(garbage):
    assert counted(garbage, "203.0.113.9", hops=1) == "203.0.113.9"


@pytest.mark.parametrize(
    "address",
    ["2001:db8:1:2::1", "2001:db8:1:2:ffff::ffff", "2001:0DB8:0001:0002::", "2001:db8:1:2::1%0"],
)
def test_addresses_of_one_ipv6_64_are_one_client(address):
    assert counted(address, hops=1) == counted(hops=0, peer=address) == "2001:db8:1:2::"


def test_next_ipv6_64_is_another_client():
    assert counted("2001:db8:1:3::1", hops=1) == "2001:db8:1:3::"


@pytest.mark.parametrize("address", ["::ffff:203.0.113.9", "::FFFF:cb00:7109"])
def test_ipv4_mapped_address_is_the_ipv4_address(address):
    assert counted(address, hops=1) == "203.0.113.9"


def test_missing_address_is_counted_as_unknown():
    assert counted(hops=0, peer=None) == UNKNOWN

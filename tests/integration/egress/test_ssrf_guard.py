"""SSRF guard: checks of the URL and of the addresses to which its host resolves."""

import ipaddress

import pytest

from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.egress.ssrf_guard import EgressFailed, SsrfGuard
from infrastructure.egress.url import target_of
from tests.integration.egress.urls import INSIDE, MALFORMED, PUBLIC

LOCAL = IpPolicy(https_only=False, ports=None, allowed=(ipaddress.ip_network("127.0.0.0/8"),))


def guard(*addresses, policy=None):
    async def resolve(host, port):
        del host, port
        return list(addresses)

    return SsrfGuard(policy or IpPolicy(), resolve)


def test_corpus_has_at_least_120_urls():
    assert len({*MALFORMED, *INSIDE}) >= 120


@pytest.mark.parametrize("url", [*MALFORMED, *INSIDE], ids=ascii)
def test_internal_or_malformed_url_is_rejected(url):
    assert guard().objection(url)
    with pytest.raises(EgressFailed, match="address_forbidden"):
        guard().check(url)


@pytest.mark.parametrize("url", PUBLIC)
def test_public_url_is_accepted(url):
    assert guard().objection(url) is None
    assert guard().check(url).scheme == "https"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://HOOKS.example/x", "hooks.example:443"),
        ("http://hooks.example", "hooks.example:80"),
        ("https://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
    ],
)
def test_host_includes_its_port(url, host):
    assert guard().host(url) == host


ADDRESSES = [
    str(address) for url in INSIDE if url.startswith("https") and (address := target_of(url).address)
]


@pytest.mark.parametrize("address", ADDRESSES)
async def test_host_that_resolves_to_a_private_address_is_rejected(address):
    with pytest.raises(EgressFailed, match="address_forbidden"):
        await guard(address).addresses("hooks.example", 443)


async def test_one_private_address_among_public_ones_is_rejected():
    with pytest.raises(EgressFailed, match="address_forbidden"):
        await guard("1.1.1.1", "10.0.0.1").addresses("hooks.example", 443)


async def test_public_host_resolves_to_its_addresses():
    found = await guard("1.1.1.1", "2606:4700::1111").addresses("hooks.example", 443)

    assert [str(address) for address in found] == ["1.1.1.1", "2606:4700::1111"]


@pytest.mark.parametrize("addresses", [(), ("fe80::1%eth0",)])
async def test_host_without_valid_addresses_is_rejected(addresses):
    with pytest.raises(EgressFailed):
        await guard(*addresses).addresses("hooks.example", 443)


async def test_unknown_host_raises_host_unknown():
    async def resolve(host, port):
        raise OSError(host, port)

    with pytest.raises(EgressFailed, match="host_unknown"):
        await SsrfGuard(IpPolicy(), resolve).addresses("hooks.example", 443)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/x", "http://localhost:9000", "https://hooks.example"])
def test_allowed_local_network_is_accepted(url):
    assert guard(policy=LOCAL).objection(url) is None


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1", "http://169.254.169.254", "http://[::1]:9000", "http://0.0.0.0"]
)
def test_allowing_one_network_permits_no_other(url):
    assert guard(policy=LOCAL).objection(url)

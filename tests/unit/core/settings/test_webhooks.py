"""Settings of outgoing webhooks: signing key, and networks that tenants' endpoints may reach."""

import pytest

from core.settings.settings import SECRETS, InvalidSettings, read_settings
from core.wiring.slices.webhooks import egress_policy
from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.secrets.local_key import local_key
from tests.unit.core.settings.test_settings import SERVER


def errors(**environ):
    with pytest.raises(InvalidSettings) as refusal:
        read_settings(environ.get)
    return refusal.value.errors


def test_local_environment_allows_loopback_and_public_addresses_by_default():
    policy = egress_policy(read_settings({}.get))

    assert [str(network) for network in policy.allowed] == ["127.0.0.0/8", "::1/128"]
    assert (policy.https_only, policy.ports) == (False, None)


def test_local_environment_allows_the_configured_networks():
    settings = read_settings({"OSLIRA_EGRESS_ALLOW": "10.1.0.0/16, ::1"}.get)

    assert [str(network) for network in egress_policy(settings).allowed] == ["10.1.0.0/16", "::1/128"]


@pytest.mark.parametrize("environment", ["staging", "production"])
def test_server_allows_only_public_addresses_over_https(environment):
    settings = read_settings({**SERVER, "OSLIRA_ENVIRONMENT": environment}.get)

    assert egress_policy(settings) == IpPolicy()
    assert IpPolicy().https_only
    assert IpPolicy().ports == {80, 443, 8080, 8443}


def test_server_rejects_private_networks_for_egress():
    (wrong,) = errors(**SERVER, OSLIRA_EGRESS_ALLOW="10.0.0.0/8")

    assert wrong.startswith("OSLIRA_EGRESS_ALLOW: every tenant")


@pytest.mark.parametrize("network", ["10.0.0.0/33", "10.0.0.1/8", "example.com", "*"])
def test_invalid_network_is_rejected(network):
    (wrong,) = errors(OSLIRA_EGRESS_ALLOW=network)

    assert repr(network) in wrong


def test_a_short_key_is_refused_and_not_repeated():
    (wrong,) = errors(OSLIRA_WEBHOOK_SIGNING_KEY="canary")

    assert "at least 32 bytes" in wrong
    assert "canary" not in wrong


def test_the_key_may_come_from_the_secrets_manager_and_is_not_printed():
    settings = read_settings(SERVER.get)

    assert "OSLIRA_WEBHOOK_SIGNING_KEY" in SECRETS
    assert settings.webhooks.signing_key not in repr(settings.webhooks)


def test_generated_signing_key_is_stable_unique_and_private(tmp_path):
    path = tmp_path / "a" / "signing.key"
    key = local_key(path)

    assert local_key(path) == key
    assert len(key) == 32
    assert local_key(tmp_path / "b") != key
    assert path.stat().st_mode & 0o077 == 0

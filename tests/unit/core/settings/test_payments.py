"""Settings of Stripe: webhook secrets, API key and address."""

import pytest

from core.processes.listen_address import own_address
from core.settings.payments import LOCAL_SECRET
from core.settings.settings import SECRETS, InvalidSettings, read_settings
from tests.unit.core.settings.test_settings import SERVER

SECRET = "whsec_0123456789abcdefghijklmnopqrstuv"


def read(**environ):
    return read_settings(environ.get)


def errors(**environ):
    with pytest.raises(InvalidSettings) as refusal:
        read(**environ)
    return refusal.value.errors


@pytest.mark.parametrize(
    ("environ", "secrets"),
    [
        ({}, (LOCAL_SECRET,)),
        ({"STRIPE_SECRET_KEY": "sk_test_x"}, ()),
        ({"STRIPE_WEBHOOK_SECRETS": "whsec_new, whsec_old"}, ("whsec_new", "whsec_old")),
        (SERVER, ()),
        ({**SERVER, "OSLIRA_ENVIRONMENT": "staging"}, ()),
    ],
)
def test_simulators_secret_is_accepted_only_if_stripe_is_simulated_locally(environ, secrets):
    assert read(**environ).webhook_secrets == secrets


def test_a_server_with_a_key_of_stripes_needs_its_secret():
    (wrong,) = errors(**SERVER, STRIPE_SECRET_KEY="sk_live_x")

    assert "STRIPE_WEBHOOK_SECRETS" in wrong


def test_server_without_stripe_is_accepted():
    assert read(**SERVER).webhook_secrets == ()


def test_server_rejects_the_public_secret_of_the_simulator():
    (wrong,) = errors(**SERVER, STRIPE_WEBHOOK_SECRETS=LOCAL_SECRET)

    assert "simulator's secret is public" in wrong


@pytest.mark.parametrize("value", ["canary", "whsec_", "whsec_good canary"])
def test_invalid_webhook_secret_is_rejected_and_not_repeated(value):
    (wrong,) = errors(STRIPE_WEBHOOK_SECRETS=value)

    assert "STRIPE_WEBHOOK_SECRETS" in wrong
    assert "canary" not in wrong


def test_webhook_secrets_may_come_from_the_secrets_manager():
    assert "STRIPE_WEBHOOK_SECRETS" in SECRETS


def test_server_rejects_an_unencrypted_address_of_stripe():
    assert read(STRIPE_API_URL="http://127.0.0.1:8420/").providers.addresses == {
        "stripe": "http://127.0.0.1:8420"
    }
    (wrong,) = errors(**SERVER, STRIPE_API_URL="http://stripe.example")
    assert "STRIPE_API_URL" in wrong


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("box.example", "http://box.example:80"),
    ],
)
def test_own_address_is_reachable_from_this_machine(host, address):
    assert own_address(host, 80) == address


@pytest.mark.parametrize("secret", ["whsec_a", "whsec_" + "a" * 64, "whsec_0123456789"])
def test_server_rejects_a_webhook_secret_that_is_easy_to_guess(secret):
    (wrong,) = errors(**SERVER, STRIPE_WEBHOOK_SECRETS=f"{SECRET} {secret}")

    assert wrong.startswith("STRIPE_WEBHOOK_SECRETS: too short or too simple")
    assert read(STRIPE_WEBHOOK_SECRETS=secret).webhook_secrets == (secret,)


@pytest.mark.parametrize("key", ["sk_test_canary", "rk_test_canary"])
def test_production_rejects_a_test_key_of_stripe(key):
    environ = {**SERVER, "STRIPE_SECRET_KEY": key, "STRIPE_WEBHOOK_SECRETS": SECRET}

    (wrong,) = errors(**environ)

    assert wrong == "STRIPE_SECRET_KEY: a test key moves no money; use the live one."
    assert read(**{**environ, "OSLIRA_ENVIRONMENT": "staging"}).providers.real >= {"stripe"}

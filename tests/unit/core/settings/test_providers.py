"""Settings of the providers: real or simulated, and no simulated results in production."""

import pytest

from core.settings.settings import SECRETS, InvalidSettings, read_settings
from tests.unit.core.settings.test_settings import SERVER


def read(**environ):
    return read_settings(environ.get).providers


def errors(**environ):
    with pytest.raises(InvalidSettings) as refusal:
        read(**environ)
    return refusal.value.errors


@pytest.mark.parametrize(
    ("environ", "real", "simulated"),
    [
        ({}, set(), {"openai", "anthropic", "apify", "scraperapi", "stripe"}),
        ({"OPENAI_API_KEY": "k"}, {"openai"}, {"apify", "scraperapi", "stripe"}),
        ({"ANTHROPIC_API_KEY": "k", "APIFY_TOKEN": ""}, {"anthropic"}, {"apify", "scraperapi", "stripe"}),
        ({"APIFY_TOKEN": "k", "STRIPE_SECRET_KEY": "k"}, {"apify", "stripe"}, {"openai", "anthropic"}),
    ],
)
def test_simulated_provider_is_no_fallback_for_a_real_one(environ, real, simulated):
    providers = read(**environ)

    assert (providers.real, providers.simulated) == (real, simulated)


@pytest.mark.parametrize(
    ("missing", "word"), [("OPENAI_API_KEY", "simulated completions"), ("APIFY_TOKEN", "simulated profiles")]
)
def test_production_does_not_sell_simulated_results(missing, word):
    (wrong,) = errors(**{name: value for name, value in SERVER.items() if name != missing})

    assert missing in wrong
    assert word in wrong


def test_staging_may_do_without_providers():
    staging = {**SERVER, "OSLIRA_ENVIRONMENT": "staging", "OPENAI_API_KEY": "", "APIFY_TOKEN": ""}

    assert read(**staging).real == frozenset()


def test_claude_alone_is_enough_for_production():
    assert read(**{**SERVER, "OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "sk-ant"}).real == {
        "anthropic",
        "apify",
    }


def test_a_provider_may_be_somewhere_else():
    assert read(OPENAI_BASE_URL="http://127.0.0.1:9000/v1/").addresses == {
        "openai": "http://127.0.0.1:9000/v1"
    }


@pytest.mark.parametrize(
    "address", ["canary", "ftp://canary", "https://u:canary@h", "https://h?canary", "http://[canary"]
)
def test_invalid_address_is_rejected_without_repeating_it(address):
    (wrong,) = errors(ANTHROPIC_BASE_URL=address)

    assert wrong.startswith("ANTHROPIC_BASE_URL is not an address")
    assert "canary" not in wrong


def test_server_rejects_unencrypted_provider_addresses():
    (wrong,) = errors(**SERVER, OPENAI_BASE_URL="http://models.example/v1")

    assert wrong == "OPENAI_BASE_URL: keys and personal data must be encrypted; use https://"


@pytest.mark.parametrize("name", ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_AI_GATEWAY"])
def test_the_gateways_account_and_name_go_together(name):
    (wrong,) = errors(**{name: "x"})

    assert wrong.startswith("CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_AI_GATEWAY go together")


def test_models_of_tasks_are_given_as_pairs():
    models = read(OSLIRA_MODELS="analysis.light=gpt-5-mini, analysis.deep.core=gpt-5").models

    assert models == {"analysis.light": "gpt-5-mini", "analysis.deep.core": "gpt-5"}


@pytest.mark.parametrize("entry", ["analysis.light", "=gpt-5", "analysis.light="])
def test_invalid_pair_is_rejected(entry):
    (wrong,) = errors(OSLIRA_MODELS=entry)

    assert repr(entry) in wrong


@pytest.mark.parametrize("value", ["nan", "-1", "11", "x", "inf"])
def test_a_bad_scale_of_latency_is_refused(value):
    (wrong,) = errors(OSLIRA_SIMULATED_LATENCY=value)

    assert wrong == f"OSLIRA_SIMULATED_LATENCY is {value!r}; use a number from 0 to 10."


@pytest.mark.parametrize(("value", "scale"), [("", 0.1), ("0", 0.0), ("1.5", 1.5)])
def test_latency_is_scaled(value, scale):
    assert read(OSLIRA_SIMULATED_LATENCY=value).simulated_latency == scale


def test_repr_contains_no_key():
    providers = read(OPENAI_API_KEY="canary", CLOUDFLARE_AI_GATEWAY_TOKEN="canary")

    assert "canary" not in f"{providers!r} {providers!s} {[providers]}"


def test_every_key_may_come_from_the_secrets_manager():
    assert {
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "APIFY_TOKEN",
        "SCRAPER_API_KEY",
        "STRIPE_SECRET_KEY",
        "CLOUDFLARE_AI_GATEWAY_TOKEN",
    } <= set(SECRETS)

import random

import pytest

from simulators.faults.latency import RUN, Fixed, Latencies, Lognormal, Uniform


def draws(latency, count=4_000):
    chance = random.Random(1)
    return sorted(latency.draw_ms(chance) for _ in range(count))


def test_lognormal_latency_has_its_median_and_95th_percentile():
    found = draws(Lognormal("/", 6_000, 15_000))

    assert found[2_000] == pytest.approx(6_000, rel=0.05)
    assert found[3_800] == pytest.approx(15_000, rel=0.1)


def test_uniform_latency_stays_within_its_bounds():
    found = draws(Uniform("/", 100, 200))

    assert (found[0] >= 100, found[-1] <= 200) == (True, True)
    assert found[2_000] == pytest.approx(150, abs=5)


def test_default_latency_is_zero_without_a_scale_and_documented_with_one():
    latencies = Latencies(0.0)
    none = latencies.draw_s(RUN)
    latencies.set([], scale=0.1)

    found = sorted(latencies.draw_s(RUN) for _ in range(2_000))[1_000]
    assert none == 0
    assert found == pytest.approx(0.8, rel=0.1)
    assert latencies.draw_s("/auth/v1/invite") == 0


def test_set_latency_is_not_scaled_and_the_longest_route_applies():
    latencies = Latencies(0.1)
    latencies.set([Fixed("/openai", 10), Fixed("/openai/v1/responses", 20)], scale=None)

    assert latencies.draw_s("/openai/v1/embeddings") == 0.01
    assert latencies.draw_s("/openai/v1/responses") == 0.02


async def test_response_takes_the_set_time(simulators):
    await simulators.latency({"route": "/scraperapi", "distribution": "fixed", "ms": 300})

    answer = await simulators.http.get("/scraperapi/", params={"api_key": "k", "url": "https://example.com"})

    assert answer.elapsed.total_seconds() >= 0.3


@pytest.mark.parametrize(
    "body",
    [
        {"scale": -1},
        {"routes": [{"route": "/", "distribution": "fixed"}]},
        {"routes": [{"route": "/", "distribution": "normal", "ms": 1}]},
        {"routes": [{"route": "/", "distribution": "lognormal", "median_ms": 0, "p95_ms": 1}]},
        {"wrong": 1},
    ],
    ids=str,
)
async def test_invalid_latency_is_rejected(simulators, body):
    assert (await simulators.http.post("/_latency", json=body)).status_code == 400

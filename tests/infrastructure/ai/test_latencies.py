from infrastructure.ai.routing.latencies import Latencies


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def measured(*latencies_s, clock=None):
    latencies = Latencies(clock or Clock())
    for latency_s in latencies_s:
        latencies.add("task", "model", latency_s)
    return latencies


def test_too_few_samples_say_nothing():
    assert measured(*[1.0] * 19).p95_s("task", "model") is None
    assert measured(*[1.0] * 20).p95_s("task", "model") == 1.0


def test_nineteen_of_twenty_are_below_it_or_equal():
    assert measured(*range(100)).p95_s("task", "model") == 95


def test_each_task_at_each_model_has_its_own_pace():
    assert measured(*range(100)).p95_s("task", "another") is None


def test_only_the_newest_hundred_count():
    assert measured(*[50.0] * 1_000, *[1.0] * 100).p95_s("task", "model") == 1.0


def test_what_is_long_ago_does_not_count():
    clock = Clock()
    latencies = measured(*[1.0] * 50, clock=clock)
    clock.now_s = 601.0

    assert latencies.p95_s("task", "model") is None

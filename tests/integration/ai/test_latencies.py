from infrastructure.ai.routing.timing import Latencies


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def measured(*latencies_s, clock=None):
    latencies = Latencies(clock or Clock())
    for latency_s in latencies_s:
        latencies.add("task", "model", latency_s)
    return latencies


def test_p95_is_none_with_too_few_samples():
    assert measured(*[1.0] * 19).p95_s("task", "model") is None
    assert measured(*[1.0] * 20).p95_s("task", "model") == 1.0


def test_p95_of_one_hundred_samples():
    assert measured(*range(100)).p95_s("task", "model") == 95


def test_latencies_are_kept_per_task_and_model():
    assert measured(*range(100)).p95_s("task", "another") is None


def test_only_the_latest_hundred_samples_count():
    assert measured(*[50.0] * 1_000, *[1.0] * 100).p95_s("task", "model") == 1.0


def test_old_samples_do_not_count():
    clock = Clock()
    latencies = measured(*[1.0] * 50, clock=clock)
    clock.now_s = 601.0

    assert latencies.p95_s("task", "model") is None

import pytest


@pytest.fixture(autouse=True)
def captured_logs(logs):
    """Log entries are data in these tests and are not printed."""
    return logs

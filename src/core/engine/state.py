from dataclasses import dataclass


@dataclass(slots=True)
class EngineState:
    """State of this process's engine for the health check. ``executor`` is None while no engine runs."""

    is_wanted: bool = False
    executor: str | None = None

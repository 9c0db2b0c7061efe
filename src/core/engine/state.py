from dataclasses import dataclass


@dataclass(slots=True)
class EngineState:
    """Of this process, for the health page. ``executor``: as whom it works now; None: it does not, or not
    yet.
    """

    is_wanted: bool = False
    executor: str | None = None

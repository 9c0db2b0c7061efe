from shared.errors import Invalid, NotFound


class WindowInvalid(Invalid):
    code = "window_invalid"

    def __init__(self, days_max: int) -> None:
        super().__init__(days_max)
        self.days_max = days_max

    def __str__(self) -> str:
        return f"since has to lie before until, by {self.days_max} days at the most."


class RunWithoutCosts(NotFound):
    code = "run_without_costs"

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return f"No call is on record for run {self.run_id}: it called nobody, or too long ago, or never was."

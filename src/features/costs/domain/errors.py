from shared.errors import Invalid, NotFound


class WindowInvalid(Invalid):
    code = "window_invalid"
    text = "since has to lie before until, by {days_max} days at the most."


class RunWithoutCosts(NotFound):
    code = "run_without_costs"
    text = "No call is on record for run {run_id}: it called nobody, or too long ago, or never was."

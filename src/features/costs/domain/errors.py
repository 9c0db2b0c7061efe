from shared.errors import Invalid, NotFound


class WindowInvalid(Invalid):
    code = "window_invalid"
    text = "since must be before until, by at most {days_max} days."


class RunWithoutCosts(NotFound):
    code = "run_without_costs"
    text = "No provider call is stored for run {run_id}: it made none, they have expired, or it is unknown."

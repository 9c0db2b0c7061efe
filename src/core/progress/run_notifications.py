"""Handler of database notifications that updates the live runs of this process."""

from dataclasses import dataclass
from uuid import UUID

from features.runs.application.live_runs import LiveRuns
from shared.ids import AccountId

RUNS = "oslira_runs"
ACCESS = "oslira_access"
CHANNELS = (RUNS, ACCESS)


@dataclass(frozen=True, slots=True)
class RunNotifications:
    live: LiveRuns

    def hear(self, channel: str, message: str) -> None:
        words = message.split(" ")
        if channel == RUNS:
            _, run_id, version = words
            self.live.hear_change(run_id, int(version))
            return
        noun, name = words
        if noun == "account":
            self.live.hear_of_account(AccountId(UUID(name)))
        else:
            self.live.hear_of_caller(UUID(name))

    def hear_state(self, is_hearing: bool) -> None:  # noqa: FBT001  signature of the listener's callback
        self.live.hear(is_hearing=is_hearing)

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

    def on_notification(self, channel: str, message: str) -> None:
        words = message.split(" ")
        if channel == RUNS:
            _, run_id, version = words
            self.live.on_run_change(run_id, int(version))
            return
        noun, name = words
        if noun == "account":
            self.live.on_account_change(AccountId(UUID(name)))
        else:
            self.live.on_caller_change(UUID(name))

    def on_connection_change(self, is_listening: bool) -> None:  # noqa: FBT001  signature of the listener's callback
        self.live.set_listening(is_listening=is_listening)

"""Work that its process has lost goes back to the queue. The only file that uses what the engine calls
private: its public ways either forget how often a run was tried or take it from a living process.
"""

# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from collections.abc import Iterable

from dbos import DBOS
from dbos._dbos import _get_dbos_instance
from dbos._utils import INTERNAL_QUEUE_NAME, GlobalParams


def hand_on(executors: Iterable[str]) -> None:
    """Put the work of executors that are gone back into its queues. Harmless when repeated: what another
    has taken up meanwhile is no longer theirs. Blocks.
    """
    DBOS._recover_pending_workflows(list(executors))


def stop_claiming() -> None:
    """Take no more work; what runs goes on."""
    for event in _get_dbos_instance().background_thread_stop_events:
        event.set()


class OrphanedWorkflows:
    """Work that this process has claimed and does not do: the answer to its claim was lost with a
    connection, or nobody here knows that kind.
    """

    def __init__(self) -> None:
        self._suspects: frozenset[str] = frozenset()

    def hand_on(self) -> list[str]:
        """What was idle the last time and still is goes back to its queue; which it was. Blocks."""
        dbos = _get_dbos_instance()
        executor = GlobalParams.executor_id
        claimed = dbos._sys_db.get_pending_workflows(executor, GlobalParams.app_version)
        active = frozenset(dbos._active_workflows_set.activeList())
        idle = frozenset(workflow.workflow_id for workflow in claimed) - active
        strays = sorted(idle & self._suspects)
        for workflow_id in strays:
            dbos._sys_db.reenqueue_for_recovery(workflow_id, [executor], INTERNAL_QUEUE_NAME)
        self._suspects = idle
        return strays

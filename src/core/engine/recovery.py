"""Recovery of orphaned workflows.

The only module that uses private functions of DBOS: the public ones either reset the number of attempts or
take workflows from live workers.
"""

# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from collections.abc import Iterable

from dbos import DBOS
from dbos._dbos import _get_dbos_instance
from dbos._utils import INTERNAL_QUEUE_NAME, GlobalParams


def reassign(executors: Iterable[str]) -> None:
    """Re-enqueue the workflows of dead executors. Idempotent: a workflow that another executor has claimed
    since then is not touched. Blocks.
    """
    DBOS._recover_pending_workflows(list(executors))


def stop_claiming() -> None:
    """Stop dequeuing; active workflows continue."""
    for event in _get_dbos_instance().background_thread_stop_events:
        event.set()


class OrphanedWorkflows:
    """Workflows that this process has claimed but does not execute: the reply to the claim was lost with a
    connection, or their kind is not registered here.
    """

    def __init__(self) -> None:
        self._suspects: frozenset[str] = frozenset()

    def reassign(self) -> list[str]:
        """Re-enqueue workflows that were idle at the previous call and still are; returns the ids. Blocks."""
        dbos = _get_dbos_instance()
        executor = GlobalParams.executor_id
        claimed = dbos._sys_db.get_pending_workflows(executor, GlobalParams.app_version)
        active = frozenset(dbos._active_workflows_set.activeList())
        idle = frozenset(workflow.workflow_id for workflow in claimed) - active
        orphans = sorted(idle & self._suspects)
        for workflow_id in orphans:
            dbos._sys_db.reenqueue_for_recovery(workflow_id, [executor], INTERNAL_QUEUE_NAME)
        self._suspects = idle
        return orphans

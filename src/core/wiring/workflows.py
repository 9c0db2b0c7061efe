"""What carries out each kind of run."""

from core.engine.execution import Workflow
from core.wiring.costs import Books
from core.wiring.providers import Providers
from infrastructure.database.sessions import Database


def workflows_of(database: Database, books: Books, providers: Providers) -> tuple[Workflow, ...]:  # noqa: ARG001
    return ()

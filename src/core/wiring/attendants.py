"""What every worker attends to beside runs."""

from core.attendants import Attendant
from core.wiring.foundation import Foundation
from core.wiring.inbox import inbox_attendants


def attendants_on(foundation: Foundation) -> dict[str, Attendant]:
    return {**inbox_attendants(foundation)}

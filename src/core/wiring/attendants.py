"""What every worker attends to beside runs."""

from core.attendants import Attendant
from core.wiring.foundation import Foundation
from core.wiring.inbox import inbox_attendants
from core.wiring.notices import courier_on


def attendants_on(foundation: Foundation) -> dict[str, Attendant]:
    return {**inbox_attendants(foundation), "notices": courier_on(foundation).attend}

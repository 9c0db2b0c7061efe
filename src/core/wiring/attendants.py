"""What every worker attends to beside runs."""

from core.attendants import Attendant
from core.wiring.foundation import Foundation


def attendants_on(foundation: Foundation) -> dict[str, Attendant]:
    del foundation
    return {}

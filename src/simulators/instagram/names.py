"""Invented names of simulated people."""

import random

GIVEN_NAMES = (
    *("Ana", "Ben", "Clara", "David", "Elif", "Farah", "Greta", "Hugo", "Ines", "Jonas", "Kaya", "Leo"),
    *("Marta", "Nina", "Omar", "Paula", "Rosa", "Sami", "Tessa", "Victor"),
)
FAMILY_NAMES = (
    *("Adler", "Berg", "Costa", "Duarte", "Ekberg", "Fischer", "Garcia", "Hansen", "Ivanova", "Jansen"),
    *("Keller", "Lindqvist", "Moreau", "Novak", "Okafor", "Petrov", "Rossi", "Santos", "Tanaka", "Weber"),
)
STARTS = ("Ma", "Lo", "Ke", "Ti", "So", "Ra", "Ne", "Vi", "Da", "Jo", "El", "Bri", "Ca", "Fe", "Zu", "Ori")
MIDDLES = ("ra", "li", "no", "ve", "sa", "mi", "do", "le", "ta", "ni")
ENDS = ("n", "a", "o", "el", "ia", "us", "ine", "ar", "is", "enne")


def full_name(chance: random.Random) -> str:
    return f"{chance.choice(GIVEN_NAMES)} {chance.choice(FAMILY_NAMES)}"


def username(chance: random.Random) -> str:
    """Composed of syllables, so that two usernames are hardly ever equal."""
    joint = chance.choice((".", "_", ""))
    ending = chance.choice(("", "", "studio", "daily", "co", str(chance.randint(1, 99))))
    return f"{_syllables(chance)}{joint}{_syllables(chance)}{ending}".lower()[:30]


def _syllables(chance: random.Random) -> str:
    middle = chance.choice(MIDDLES) if chance.random() < 0.6 else ""  # noqa: PLR2004
    return chance.choice(STARTS) + middle + chance.choice(ENDS)

"""Invented names, composed of syllables."""

import random

STARTS = ("Ma", "Lo", "Ke", "Ti", "So", "Ra", "Ne", "Vi", "Da", "Jo", "El", "Bri", "Ca", "Fe", "Zu", "Ori")
MIDDLES = ("ra", "li", "no", "ve", "sa", "mi", "do", "le", "ta", "ni")
ENDS = ("n", "a", "o", "el", "ia", "us", "ine", "ar", "is", "enne")
FAMILY_ENDS = ("sson", "berg", "ini", "over", "wick", "mar", "dale", "escu", "hart", "owa")


def given_name(chance: random.Random) -> str:
    middle = chance.choice(MIDDLES) if chance.random() < 0.6 else ""  # noqa: PLR2004
    return chance.choice(STARTS) + middle + chance.choice(ENDS)


def full_name(chance: random.Random) -> str:
    family = chance.choice(STARTS) + chance.choice(MIDDLES) + chance.choice(FAMILY_ENDS)
    return f"{given_name(chance)} {family}"


def username(chance: random.Random) -> str:
    joint = chance.choice((".", "_", ""))
    ending = chance.choice(("", "", "studio", "daily", "co", str(chance.randint(1, 99))))
    return f"{given_name(chance)}{joint}{given_name(chance)}{ending}".lower()[:30]

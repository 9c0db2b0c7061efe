"""Word lists of the simulators."""

_COMMON = (
    "a an and are as at be but by for from has have i in is it its my of on or our so that the their they"
    " this to was we were what when which who will with you your"
)
_SCORES = "score fit confidence match likelihood probability relevance strength priority rating readiness"
_SHARES = "confidence probability likelihood ratio share"
_EVIDENCE = "evidence ids id posts post sources source references reference quotes citations"
_STEPS = (
    "none very_low poor cold no never reject",
    "low weak fair few rarely",
    "medium moderate average mid some sometimes warm maybe neutral partial",
    "high strong good many often yes accept",
    "very_high excellent hot always outstanding",
)

COMMON = frozenset(_COMMON.split())
SCORES = frozenset(_SCORES.split())  # a property with such a name is measured, never read from the prompt
SHARES = frozenset(_SHARES.split())  # fractions of 1, unless the schema sets other limits
EVIDENCE = frozenset(_EVIDENCE.split())  # properties that quote the prompt
STEPS = tuple(frozenset(step.split()) for step in _STEPS)  # levels, from low to high

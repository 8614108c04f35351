"""Studies: checks that turn measurements into figures and conclusions. Scenarios import the helpers from here."""

from plugpull.checks.base import Check, check_name
from plugpull.studies.alone import Alone, alone
from plugpull.studies.beside import Beside, beside
from plugpull.studies.recovery import RecoveryCost, recovery_cost
from plugpull.studies.scaling import Scales, scaling
from plugpull.studies.sustained import Sustained, sustained

_KINDS: tuple[type[Check], ...] = (Alone, Beside, RecoveryCost, Scales, Sustained)
STUDIES = frozenset(map(check_name, _KINDS))
"""The names of the studies."""

__all__ = [
    "STUDIES",
    "Alone",
    "Beside",
    "RecoveryCost",
    "Scales",
    "Sustained",
    "alone",
    "beside",
    "recovery_cost",
    "scaling",
    "sustained",
]

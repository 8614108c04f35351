"""Studies: checks that turn measurements into figures and conclusions. Scenarios import the helpers from here."""

from plugpull.checks.base import check_name
from plugpull.studies.alone import Alone, alone
from plugpull.studies.beside import Beside, beside
from plugpull.studies.scaling import Scales, scaling
from plugpull.studies.sustained import Sustained, sustained

STUDIES = frozenset(map(check_name, (Alone, Beside, Scales, Sustained)))
"""The names of the studies."""

__all__ = ["STUDIES", "Alone", "Beside", "Scales", "Sustained", "alone", "beside", "scaling", "sustained"]

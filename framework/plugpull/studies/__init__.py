"""Studies: checks that turn measurements into figures and conclusions. Scenarios import the helpers from here."""

from plugpull.checks.base import check_name
from plugpull.studies.alone import Alone, alone
from plugpull.studies.scaling import Scales, scaling

STUDIES = frozenset(map(check_name, (Alone, Scales)))
"""The names of the studies."""

__all__ = ["STUDIES", "Alone", "Scales", "alone", "scaling"]

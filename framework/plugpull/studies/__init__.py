"""Studies: checks that turn measurements into figures and conclusions. Scenarios import the helpers from here."""

from plugpull.checks.base import Check, check_name
from plugpull.studies.alone import Alone, alone
from plugpull.studies.arrays import ArrayRates, array_rates
from plugpull.studies.beside import Beside, beside
from plugpull.studies.caching import Caching, caching
from plugpull.studies.filesystems import FilesystemRates, filesystem_rates
from plugpull.studies.latency import Latency, latency
from plugpull.studies.power import PowerDrawn, power_drawn
from plugpull.studies.rebuilds import Rebuilds, rebuilds
from plugpull.studies.recovery import RecoveryCost, recovery_cost
from plugpull.studies.scaling import Scales, scaling
from plugpull.studies.sustained import Sustained, sustained
from plugpull.studies.transfer import TransferSize, transfer_size

_KINDS: tuple[type[Check], ...] = (
    Alone,
    ArrayRates,
    Beside,
    Caching,
    FilesystemRates,
    Latency,
    PowerDrawn,
    Rebuilds,
    RecoveryCost,
    Scales,
    Sustained,
    TransferSize,
)
STUDIES = frozenset(map(check_name, _KINDS))
"""The names of the studies."""

__all__ = [
    "STUDIES",
    "Alone",
    "ArrayRates",
    "Beside",
    "Caching",
    "FilesystemRates",
    "Latency",
    "PowerDrawn",
    "Rebuilds",
    "RecoveryCost",
    "Scales",
    "Sustained",
    "TransferSize",
    "alone",
    "array_rates",
    "beside",
    "caching",
    "filesystem_rates",
    "latency",
    "power_drawn",
    "rebuilds",
    "recovery_cost",
    "scaling",
    "sustained",
    "transfer_size",
]

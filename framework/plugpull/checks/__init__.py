"""Pure judgements of a history, one subject per file. Scenarios import the helpers from here."""

from plugpull.checks.answered import Answered, answered
from plugpull.checks.array_failed import ArrayFailed, array_failed
from plugpull.checks.array_survived import ArraySurvived, array_survived
from plugpull.checks.base import Check, Judgement, check_name, decode_check, encode_check
from plugpull.checks.blocked import NothingBlocked, nothing_blocked
from plugpull.checks.commands_in_time import CommandsInTime, commands_in_time
from plugpull.checks.data_intact import DataIntact, data_intact
from plugpull.checks.discovered import Discovered, discovered
from plugpull.checks.ended_with_error import EndedWithError, ended_with_error
from plugpull.checks.files_kept import FilesKept, files_kept
from plugpull.checks.found_again import FoundAgain, found_again
from plugpull.checks.kept_while_powered import KeptWhilePowered, kept_while_powered
from plugpull.checks.kernel_between import KernelBetween, kernel_between
from plugpull.checks.kernel_clean import KernelClean, kernel_clean
from plugpull.checks.kernel_state import StateKept, state_kept
from plugpull.checks.legs_hold import LegsHold, legs_hold
from plugpull.checks.no_culprit import NoCulprit, no_culprit
from plugpull.checks.no_errors import NoErrors, no_errors
from plugpull.checks.nothing_lost import NothingLost, nothing_lost
from plugpull.checks.nothing_stuck import NothingStuck, nothing_stuck
from plugpull.checks.other_units import OtherUnits, other_units
from plugpull.checks.pace import KeptPace, kept_pace
from plugpull.checks.properties import SameProperties, same_properties
from plugpull.checks.ready_under_load import ReadyUnderLoad, ready_under_load
from plugpull.checks.recovered import Recovered, recovered
from plugpull.checks.removed import Removed, removed
from plugpull.checks.residue import LeakSlope, NothingLeft, leak_slope, nothing_left
from plugpull.checks.resynced_by_bitmap import ResyncedByBitmap, resynced_by_bitmap
from plugpull.checks.returned import Returned, returned
from plugpull.checks.spinning import NothingSpins, nothing_spins
from plugpull.checks.undisturbed import Undisturbed, undisturbed
from plugpull.checks.unmountable import Unmountable, unmountable
from plugpull.checks.untouched import Untouched, untouched

__all__ = [
    "Answered",
    "ArrayFailed",
    "ArraySurvived",
    "Check",
    "CommandsInTime",
    "DataIntact",
    "Discovered",
    "EndedWithError",
    "FilesKept",
    "FoundAgain",
    "Judgement",
    "KeptPace",
    "KeptWhilePowered",
    "KernelBetween",
    "KernelClean",
    "LeakSlope",
    "LegsHold",
    "NoCulprit",
    "NoErrors",
    "NothingBlocked",
    "NothingLeft",
    "NothingLost",
    "NothingSpins",
    "NothingStuck",
    "OtherUnits",
    "ReadyUnderLoad",
    "Recovered",
    "Removed",
    "ResyncedByBitmap",
    "Returned",
    "SameProperties",
    "StateKept",
    "Undisturbed",
    "Unmountable",
    "Untouched",
    "answered",
    "array_failed",
    "array_survived",
    "check_name",
    "commands_in_time",
    "data_intact",
    "decode_check",
    "discovered",
    "encode_check",
    "ended_with_error",
    "files_kept",
    "found_again",
    "kept_pace",
    "kept_while_powered",
    "kernel_between",
    "kernel_clean",
    "leak_slope",
    "legs_hold",
    "no_culprit",
    "no_errors",
    "nothing_blocked",
    "nothing_left",
    "nothing_lost",
    "nothing_spins",
    "nothing_stuck",
    "other_units",
    "ready_under_load",
    "recovered",
    "removed",
    "resynced_by_bitmap",
    "returned",
    "same_properties",
    "state_kept",
    "undisturbed",
    "unmountable",
    "untouched",
]

"""Pure judgements of a history, one subject per file. Scenarios import the helpers from here."""

from plugpull.checks.base import Check, Judgement, check_name, decode_check, encode_check
from plugpull.checks.data.data_intact import DataIntact, data_intact
from plugpull.checks.data.kept_while_powered import KeptWhilePowered, kept_while_powered
from plugpull.checks.data.nothing_lost import NothingLost, nothing_lost
from plugpull.checks.dut.blocked import NothingBlocked, nothing_blocked
from plugpull.checks.dut.kernel_between import KernelBetween, kernel_between
from plugpull.checks.dut.kernel_clean import KernelClean, kernel_clean
from plugpull.checks.dut.kernel_state import StateKept, state_kept
from plugpull.checks.dut.no_culprit import NoCulprit, no_culprit
from plugpull.checks.dut.nothing_stuck import NothingStuck, nothing_stuck
from plugpull.checks.dut.residue import LeakSlope, NothingLeft, leak_slope, nothing_left
from plugpull.checks.dut.spinning import NothingSpins, nothing_spins
from plugpull.checks.files.files_kept import FilesKept, files_kept
from plugpull.checks.files.unmountable import Unmountable, unmountable
from plugpull.checks.raid.array_failed import ArrayFailed, array_failed
from plugpull.checks.raid.array_survived import ArraySurvived, array_survived
from plugpull.checks.raid.legs_hold import LegsHold, legs_hold
from plugpull.checks.raid.resynced_by_bitmap import ResyncedByBitmap, resynced_by_bitmap
from plugpull.checks.survivors.answered import Answered, answered
from plugpull.checks.survivors.no_errors import NoErrors, no_errors
from plugpull.checks.survivors.pace import KeptPace, kept_pace
from plugpull.checks.survivors.undisturbed import Undisturbed, undisturbed
from plugpull.checks.survivors.untouched import Untouched, untouched
from plugpull.checks.victims.commands_in_time import CommandsInTime, commands_in_time
from plugpull.checks.victims.discovered import Discovered, discovered
from plugpull.checks.victims.ended_with_error import EndedWithError, ended_with_error
from plugpull.checks.victims.found_again import FoundAgain, found_again
from plugpull.checks.victims.other_units import OtherUnits, other_units
from plugpull.checks.victims.properties import SameProperties, same_properties
from plugpull.checks.victims.ready_under_load import ReadyUnderLoad, ready_under_load
from plugpull.checks.victims.recovered import Recovered, recovered
from plugpull.checks.victims.removed import Removed, removed
from plugpull.checks.victims.returned import Returned, returned

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

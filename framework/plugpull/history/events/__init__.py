"""Everything that can be written in a history: one struct per kind of event.

``at`` is seconds on the DUT's CLOCK_MONOTONIC, the clock the kernel log is stamped with. What the controller
does is mapped onto it (see ``ClockMapped``); ``None`` means that no mapping existed yet. On a virtual bench every
scenario starts from a snapshot, so ``at`` starts again with each ``ScenarioBegun``.

The JSON field ``type`` names the kind, ``n`` is the number of the line (``seals.py``). Readers skip kinds and fields
they do not know, so both may be added without a new version of the history. A field of type ``Literal`` takes the
values that are listed there. A reader keeps other values, of a newer or a foreign history, as they are.
"""

from __future__ import annotations

from plugpull.history.events.arrays import (
    ArrayActed,
    ArrayAction,
    ArrayMade,
    ArrayState,
    LegReadBegun,
    LegReadEnded,
    LegReadPart,
)
from plugpull.history.events.base import Event
from plugpull.history.events.cuts import (
    CutArmed,
    CutSwitched,
    Edge,
    EdgePhase,
    FaultInjected,
    Healed,
    PortState,
)
from plugpull.history.events.disks import (
    CountedOutside,
    DiskAttached,
    DiskDetached,
    DiskMoved,
    DiskProperties,
    DiskRecovered,
    DiskStalled,
    DriveCacheSwitched,
    PropertiesMoment,
    RatesLifted,
    Sampled,
    SeenFromOutside,
)
from plugpull.history.events.dut import (
    Acted,
    ActionName,
    AgentLost,
    Census,
    CensusMoment,
    ClockMapped,
    ConsoleLine,
    DutDied,
    DutKind,
    DutReached,
    DutReady,
    DutState,
    DutSuspended,
    ProcessStuck,
    Residue,
    StateMoment,
    StepBegun,
    TimersMoment,
    TimersSet,
)
from plugpull.history.events.files import (
    FileLedgerPart,
    FileRoundBegun,
    FileRoundEnded,
    FileRoundPlanned,
    FileScanBegun,
    FileScanEnded,
    FileScanPart,
    FilesOver,
    FilesystemChecked,
)
from plugpull.history.events.integrity import (
    LedgerBegun,
    LedgerEnded,
    LedgerPart,
    ReadBackBegun,
    ReadBackEnded,
    ReadBackPart,
    StampingOver,
    StampingPlanned,
    WriteOrder,
)
from plugpull.history.events.kernel import (
    Activity,
    EarlierMessage,
    GracePeriod,
    KernelMessage,
    LogLost,
    MessageSource,
    TaskBlocked,
    Uevent,
)
from plugpull.history.events.load import (
    FioFigures,
    FioRan,
    LoadBegun,
    LoadEnded,
    LoadMode,
    LoadSettled,
    Measured,
    Verified,
)
from plugpull.history.events.power import MeterOpened, PowerSampled
from plugpull.history.events.run import (
    ErrorFault,
    ExpectedFinding,
    ExpectedShape,
    Judged,
    Note,
    Phase,
    PhaseName,
    RigFault,
    RunBegun,
    RunEnded,
    ScenarioBegun,
    ScenarioEnded,
    ScenarioError,
    ScenarioSkipped,
    Seal,
)
from plugpull.history.events.soak import DiskSetAside, LossCause, RunResumed, SamplingSet, SoakBegun

__all__ = [
    "HISTORY_VERSION",
    "Acted",
    "ActionName",
    "Activity",
    "AgentLost",
    "AnyEvent",
    "ArrayActed",
    "ArrayAction",
    "ArrayMade",
    "ArrayState",
    "Census",
    "CensusMoment",
    "ClockMapped",
    "ConsoleLine",
    "CountedOutside",
    "CutArmed",
    "CutSwitched",
    "DiskAttached",
    "DiskDetached",
    "DiskMoved",
    "DiskProperties",
    "DiskRecovered",
    "DiskSetAside",
    "DiskStalled",
    "DriveCacheSwitched",
    "DutDied",
    "DutKind",
    "DutReached",
    "DutReady",
    "DutState",
    "DutSuspended",
    "EarlierMessage",
    "Edge",
    "EdgePhase",
    "ErrorFault",
    "Event",
    "ExpectedFinding",
    "ExpectedShape",
    "FaultInjected",
    "FileLedgerPart",
    "FileRoundBegun",
    "FileRoundEnded",
    "FileRoundPlanned",
    "FileScanBegun",
    "FileScanEnded",
    "FileScanPart",
    "FilesOver",
    "FilesystemChecked",
    "FioFigures",
    "FioRan",
    "GracePeriod",
    "Healed",
    "Judged",
    "KernelMessage",
    "LedgerBegun",
    "LedgerEnded",
    "LedgerPart",
    "LegReadBegun",
    "LegReadEnded",
    "LegReadPart",
    "LoadBegun",
    "LoadEnded",
    "LoadMode",
    "LoadSettled",
    "LogLost",
    "LossCause",
    "Measured",
    "MessageSource",
    "MeterOpened",
    "Note",
    "Phase",
    "PhaseName",
    "PortState",
    "PowerSampled",
    "ProcessStuck",
    "PropertiesMoment",
    "RatesLifted",
    "ReadBackBegun",
    "ReadBackEnded",
    "ReadBackPart",
    "Residue",
    "RigFault",
    "RunBegun",
    "RunEnded",
    "RunResumed",
    "Sampled",
    "SamplingSet",
    "ScenarioBegun",
    "ScenarioEnded",
    "ScenarioError",
    "ScenarioSkipped",
    "Seal",
    "SeenFromOutside",
    "SoakBegun",
    "StampingOver",
    "StampingPlanned",
    "StateMoment",
    "StepBegun",
    "TaskBlocked",
    "TimersMoment",
    "TimersSet",
    "Uevent",
    "Verified",
    "WriteOrder",
]

HISTORY_VERSION = 1

AnyEvent = (
    RunBegun
    | RunEnded
    | ScenarioBegun
    | ScenarioEnded
    | ScenarioError
    | RigFault
    | Note
    | Phase
    | DutReady
    | ClockMapped
    | AgentLost
    | DutDied
    | DiskAttached
    | DiskDetached
    | DiskMoved
    | Uevent
    | KernelMessage
    | EarlierMessage
    | TimersSet
    | TaskBlocked
    | GracePeriod
    | Activity
    | DutState
    | DutSuspended
    | DiskProperties
    | DiskRecovered
    | DiskStalled
    | RatesLifted
    | DriveCacheSwitched
    | LogLost
    | ConsoleLine
    | Sampled
    | FaultInjected
    | CutArmed
    | Edge
    | CutSwitched
    | Healed
    | LoadBegun
    | LoadSettled
    | Measured
    | FioRan
    | MeterOpened
    | PowerSampled
    | LoadEnded
    | Verified
    | StampingPlanned
    | StampingOver
    | LedgerBegun
    | LedgerPart
    | LedgerEnded
    | ReadBackBegun
    | ReadBackPart
    | ReadBackEnded
    | FileRoundPlanned
    | FileRoundBegun
    | FileLedgerPart
    | FileRoundEnded
    | FileScanBegun
    | FileScanPart
    | FileScanEnded
    | FilesystemChecked
    | FilesOver
    | CountedOutside
    | SeenFromOutside
    | ProcessStuck
    | StepBegun
    | Acted
    | ArrayMade
    | ArrayState
    | ArrayActed
    | LegReadBegun
    | LegReadPart
    | LegReadEnded
    | Residue
    | Census
    | Judged
    | ScenarioSkipped
    | SoakBegun
    | RunResumed
    | DiskSetAside
    | SamplingSet
    | Seal
)

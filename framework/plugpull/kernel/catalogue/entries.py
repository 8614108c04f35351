"""Every kernel message that matters to storage on a cable, as one table.

Wording from the kernel's own sources: 6.12, and the older forms that are still in the field, back to 2.6.
"""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.messages_fatal import FATAL
from plugpull.kernel.catalogue.messages_fs import FS, MD
from plugpull.kernel.catalogue.messages_machine import MACHINE
from plugpull.kernel.catalogue.messages_storage import BLOCK, SCSI
from plugpull.kernel.catalogue.messages_usb import USB

ENTRIES: tuple[Entry, ...] = (*FATAL, *MACHINE, *USB, *MD, *FS, *BLOCK, *SCSI)
"""The first entry that matches a message wins: what is fatal comes first, filesystems before the disks they name."""

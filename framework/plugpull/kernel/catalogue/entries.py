"""Every kernel message that matters to storage on a cable, as one table.

The wording is from the kernel's sources: Linux 6.12, and older forms back to 2.6 that are still in use.
"""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.messages_fatal import FATAL
from plugpull.kernel.catalogue.messages_fs import FS, MD
from plugpull.kernel.catalogue.messages_machine import MACHINE
from plugpull.kernel.catalogue.messages_storage import BLOCK, SCSI
from plugpull.kernel.catalogue.messages_usb import USB

ENTRIES: tuple[Entry, ...] = (*FATAL, *MACHINE, *USB, *MD, *FS, *BLOCK, *SCSI)
"""The first entry that matches a message wins. Fatal messages come first, filesystems before the disks they name."""

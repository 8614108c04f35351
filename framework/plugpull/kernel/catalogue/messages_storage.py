"""Messages of the SCSI midlayer, its disk driver and the block layer."""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import E, Entry, N

_TYPES = (
    "Direct-Access|CD-ROM|Enclosure|Processor|Sequential-Access|Optical Device|Optical Memory|WORM|Medium Changer"
    "|RBC|Object Storage|Scanner|Printer|Host-?managed|Direct-Access-ZBC|Unknown"
)

SCSI: tuple[Entry, ...] = (
    Entry(
        "scsi.offline",
        E,
        r"Device offlined - not ready after error|(?:device|Device) offlined\b|rejecting I/O to (?:offline|dead) device"
        r"|device offline or changed|rejecting I/O to device being removed|^sd \S+ .*offline device",
        "drivers/scsi/scsi_error.c, drivers/scsi/scsi_lib.c",
        "sd 2:0:0:0: rejecting I/O to offline device",
    ),
    Entry(
        "scsi.reset",
        E,
        r"Power-on or device reset occurred|(?:Bus|Target|Device|LUN) reset (?:detected|occurred)"
        r"|(?:scsi|Scsi) ?(?:bus|host) (?:reset|is being reset)|I_T nexus loss occurred",
        "drivers/scsi/scsi_error.c",
        "sd 2:0:0:0: Power-on or device reset occurred",
    ),
    Entry(
        "storage.cache-error",
        E,
        r"Synchroni[sz]e Cache\(\d+\) failed|Synchronizing SCSI cache failed",
        "drivers/scsi/sd.c",
        "sd 2:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR",
    ),
    Entry(
        "scsi.error",
        E,
        r"FAILED Result: |\bResult: hostbyte=|Sense Key ?: |\b(?:Current|Deferred|<<?DEFERRED>?>?)?:? ?sense key[: ]"
        r"|Add\. Sense: |Additional sense: |\bASC=|\bCDB: ?|(?:timing out command|Done: TIMEOUT)|SCSI error: return code"
        r"|[Ss]ense not available|Unit Not Ready|Test Unit Ready failed|READ CAPACITY(?:\(\d+\))? failed"
        r"|Read Capacity(?:\(\d+\))? failed|Mode Sense.* failed|: status=\w+, message=\w+, host=|killing request"
        r"|Start/Stop Unit failed|Spinning up disk.*(?:not responding|fail)",
        "drivers/scsi/scsi_logging.c, drivers/scsi/sd.c",
        "sd 2:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
    ),
    Entry(
        "storage.cache",
        N,
        r"Write cache: |[Aa]ssuming drive cache: |Synchroni[sz]ing SCSI cache|No Caching mode page (?:found|present)"
        r"|Asking for cache data failed|[Gg]ot wrong page|drive cache: write|Cache data unavailable"
        r"|cache: (?:enabled|disabled)|[Uu]ses READ/WRITE\(\d+\).*DPO|Uninitialized command protection",
        "drivers/scsi/sd.c",
        "sd 2:0:0:0: [sdb] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA",
    ),
    Entry(
        "storage.attach",
        N,
        r"\d+-byte (?:logical blocks|hardware sectors|hdwr sectors)|\b[Aa]ttached (?:SCSI|scsi) (?!generic)"
        rf"|^scsi(?: host)? ?\S*:? +(?:{_TYPES}) .*(?:PQ|ANSI)|^ *Vendor: .* Model: |^ *Type: +(?:{_TYPES}) ",
        "drivers/scsi/sd.c, drivers/scsi/scsi_scan.c",
        "sd 2:0:0:0: [sdb] Attached SCSI removable disk",
    ),
)

BLOCK: tuple[Entry, ...] = (
    Entry(
        "block.error",
        E,
        r"(?:I/O|offline|timeout|target|medium|link|nexus|space|protection|resource|allocation|limit|device) error, dev \S+,"
        r" sector \d+| error, dev \S+, sector \d+",
        "block/blk-core.c",
        "I/O error, dev sdb, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2",
    ),
    Entry(
        "block.error",
        E,
        r"Buffer I/O error on dev|lost (?:async |sync )?page write|[Uu]nable to read partition table"
        r"|(?:end_request|blk_update_request|print_req_error): \S+ error|Disk read failed|unable to read RDB block",
        "fs/buffer.c, block/partitions/core.c",
        "Buffer I/O error on dev sdb1, logical block 0, async page read",
    ),
    Entry(
        "block.error",
        E,
        r"attempt to access beyond end of device|detected capacity change from [1-9]\d* to [1-9]|^\S+: rw=\w+, (?:want|sector)=\d+, (?:limit|nr_sectors)",
        "block/blk-core.c",
        "attempt to access beyond end of device",
    ),
)

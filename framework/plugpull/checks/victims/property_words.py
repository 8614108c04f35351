"""The properties of a disk that are compared after a return and at the end, with the wording of a difference."""

AFTER_RETURN = {
    "driver": "is driven by {now} instead of {was}",
    "ro": "is {now} instead of {was}",
    "write_cache": "has its write cache as {now} instead of {was}",
    "fua": "has FUA {now} instead of {was}",
    "size": "has {now} instead of {was}",
    "logical_block_size": "has logical blocks of {now} instead of {was} bytes",
    "physical_block_size": "has physical blocks of {now} instead of {was} bytes",
    "max_sectors_kb": "takes requests of {now} KiB instead of {was} KiB",
    "max_hw_sectors_kb": "takes requests of {now} KiB at most instead of {was} KiB",
    "queue_depth": "takes {now} commands at once instead of {was}",
    "rotational": "counts as {now} instead of {was}",
    "removable": "counts as {now} instead of {was}",
    "revision": "says that its revision is {now} instead of {was}",
    "max_segments": "takes requests of {now} segments instead of {was}",
    "max_segment_size": "takes segments of {now} bytes instead of {was}",
    "minimum_io_size": "wants requests of {now} bytes instead of {was} at least",
    "optimal_io_size": "wants requests of {now} bytes instead of {was} at best",
    "stable_writes": "has stable writes {now} instead of {was}",
    "discard_max_bytes": "discards {now} bytes at once instead of {was}",
    "rx_lanes": "receives on {now} lanes instead of {was}",
    "tx_lanes": "sends on {now} lanes instead of {was}",
    "usb_version": "speaks USB {now} instead of {was}",
}
"""The properties that must be the same after a return, with the wording of a difference. Power management is not among
them: on a real DUT, udev sets it at any time after the disk was announced."""
WITHOUT_UDEV = {
    "timeout": "has a command timeout of {now} s instead of {was} s",
    "scheduler": "has the schedulers {now} instead of {was}",
    "nr_requests": "queues {now} requests instead of {was}",
    "nomerges": "has its merges limited to level {now} instead of {was}",
    "read_ahead_kb": "reads {now} KiB ahead instead of {was} KiB",
    "add_random": "adds to the entropy {now} instead of {was}",
    "rq_affinity": "has the CPU affinity {now} instead of {was}",
    "power_control": "has the power control {now} instead of {was}",
    "autosuspend_delay_ms": "is suspended after {now} ms instead of {was} ms",
    "persist": "is kept over a sleep {now} instead of {was}",
    "eh_timeout": "has {now} s instead of {was} s for a command of the error handler",
    "wwid": "has the name {now} instead of {was} in the SCSI layer",
    "product_pages": "has the pages {now} of product data instead of {was}",
    "scsi_level": "counts as SCSI level {now} instead of {was}",
    "queue_type": "has its commands {now} instead of {was}",
    "discard_granularity": "discards in units of {now} instead of {was} bytes",
    "chunk_sectors": "has its requests split at {now} instead of {was} sectors",
    "zoned": "has zones {now} instead of {was}",
    "max_retries": "has its commands repeated {now} times instead of {was}",
    "max_medium_access_timeouts": "is given up after {now} timeouts instead of {was}",
    "allow_restart": "is started again {now} instead of {was}",
    "iostats": "has its requests counted {now} instead of {was}",
    "max_discard_segments": "discards {now} segments at once instead of {was}",
    "quirks": "has the quirks {now} instead of {was}",
    "authorized": "is authorized {now} instead of {was}",
    "alignment_offset": "begins at byte {now} instead of {was} of a block",
}
"""The same for properties that only the kernel sets on an emulated DUT. On others udev and their owners do so."""
IDENTITY = {"wwid": "name {was} in the SCSI layer", "product_pages": "pages {was} of product data"}
"""What the kernel reads from the disk itself, by which programs recognise it. The files do not exist without it."""
OF_THE_LINK = frozenset(
    {
        "max_sectors_kb",
        "max_hw_sectors_kb",
        "max_segments",
        "max_segment_size",
        "optimal_io_size",
        "queue_depth",
        "rx_lanes",
        "tx_lanes",
        "usb_version",
    }
)
"""Properties that depend on the socket: a disk that was plugged into a slower hub may have others there."""
AT_THE_END = (
    "driver",
    "ro",
    "write_cache",
    "size",
    "logical_block_size",
    "physical_block_size",
    "max_hw_sectors_kb",
    "state",
    "speed",
)
"""Properties that only a fault changes while a disk stays attached. The SCSI layer adapts the queue depth itself."""
AT_THE_END_EMULATED = (
    *AT_THE_END,
    *sorted({*AFTER_RETURN, *WITHOUT_UDEV} - {*AT_THE_END, "timeout", "eh_timeout"}),
)
"""The same on an emulated DUT, where nobody else sets them: 300 disks had the same at both times, and 156 the same
queue depth, because emulated disks never report a full queue. The timeouts are shortened by the agent."""
WORDS = {"state": "is in state {now} instead of {was}", "speed": "has a link of {now} instead of {was} Mb/s"}
"""How a difference is said of what is compared at the end only."""

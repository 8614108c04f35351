"""Messages of the USB core, its host controllers and the two storage drivers."""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import E, Entry, N

_HCD = r"(?:[xeuo]hci|dwc[23]|musb|ohci|isp1\d+)[\w.-]*"

USB: tuple[Entry, ...] = (
    Entry(
        "hcd.died",
        E,
        r"xHCI host controller (?:not responding, assume dead|is dead|not$|not responding,?$)|HC died; cleaning up"
        r"|Assuming host is dying|^\S+: HC died|PCI device removed; host controller",
        "drivers/usb/host/xhci-ring.c, drivers/usb/core/hcd.c",
        "xhci_hcd 0000:00:05.0: xHCI host controller not responding, assume dead",
    ),
    Entry(
        "hcd.error",
        E,
        r"xHCI host not responding to stop endpoint|Host System Error|for unknown stream ring"
        r"|ERROR Transfer event|Transfer event (?:TRB DMA ptr not part|for disabled)|ERROR (?:unknown event|no room on ep ring)"
        r"|WARN Event TRB for slot|WARN Set TR Deq Ptr cmd failed|WARN:? .*(?:TRB|ring|slot|endpoint)"
        r"|USBSTS:.*(?:HCHalted|HSE|HCE)|^xhci\S* \S+: Command timeout, USBSTS:|Stop Endpoint Context Error|Stop Endpoint on slot \d+ ep \d+ failed",
        "drivers/usb/host/xhci-ring.c",
        "xhci_hcd 0000:00:05.0: WARN Set TR Deq Ptr cmd failed due to incorrect slot or ep state.",
    ),
    Entry(
        "hcd.error",
        E,
        rf"^{_HCD}[ :].*(?:Timeout while(?: waiting)?|Host halt failed|Host not accessible, reset failed|fatal error"
        r"|Abort (?:failed|command)|Error while assigning device slot|Command (?:timeout|completion event)"
        r"|Mismatch between completed|reset failed|can't setup|Host took too long|port \d+ reset error"
        r"|(?:fatal|unrecoverable) (?:command|error)|controller (?:error|halted)|HC (?:halted|error))",
        "drivers/usb/host/xhci.c, drivers/usb/host/ehci-hcd.c",
        "xhci_hcd 0000:04:00.4: Timeout while waiting for setup device command",
    ),
    Entry(
        "hcd.error",
        E,
        r"^(?:usb|hub|xhci_hcd|usb-storage|uas) \S+: .*(?:[Oo]ut of memory|[Nn]ot enough (?:bandwidth|memory|host controller"
        r" resources)|[Nn]o memory for)|^usb usb\d+: root hub lost power or was reset",
        "drivers/usb/core/hub.c, drivers/usb/host/xhci.c",
        "usb 1-1.2: Not enough host controller resources for new device state.",
    ),
    Entry(
        "usb.disconnect",
        N,
        r"USB disconnect, (?:device number|address|device) \d+",
        "drivers/usb/core/hub.c",
        "usb 1-2.3: USB disconnect, device number 5",
    ),
    Entry(
        "usb.reset",
        E,
        r"\breset (?:[\w-]+ )+USB device (?:number|using)|\bUSB device reset\b|^usb \S+: reset \S+ .*device",
        "drivers/usb/core/hub.c",
        "usb 1-2: reset high-speed USB device number 5 using xhci_hcd",
    ),
    Entry(
        "usb.connect",
        N,
        r"\bnew (?:[\w-]+ )+USB device (?:number|using)|\b[Nn]ew (?:USB )?device found, idVendor="
        r"|new USB device, (?:assigned|address)|USB new device connect",
        "drivers/usb/core/hub.c",
        "usb 1-2.3: new high-speed USB device number 5 using xhci_hcd",
    ),
    Entry(
        "usb.enumeration-error",
        E,
        r"device descriptor read/\S+, (?:error|all)|device not accepting address|Device not responding to (?:setup )?address"
        r"|unable to enumerate|unable to read config index|can't (?:read configurations|set config)|string descriptor 0 read error"
        r"|Cannot enable(?: port \d+)?\. *Maybe the USB cable is bad|connect-debounce failed|attempt power cycle"
        r"|cannot (?:reset|disable|warm reset|enable)(?: port)?(?: \d+)?(?: \(err =|\.)|failed to (?:read|get) device descriptor"
        r"|can't be configured|rejected \d+ configuration|no configurations?$|config \d+ descriptor\??$"
        r"|^hub \S+: config failed, ",
        "drivers/usb/core/hub.c, drivers/usb/core/config.c",
        "usb 1-2: device descriptor read/64, error -71",
    ),
    Entry(
        "usb.overcurrent",
        E,
        r"(?<!no )over-?current (?:condition|change|detected)|port over-current",
        "drivers/usb/core/hub.c",
        "hub 1-0:1.0: over-current condition on port 2",
    ),
    Entry(
        "usb.link-error",
        E,
        r"not running at top speed|disabled by hub \(EMI\?\)|device firmware changed|hub_(?:ext_)?port_status failed"
        r"|\bport\d+: config error|^usb \S+: config error|(?:cannot|can't|failed to) (?:set|disable|enable) (?:U1|U2|LPM)"
        r"|link (?:state )?(?:is )?(?:inactive|compliance|error)|over current limit",
        "drivers/usb/core/hub.c",
        "usb 1-2: not running at top speed; connect to a high speed hub",
    ),
    Entry(
        "storage.quirk",
        N,
        r"Quirks match for vid|UAS is (?:ignored|blacklisted) for this device|disabled by usb-storage\.quirks"
        r"|unusual_dev|This device .* has unneeded (?:SubClass|Protocol)",
        "drivers/usb/storage/usb.c, drivers/usb/storage/uas-detect.h",
        "usb-storage 1-2:1.0: Quirks match for vid 152d pid 0578: 800000",
    ),
    Entry(
        "uas.error",
        E,
        r"\buas_eh_\w+|\buas_zap_pending|\b(?:cmd|data|sense|stat) cmplt err|stat urb: (?:status|no pending)"
        r"|(?:data|cmd|sense) urb (?:submission|submit)|uas_(?:log_cmd_state|submit|pre_reset|post_reset|data_cmplt)\b.*"
        r"|uas: .*(?:err|fail)|task mgmt (?:timed|aborted)",
        "drivers/usb/storage/uas.c",
        "sd 2:0:0:0: [sdb] tag#4 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT",
    ),
    Entry(
        "scsi.error",
        E,
        r"^usb-storage: Error in \w+",
        "drivers/usb/storage/scsiglue.c",
        "usb-storage: Error in queuecommand_lck: us->srb = ffff9d66b02e3528",
    ),
    Entry(
        "storage.attach",
        N,
        r"USB Mass Storage device (?:detected|found)|SCSI emulation for USB Mass Storage|^usb-storage: device found at"
        r"|^scsi host\d+: +(?:uas|usb-storage)|^scsi\d+ ?: usb-storage",
        "drivers/usb/storage/usb.c",
        "usb-storage 1-2:1.0: USB Mass Storage device detected",
    ),
)

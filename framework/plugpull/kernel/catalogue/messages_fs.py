"""Messages of the filesystems and of md that storage tests meet."""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import E, Entry, N

_EXT = r"(?:EXT[234]|ext4)-fs"
_FAT = r"(?:FAT|VFAT|exFAT|EXFAT|MSDOS)"

FS: tuple[Entry, ...] = (
    Entry(
        "fs.readonly",
        E,
        r"[Rr]emounting filesystem read-only|^ *(?:File ?system|Filesystem) has been set read-only|forced readonly"
        r"|[Ff]ilesystem (?:has been )?set read-only|[Ss]topped filesystem due to reason|going read-only"
        r"|Filesystem has been shut down|switching to (?:read-only|emergency read.only)|emergency read.only",
        "fs/ext4/super.c, fs/fat/misc.c, fs/btrfs/messages.c, fs/f2fs/super.c",
        "EXT4-fs (sdb1): Remounting filesystem read-only",
    ),
    Entry(
        "fs.recovery",
        N,
        rf"^{_EXT} \(.*(?:recovery complete|orphan cleanup|recovering journal)|^JBD2?: .*recovery complete"
        r"|^XFS \(.*(?:Starting|Ending) recovery|^BTRFS info.*(?:start tree-log replay|log replay)"
        r"|^F2FS-fs \(.*(?:recover|checkpoint rollback)|^(?:bcachefs|BCACHEFS).*journal replay done",
        "fs/ext4/super.c, fs/xfs/xfs_log_recover.c",
        "EXT4-fs (sdb1): recovery complete",
    ),
    Entry(
        "fs.error",
        E,
        rf"^{_EXT} (?:error|warning|critical)|^{_EXT} \(.*(?:error(?!s)|[Dd]ata will be lost|failed|abort|[Cc]ould not|bad |can't|unable)"
        r"|^Aborting journal on device|Detected aborted journal|Journal has aborted"
        r"|^JBD2?: .*(?:[Ee]rror|[Ff]ailed|corrupt|aborted|Spotted)|^journal commit I/O error|^ext3_abort called",
        "fs/ext4/super.c, fs/jbd2/journal.c",
        "EXT4-fs error (device sdb1): ext4_journal_check_start:83: comm fio: Detected aborted journal",
    ),
    Entry(
        "fs.error",
        E,
        r"^XFS \((?!.*Reset corrupted AGFL).*(?:I/O [Ee]rror|[Ss]hutting down|Corruption|corrupt|[Ff]ailed|failing async write|xfs_do_force_shutdown"
        r"|Internal error|log mount|[Uu]nmount (?:and run|the filesystem))|^XFS: (?:Internal error|.*[Ff]ailed)"
        r"|^[Ff]ilesystem \S+: xfs_log_force: error",
        "fs/xfs/xfs_fsops.c, fs/xfs/xfs_buf.c",
        "XFS (sdb1): log I/O error -5",
    ),
    Entry(
        "fs.error",
        E,
        r"^BTRFS:? (?!.*\bdeprecated\b)(?:error|critical|warning|alert)|^BTRFS info .*\berrs: wr [1-9]|^BTRFS: (?:error|.* failed|bdev)"
        r"|^btrfs: .*(?:errs|failed|error|corrupt)|parent transid verify failed|^BTRFS .*csum failed",
        "fs/btrfs/messages.c, fs/btrfs/volumes.c",
        "BTRFS error (device sdb): bdev /dev/sdb errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
    ),
    Entry(
        "fs.error",
        E,
        rf"^{_FAT}(?:-fs)? ?\(.*(?:[Ee]rror|failed|panic|not properly unmounted|invalid|corrupt|bread)"
        rf"|^{_FAT}(?:-fs)?: (?:Filesystem (?:panic|error)|error|bogus|invalid|[Dd]irectory bread|.*failed|.*not properly unmounted)"
        r"|^ *fat_\w+: |^VFS: (?:[Bb]usy inodes on changed media|Can't find a valid)",
        "fs/fat/misc.c, fs/exfat/misc.c, fs/super.c",
        "FAT-fs (sdb1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
    ),
    Entry(
        "fs.error",
        E,
        r"^F2FS-fs ?\(.*(?:[Ee]rror|[Ff]ailed|[Ii]nvalid|[Ii]nconsisten|corrupt|[Cc]an't|[Mm]ismatch)"
        r"|^(?:NTFS|ntfs3?|ntfs)(?:-fs)?(?: (?:error|warning)|[:(].*(?:[Ee]rror|[Ff]ailed|corrupt|not clean|dirty|[Cc]an't))"
        r"|^(?:bcachefs|BCACHEFS) ?\(.*(?:[Ee]rror|[Ff]ailed|going read|shut ?down)|^bcache: .*(?:error|fail)"
        r"|^(?:REISERFS|JFS|UDF-fs|ISOFS|UBIFS|GFS2|OCFS2|NILFS|hfs(?:plus)?|SQUASHFS|squashfs|EROFS|erofs)\b.*"
        r"(?:[Ee]rror|ERROR|[Ff]ailed|corrupt|abort|[Uu]nable to read)|^udf: .*(?:error|failed)",
        "fs/f2fs/f2fs.h, fs/ntfs3/fsntfs.c, fs/bcachefs/error.c",
        "F2FS-fs (sdb1): inconsistent node block, nid:3, node_footer[nid:0,ino:0]",
    ),
    Entry(
        "fs.error",
        E,
        r"^zio pool=\S+ vdev=\S+ error=|^WARNING: Pool '\S+' has encountered an uncorrectable I/O failure",
        "OpenZFS module/zfs/vdev.c, module/zfs/spa_misc.c",
        "zio pool=tank vdev=/dev/sdc1 error=5 type=1 offset=270336 size=8192 flags=721601",
    ),
)

MD: tuple[Entry, ...] = (
    Entry(
        "md.recovery",
        N,
        r"^ *md:? ?(?:\S+: )?.*(?:(?:recovery|resync|requested-resync|reshape|data-check|check) of RAID array)"
        r"|^ *md: \S+: (?:recovery|resync|requested-resync|reshape|data-check|sync|check) (?:done|interrupted|stopped)"
        r"|^ *md: (?:resuming|syncing|recovering) |^ *md: re-add|^ *md: bind<.*re-?add",
        "drivers/md/md.c",
        "md: recovery of RAID array md0",
    ),
    Entry(
        "md.failure",
        E,
        r"Disk failure on \S+, disabling device|^ *(?:md/\S+|raid\d+:?)?:? ?Operation continuing on \d+ devices|Cannot continue operation"
        r"|super_written gets error|kicking (?:non-fresh|faulty)|unrecoverable (?:I/O )?read error"
        r"|(?:redirecting sector \d+ to other mirror|rescheduling sector \d+)|^ *md/\S+: .*(?:[Ff]ailed|failing|too many|not enough)"
        r"|^ *md: .*(?:has failed|not clean -- starting background|is not in-sync|does not have a valid|could not bd_claim)"
        r"|^ *md: super(?:block)? .*(?:error|mismatch)|read error (?:NOT )?correct(?:ed|able)|raid array is not clean",
        "drivers/md/md.c, drivers/md/raid1.c, drivers/md/raid5.c",
        "md/raid1:md0: Disk failure on sdb, disabling device.",
    ),
)

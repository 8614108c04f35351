"""Bugs put into md: in the modules raid1, raid10, raid456 and md-mod.

Fields and conventions as in ``driver_bugs/first.py``. They run on ``rigs/arrays.toml``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import Mutant

MD = "drivers/md"


def _mutant(
    name: str, bug: str, place: tuple[str, str], old: str, new: str, by: tuple[str, str], scenario: str
) -> Mutant:
    (file, module), (checks, words) = place, by
    found = tuple(checks.split()), tuple(words.split("|"))
    return Mutant(name, bug, MD, file, module, old, new, scenario, *found, "arrays")


_RAID1, _RAID10, _RAID5 = ("raid1.c", "raid1"), ("raid10.c", "raid10"), ("raid5.c", "raid456")
_STALE = ("legs_hold", "does not hold what array1 was given")

MUTANTS = (
    _mutant(
        "raid1_forgets",
        "does not mark in the bitmap what is written while a member is away",
        _RAID1,
        "\t\t\t   !test_bit(R1BIO_Degraded, &r1_bio->state),\n",
        "\t\t\t   1,\n",
        _STALE,
        "gets_it_back and raid1]",
    ),
    _mutant(
        "raid1_gives_up",
        "reports a write as failed that one of two members has completed",
        _RAID1,
        "\tif (!test_bit(R1BIO_Uptodate, &r1_bio->state))\n",
        "\tif (test_bit(R1BIO_Degraded, &r1_bio->state) || !test_bit(R1BIO_Uptodate, &r1_bio->state))\n",
        ("array_survived", "ended with errno 5"),
        "gets_it_back and raid1]",
    ),
    _mutant(
        "raid1_miscounts",
        "does not count a member that was rebuilt, so that the array stays degraded",
        _RAID1,
        "\tmddev->degraded -= count;\n",
        "\tmddev->degraded -= 0 * count;\n",
        ("array_survived", "was not complete in the end"),
        "gets_it_back and raid1]",
    ),
    _mutant(
        "raid10_clears_early",
        "clears the bits of the bitmap when one member is rebuilt, though another one is still missing",
        _RAID10,
        "\t\t\t\t\tstill_degraded = 1;\n",
        "\t\t\t\t\tstill_degraded = 0;\n",
        _STALE,
        "members_of_two_mirrors",
    ),
    _mutant(
        "raid5_forgets",
        "does not mark in the bitmap what is written while a member is away",
        _RAID5,
        "\t\t\t\t\t\t   !test_bit(STRIPE_DEGRADED, &sh->state),\n",
        "\t\t\t\t\t\t   1,\n",
        ("legs_hold array_survived", "does not hold what array1 was given|parity does not match"),
        "gets_it_back and raid5]",
    ),
    _mutant(
        "raid5_parity_wrong",
        "leaves the data that stays out of the parity when a part of a stripe is written",
        _RAID5,
        # Three members: md reads what stays and computes the parity again, which is less to read.
        "\t\toff_dest = sh->dev[pd_idx].offset;\n\t\tfor (i = disks; i--; ) {\n"
        "\t\t\tstruct r5dev *dev = &sh->dev[i];\n\t\t\tif (i != pd_idx) {\n",
        "\t\toff_dest = sh->dev[pd_idx].offset;\n\t\tfor (i = disks; i--; ) {\n"
        "\t\t\tstruct r5dev *dev = &sh->dev[i];\n\t\t\tif (i != pd_idx && head_sh->dev[i].written) {\n",
        ("legs_hold array_survived nothing_lost", "parity does not match|does not hold|wrong sectors"),
        "gets_it_back and raid5]",
    ),
    _mutant(
        "raid6_rebuild_skips",
        "skips every eighth stripe when a member is rebuilt",
        _RAID5,
        "\tmd_bitmap_cond_end_sync(mddev->bitmap, sector_nr, false);\n\n\tsh = raid5_get_active_stripe(conf, NULL,",
        "\tif (test_bit(MD_RECOVERY_RECOVER, &mddev->recovery) &&\n"
        "\t    (sector_nr / RAID5_STRIPE_SECTORS(conf)) % 8 == 3) {\n"
        "\t\t*skipped = 1;\n\t\treturn RAID5_STRIPE_SECTORS(conf);\n\t}\n"
        "\tmd_bitmap_cond_end_sync(mddev->bitmap, sector_nr, false);\n\n\tsh = raid5_get_active_stripe(conf, NULL,",
        ("legs_hold array_survived nothing_lost", "parity does not match|does not hold|wrong sectors"),
        "second_member_goes",
    ),
    _mutant(
        "bitmap_ignored",
        "copies everything to a member that comes back, whatever the bitmap says",
        ("md-bitmap.c", "md-mod"),
        "\trv = 0;\n\tif (bmc) {\n\t\t/* locked */\n\t\tif (RESYNC(*bmc))\n",
        "\trv = 1;\n\tif (bmc) {\n\t\t/* locked */\n\t\tif (RESYNC(*bmc))\n",
        ("resynced_by_bitmap", "got a full copy"),
        "gets_only_what_it_missed",
    ),
    _mutant(
        "array_flush_dropped",
        "answers a flush of an array without flushing its members",
        ("md.c", "md-mod"),
        "\t\tif (rdev->raid_disk >= 0 &&\n\t\t    !test_bit(Faulty, &rdev->flags)) {\n\t\t\tstruct bio *bi;\n\n"
        "\t\t\tatomic_inc(&rdev->nr_pending);\n\t\t\trcu_read_unlock();\n\t\t\tbi = bio_alloc_bioset(",
        "\t\tif (rdev->raid_disk >= 1000 &&\n\t\t    !test_bit(Faulty, &rdev->flags)) {\n\t\t\tstruct bio *bi;\n\n"
        "\t\t\tatomic_inc(&rdev->nr_pending);\n\t\t\trcu_read_unlock();\n\t\t\tbi = bio_alloc_bioset(",
        ("nothing_lost", "durable lost"),
        "every_member_loses_its_power and raid1]",
    ),
)

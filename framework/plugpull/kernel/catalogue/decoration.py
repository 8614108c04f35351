"""Finds a message behind a prefix that no known program writes: marks of people, of loggers, of converted pages.

Such a prefix is recognised by what it is not. It has no words but names of hosts behind a clock, levels and the
kernel's names; it is not the tag of another process; it does not quote.
"""

from __future__ import annotations

from plugpull.kernel.catalogue.deferred import deferred

_SPEAKER = deferred(
    r"(?<![\w./-])(?=[a-zA-Z])(?:usb (?:\d+-\d[\d.]*(?::\d+\.\d+)?|usb\d+(?:-port\d+)?)|hub \d+-\d[\d.]*:\d+\.\d+"
    r"|(?:usb-storage|uas) \d+-\d[\d.]*(?::\d+\.\d+)?|(?:sd|sr|st|sg|ses|scsi) \d+:\d+:\d+:\d+|scsi host\d+"
    r"|ata\d+(?:\.\d\d)?|nvme nvme\d+|(?:[xeou]hci[_-]\w+|ahci|pcieport|nvme|thunderbolt) [\da-f]{4}:[\da-f:]+\.\d"
    r"|(?:EXT[234]|F2FS|FAT|exFAT|UDF)-fs(?: \w+)? \([\w-]{2,20}\)|XFS \([\w-]{2,20}\)|JBD2?"
    r"|BTRFS(?: \w+)?(?: \(device [\w-]{2,20}[^()]{0,12}\))?|md/raid\w*:md\w+|device-mapper"
    r"|(?:blk_update|print_req|end_request)\w*): "
    r"|(?<![\w./-])(?:Buffer I/O error on dev|I/O error, dev |Aborting journal on device )"
)
"""Whose words are certainly the kernel's."""
_FARTHEST = 200
_TAG = deferred(r"([^\s:\])}|>]+) *:(?= |$)")
"""A word before a colon: a process, if it is not one of these."""
_KERNEL_TAG = deferred(
    r"(?i)\W*(?:kernel|kern|kmsg|klogd?|dmesg|vmunix|linux|console|netconsole|tty\w*|(?:kern|user|local\d)\.\w+"
    r"|emerg|alert|crit|error|err|warning|warn|notice|info|debug|line|log|output|stdout|stderr"
    r"|[\w.~/-]*(?:\.(?:log|txt|gz)|/\S*)(?:[.:-]\d+)*|[\W\d_]*|[\d.]*\d[\d.]*s?|L\d+)\W*"
)
_PROCESS = deferred(r"(?<!kernel)(?<!klogd)\[\d+\]:|[\"'\u201c\u2018=]|\?")
_CLOCK = deferred(r"\d\d?:\d\d|\d{4}-\d\d|\d{9,}")
_WORD = deferred(r"[^\W\d_]{2,}(?:[\w.-]*\w)?")
_MOST_NAMES = 4
"""Words behind a clock: a day, a month, a host, a logger."""
_SENTENCE = deferred(r"(?i)\b(?:the|this|that|is|was|are|with|from|and|my|me|you|we|get|got|see|seen|like|of|to|it)\b")


_PROCESS_LINE = deferred(
    r"(?:[^\[\]:]{0,30}\d\d?:\d\d(?::\d\d)?[^\[\]:]{0,80} )?(?!kernel|vmunix|klogd)[A-Za-z_][\w.()/@+:-]*\[\d+\]: "
)
_SPOKEN = deferred(
    r"(?i)(?:^|[\s\"'(])(?:I|I'm|my|me|you|your|we|our|get|got|getting|see|seeing|says|said|saying|following|an?|the"
    r"|was|were|but|with|of|and|or|by|it|for|to|which|when|after|from|reported|repeated|still)\s"
    r"|[\"\u201c|;]|^\s*(?:[#@]|\*\*(?! ))|\S[^`]*`|(?:^|[\s(\[{=,])'|/\*|//|\b(?:e?grep|echo|printf?)\b"
)
"""What sentences have, strings of programs and scripts, and the kernel's messages do not before the words that may be
anywhere in them."""
_IN_A_SENTENCE = deferred(
    r"\s*(?:[-*\u2022+] +|\d{1,2}[.)] +)?(?:\*{1,3}|__?)?`[^`]+`(?!`)\W{0,4}[^\W\d]"
    r"|\s*(?:[-*\u2022+] +|\d{1,2}[.)] +)?(?:\*{1,3}|__?)?"
    r"`(?![^`\[]{0,80}(?:\[ *\+?\d|\d:\d\d:\d\d|kernel: ))[^`]+`[*_]{0,3}\s*$"
)
"""Words between backticks with which a sentence begins, or that are all of a line and have no time stamp."""
_BEGUN = deferred(r"[A-Z][a-z]+(?: [a-z]+)* ")
_TAGGED = deferred(r"\w{2,10}: |\[[A-Z]{3,10}[\] ]")
_TITLE = deferred(
    r"(?i)(?:(?:uas|re|fwd|subject|title|issue|problem|solved|help|log|output|symptom|message)s?: )?"
    r"(?:\[(?:patch|regression|bug|rfc|solved|question|help)[^\[\]]{0,30}\] ?){0,3}"
)
"""What stands before a message that is the title of a thread."""
_TALK = deferred(
    r"(?i) (?:(?<=\bis )|(?<=\bwas ))(?:the|my|an|what) (?:\w+ )?(?:error|message|problem|issue|output|result)s?\b"
)
"""How a person goes on behind a message."""
_HEADING = deferred(r"(?i) - [a-z ]{0,40}\b(?:problem|issue|question|help|solved|fixed|bug)s?$")
"""How a title goes on."""
_ANY_DEVICE = deferred(r"\s*[-*\u2022] .*\b(?:sd|nvme|mmcblk|md|hd)X\b")
"""A list of what one may find in a log."""
_ANY_NUMBER = deferred(
    r" [xyzXYZN]\b(?!['\u2019-])(?:"
    + "|".join(rf"(?<=\b{name} .)" for name in ("slot", "ep", "endpoint", "port", "sector", "block", "number", "error"))
    + ")"
)
"""A letter for a number: a person writes about a message."""
_ANY_NUMBERS = deferred(
    r"\b(?:slot|ep|endpoint|port|sector|block|number|error|device) (?:nn|NN|xx+|XX+)\b(?![\w'\u2019-])"
)
"""Letters for a number. In a line with a time a person hid the number of a true message."""
_OTHER_SCRIPT = deferred(r"[\u0370-\u1fff\u3040-\ud7ff]{2}")
"""Letters that no message of the kernel has, but the names in it."""
_A_NAME = deferred(r"\bcomm \S+|\(path: [^)]*")
"""Names of processes, and of files in a message of Btrfs."""
_STAMP = deferred(r"\d:\d\d|\[ *\d+\.\d|^\s*\d+\.\d{3}|<-|\u2190")
"""A time, or the arrow of a comment."""
_PART_OF_A_WORD = deferred(r"\w*$")


def end_of_marks(line: str, at: int) -> int:
    """Where the message begins if marks stand between ``at``, the end of the known prefix, and it; otherwise ``at``."""
    found = _SPEAKER.search(line, at, at + _FARTHEST)
    if found is None or found.start() == at:
        return at
    return found.start() if _are_marks(line[:at], line[at : found.start()]) else at


def _are_marks(prefix: str, gap: str) -> bool:
    text = gap.strip()
    if not text:
        return True
    if _PROCESS.search(text) or _PROCESS.search(prefix) or _SENTENCE.search(text):
        return False
    if not all(_KERNEL_TAG.fullmatch(tag) for tag in _TAG.findall(text)):
        return False
    words = [word for word in _WORD.findall(text) if not _KERNEL_TAG.fullmatch(word)]
    return len(words) <= (_MOST_NAMES if _CLOCK.search(text) or _CLOCK.search(prefix) else 0)


def by_a_process(body: str) -> bool:
    """Whether a message without the kernel's prefix is the line of a process, such as ``udisksd[123]: ...``."""
    return "]: " in body and bool(_PROCESS_LINE.match(body))


def has_prefix(line: str, message: str) -> bool:
    """Whether a program wrote something before a message: a time, a host. Marks of mails and lists are a person's."""
    return any(letter.isalnum() for letter in line.partition(message)[0])


def begins_a_sentence(line: str) -> bool:
    """Whether a line goes on in words behind what it has between backticks."""
    return bool(_IN_A_SENTENCE.match(line))


def talks_about_it(line: str, message: str) -> bool:
    """Whether a person goes on in words behind a message, or has words of another script beside it. In a line
    with a time they are a comment."""
    if _TALK.search(message) or _ANY_NUMBER.search(message) or ("X" in message and _ANY_DEVICE.match(line)):
        return True
    if _ANY_NUMBERS.search(message) and not _STAMP.search(line):
        return True
    if not message.isascii() and _OTHER_SCRIPT.search(_A_NAME.sub("", message)):
        return not _STAMP.search(line)
    return " - " in message and bool(_HEADING.search(message)) and not has_prefix(line, message)


def may_be_quoted(body: str) -> bool:
    """Whether the words of the kernel in a message may be a quotation: a quick look."""
    return bool(_SPOKEN.search(body) or _BEGUN.match(body) or _TAGGED.match(body))


def quoted(before: str) -> bool:
    """Whether the text before a wording shows that a person quotes it in a sentence, or a program in a string."""
    text = _PART_OF_A_WORD.sub("", before)
    return bool(_SPOKEN.search(text) or _BEGUN.fullmatch(text) or (text and _TITLE.fullmatch(text)))

"""Splits a line into prefix and message, for every format in which kernel logs are kept and pasted.

A prefix is what dmesg, syslog, the journal, a console, a mail program or a web page puts before the message. A line of
another process keeps its name: only the kernel's own lines are split behind the tag ``kernel:``.
"""

from __future__ import annotations

from plugpull.kernel.catalogue.decoration import end_of_marks
from plugpull.kernel.catalogue.deferred import deferred

_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_DATE = r"\d{4}-\d\d-\d\d"
_KERNEL = r"(?:[kK]ernel|KERNEL|vmunix|kern|klogd)(?:\[[\d-]*\])?: ?(?:: )?"
"""Some kernels leave one more colon where their time stamp is switched off."""
_HOST = r"[\w.+*<>@(){}\[\]-]+"
"""A host, also one whose name a person made unrecognisable; a month, a day, a level."""
_STAMP = r"\[\s*\d+\.\d+(?:@\d+)? *\]"
LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
"""The kernel's levels by number (include/linux/kern_levels.h), as dmesg -x and syslog spell them."""
_LOGGED = r"(?:\d{1,7}[:-])?(?:<\d|\[ *\d+\.\d|[A-Z][a-z]{2} [ \d]\d \d\d:|\d{4}-\d\d-\d\dT)"
"""How a line of a log begins, perhaps behind its number."""
_LEVEL = rf"(?:{'|'.join(LEVELS)}|error|warning)"

_PARTS = (
    r"\*\* \d+ printk messages dropped \*\* ",  # glued to the message that follows it
    r"<\d{1,3}>",  # the level, in /proc/kmsg and on the wire (syslog(2))
    # /dev/kmsg (Documentation/ABI/testing/dev-kmsg); netconsole may put the release before it
    r"(?:\d+\.\d+[\w.+~-]{0,60},)?\d{1,3},\d+,\d+,[-c+][^;]{0,40};",
    # dmesg, also -d
    r"\[(?:\s|=C2=A0|=A0|=20|&nbsp;)*\+?\d+(?:[.,]\d+)?(?:[@,]\d+)?s? *(?:< +\d+\.\d+ ?>)?\](?:- ?|: | ?)",
    r"\[ *\d+(?:\.\d*)?(?:\.{2,4}|\u2026|\.[xX]{2,9})\] ?",  # the same, shortened by a person
    # colours without their first character, or with another for it; containers
    r"(?:\^\[|\\u001b|\\x1b|\\033|\\e|#033)?\[\d{1,3}(?:;\d{1,3}){0,4}m ?|(?:stdout|stderr) [FP] ",
    r"(?:\d{1,7}\.\d{3,9}|(?<!.)\.?\d{1,9})\] ",  # pasted without the first bracket, or with the end of a time only
    r"\d{3}: (?=[A-Za-z][\w-]+[ :])",  # the CPU, in real-time kernels
    r"\[[EWDINV]\] ?|\[ *[TC]\d+(?:@C?\d+)?\] ?|\[ ?\d{1,3}\] |\[ *CPU\d+\] ?",  # CONFIG_PRINTK_CALLER
    r"[-. ]?\(\d\)\[\d+:[^\]]{1,20}\] ?|[A-Z]?\[\d: *[^\]]{1,24}: *\d+\] ?",  # vendors of phones
    r"c\d +\d+ (?:\([^)]{1,20}\) )?(?=\S)|\[pid:\d+,[^\]]{1,40}\] ?",  # the same
    rf"(?:\d\d-\d\d {_CLOCK} +)?[VDIWEF]/(?:(?:KERNEL|kernel) *\( *\d+|\s*\( *0)\): ",  # logcat of old kernels
    rf"\d\d-\d\d {_CLOCK} +(?:root +)?0 +0 [VDIWEF] (?:(?:kernel)? *: )?",  # logcat -b kernel
    rf"[\w./~-]{{1,100}}(?:[:-]|\.(?:txt|log): )(?={_LOGGED})",  # grep
    r"(?:[-*\u2022+!]|[-=]>) {1,3}(?=\S)|\d{1,2}[.)] (?=\S)|\[[ xX]\] (?=\S)",  # lists
    r"\[kernel\] ?|&lt;\d{1,3}&gt;|&gt; ?",  # metalog; escaped for a web page
    rf"\[[^\[\]]{{0,30}}(?<!\d){_CLOCK}[^\[\]]{{0,20}}\]:? ?",  # dmesg -T in any language; loggers of consoles
    r"\[(?:[^\W\d_]{3,5} ?\d{1,2}| ?\d{1,2}\. ?[^\W\d_]{3,5}) \d\d:\d\d\] ",  # dmesg --reltime
    rf"(?:[a-z]\w{{1,9}}|local\d) *:{_LEVEL} *: ?|(?:\S{{1,64}}: )?kern: +{_LEVEL}: ",  # dmesg -x; talosctl dmesg
    rf"\d {_DATE}T{_CLOCK}{_ZONE} \S+ kernel - - (?:-|\[[^\]]*\]) ",  # RFC 5424, behind its level
    # rsyslog, journalctl -o short-iso, dmesg
    rf"{_DATE}[T ]{_CLOCK}{_ZONE}?:?[ \t](?:(?:{_HOST} ){{0,4}}{_KERNEL})?",
    # syslog, journalctl, logread, in any language: a clock, then words without a colon up to the kernel's tag
    rf"[^:\[\]<>\"'`]{{0,30}}?(?<!\d){_CLOCK}{_ZONE}?(?: {{1,3}}{_HOST}){{0,5}} {{1,3}}(?:{_KERNEL}|\[kernel\] )",
    rf"\d+\.\d+ (?:\S+ )?{_KERNEL}",  # journalctl -o short-unix
    rf"[\w.-]{{1,64}} {{1,8}}{_KERNEL}(?=\S)",  # journalctl -o short-monotonic, after its time
    # a serial console's prompt, with the cursor still behind it
    r"[\w.-]{1,64} login: (?=[\[<])|[\w.@:~/-]{1,64}[#$] (?=<\d>)",
    r"(?:#011|\^I)+ *",  # a tab, as rsyslog and sysklogd write it
    r"(?:kernel|klogd|kmsg): ?(?=\S)|message repeated \d+ times: \[ ?",  # wall has no space; rsyslog
    r"(?:> ?)+|`+|\| (?=\[)|\u2502 ?|</?(?:font|span|b|i|pre|code|p)(?: [^<>]{1,80})?> ?",  # mail; Markdown; HTML
    r"\[/?(?:(?i:T[DR]|FONT|COLOR|SIZE|CODE|QUOTE|INDENT|LIST)|[BIUbiu*])(?:=[^\[\]]{1,60})?\] ?",  # BBCode
    r"trusted_key: (?=device-mapper: )",  # include/keys/trusted-type.h redefines pr_fmt for drivers/md/dm-crypt.c
    # a comment of a script; the writer's name in front of what a mail quotes, as supercite writes it
    r"(?:#{1,3}|//+|;+|%|\*) {0,4}(?=\[ *\d+\.\d)|[A-Z][a-z]{1,15}> (?=\S)",
)
_PREFIX = deferred(r"\s*(?:" + "|".join(_PARTS) + ")")
_MESSAGE_FOLLOWS = (
    rf"(?=[A-Za-z])(?!(?:[\w.-]{{1,64}} )?{_KERNEL}|klogd: |[\w.-]{{1,64}} login: |c\d +\d|[A-Z]\[\d|[a-z]\w+ +:"
    r"|trusted_key: device|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b)"
)
_USUAL = deferred(
    rf"(?:[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d [\w.-]{{1,64}} kernel: )?\[ *\d+\.\d+\] {_MESSAGE_FOLLOWS}"
)
"""A time stamp, perhaps behind syslog's prefix, and the message: the form of nearly every line. No other prefix
follows it."""
_HALF = deferred(rf"(?<![\"'(=]){_STAMP} ?(?:\[ *[TC]\d+\] ?)?")
"""A time stamp behind text that another program wrote on the console without ending its line."""
_SECOND = deferred(rf"{_STAMP} |(?<=[\w.])<[0-7]>(?=[A-Za-z\[])")
_PROCESS = deferred(r"[\w.()/-]+\[\d+\]: |^\s*[(\[{]*[\"'#]")
_TIME = deferred(r"\[(?:\s|&nbsp;)*(\d+\.\d+)(?:@\d+)?s? *(?:< +\d+\.\d+ ?>)?\]|(?:^|\s)(\d{1,7}\.\d{3,9})\] ")
_WALL_CLOCK = deferred(r"(?<![\d:])(\d{1,2}):(\d\d):(\d\d)(?!\d)")
_RECORD = deferred(r"(?:\d+\.\d+[\w.+~-]{0,60},)?\d{1,3},\d+,(\d+),")
_LEVEL_OF = deferred(rf"<(\d{{1,3}})>|(?:^|[\s,])(\d{{1,3}}),\d+,\d+,|(?:\w *:|[a-z]\.|kern: +)({_LEVEL})\b")
_ESCAPE = deferred(r"\x1b\[[\d;]*[mK]|(?:\^\[|\\u001b|\\x1b|\\033|\\e|#033)?\[\d{1,3}(?:;\d{1,3}){0,4}m")
"""A colour, also one whose first character was lost, or is written in another way."""
_MESSAGE = deferred(r"(?:(?:^|[{,\s])\"MESSAGE\"|^\s*\"msg\")\s*:\s*(\"(?:[^\"\\]|\\.)*\")")
_FIELD = deferred(r"\"(PRIORITY|__MONOTONIC_TIMESTAMP|_TRANSPORT|SYSLOG_IDENTIFIER)\"\s*:\s*\"([^\"]*)\"")
_VERBOSE = deferred(r"^\s*MESSAGE=")
_TYPESET = str.maketrans({**dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
                          **dict.fromkeys("\xa0\u2009\u202f\u3000", " "), "\u2019": "'", "\xd7": "x"})  # fmt: skip
"""Characters that editors and web pages put in place of those of the kernel."""
_ENTITY = deferred(r"&(lt|gt|amp|quot|apos|nbsp|#0?39|#821[12]|#8217|#215);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "nbsp": " ", "apos": "'", "#39": "'", "#039": "'",
             "#8217": "'", "#8211": "-", "#8212": "-", "#215": "x"}  # fmt: skip
"""The same, escaped."""
_SLOT = deferred(r"\b(ata\d+(?:\.\d\d)?) \((?:[^():]* )?slot \d+\)(?=:)")
"""Synology's kernels name the slot behind each port."""
_MOST_PARTS = 8
_FARTHEST = 200
"""Characters in which the time stamp of a half line is looked for."""


def split_prefix(line: str) -> tuple[str, str]:
    """(prefix, message) of a line. Colours are removed, as is what editors put in place of plain characters. The prefix
    of a JSON line is made of its fields."""
    if not line.isascii():
        line = line.translate(_TYPESET)
    if "&" in line and ";" in line:
        line = _ENTITY.sub(lambda found: _ENTITIES[found[1]], line)
    if "slot " in line:
        line = _SLOT.sub(r"\1", line)
    usual = _USUAL.match(line)
    if usual is not None and "\x1b" not in line:
        return line[: usual.end()], line[usual.end() :]
    if "\x1b" in line or "[0m" in line:
        line = _ESCAPE.sub("", line)
    if ("MESSAGE" in line or '"msg"' in line) and (found := _journal(line)):
        return found
    at = _end_of_prefix(line, 0)
    if at == 0 and (half := _HALF.search(line, 0, _FARTHEST)) and not _PROCESS.search(line, 0, half.start()):
        at = _end_of_prefix(line, half.start())
    at = end_of_marks(line, at)
    return line[:at], line[at:]


def second_message(line: str, message: str) -> str:
    """The message behind ``message`` in a line, because a console lost the end of a line or the kernel printed it
    later; empty if there is none."""
    if "[" not in message and "<" not in message:
        return ""
    head, body = split_prefix(line)
    found = _SECOND.search(body, 1) if head.strip() else None
    if found is None or _PROCESS.search(body, 0, found.start()):
        return ""
    return split_prefix(body[found.start() :])[1].strip()


def _end_of_prefix(line: str, at: int) -> int:
    for _ in range(_MOST_PARTS):
        found = _PREFIX.match(line, at)
        if found is None or found.end() == at:
            break
        at = found.end()
    return at


def _journal(line: str) -> tuple[str, str] | None:
    """The kernel's message in a line of ``journalctl -o json`` or ``-o verbose``, or of ``dmesg -J``."""
    if verbose := _VERBOSE.match(line):
        return line[: verbose.end()], line[verbose.end() :]
    message = _MESSAGE.search(line)
    fields = dict(_FIELD.findall(line))
    origin = fields.get("_TRANSPORT", fields.get("SYSLOG_IDENTIFIER", "kernel"))
    if message is None or origin != "kernel":
        return None
    import json

    try:
        body = str(json.loads(message.group(1)))
    except ValueError:
        return None
    level, micros = fields.get("PRIORITY", ""), fields.get("__MONOTONIC_TIMESTAMP", "")
    stamp = f"[{int(micros) / 1e6:12.6f}] " if micros.isdecimal() else ""
    return (f"<{level}>" if level.isdecimal() else "") + stamp, body


def time_of(prefix: str) -> float | None:
    """Seconds since boot; ``None`` if the prefix has no time stamp."""
    found = _TIME.search(prefix)
    if found:
        return float(found.group(1) or found.group(2))
    record = _RECORD.match(prefix)
    return int(record.group(1)) / 1e6 if record else None


def clock_of(prefix: str) -> int | None:
    """Seconds since midnight by the clock of a prefix; ``None`` if it has none."""
    found = _WALL_CLOCK.search(prefix)
    return (int(found[1]) * 60 + int(found[2])) * 60 + int(found[3]) if found else None


def level_of(prefix: str) -> int | None:
    """The kernel's level of a line, 0 is the worst; ``None`` if the prefix does not say it."""
    found = _LEVEL_OF.search(prefix)
    if found is None:
        return None
    number = found.group(1) or found.group(2)
    if number:
        return int(number) & 7
    return LEVELS.index({"error": "err", "warning": "warn"}.get(found.group(3), found.group(3)))

"""Foreign text as it may be shown: on a terminal, in a file, in XML.

Whatever comes from a DUT, a device or a file can hold anything that fits into a string: escape sequences that move the
cursor and rewrite the screen, line ends that forge a line, marks that reverse the text around them. Every room that
prints, and every file that a person opens, goes through here.
"""

from __future__ import annotations

import re

_REORDERING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINE_ENDS = (0x2028, 0x2029)


def _visible() -> dict[int, int]:
    pictures = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
    pictures[0x7F] = 0x2421
    # Not characters in XML, or able to reorder the text around them.
    refused = [*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
    return pictures | dict.fromkeys([*refused, *_REORDERING, *_LINE_ENDS], 0xFFFD)


_VISIBLE = _visible()
_ON_A_LINE = {**_VISIBLE, 0x0A: 0x240A, 0x09: 0x20}
_IN_JSON = re.compile("[\x7f-\x9f" + "".join(map(chr, (*_REORDERING, *_LINE_ENDS))) + "]")


def clean(text: str) -> str:
    """``text`` with control characters made visible (U+2400 block) and what XML 1.0 cannot hold replaced by U+FFFD.

    Tab and newline stay. The result can be encoded as UTF-8 and put in XML and HTML, still to be escaped there.
    """
    return text.translate(_VISIBLE)


def clean_line(text: str) -> str:
    """``text`` cleaned, with line ends made visible too: what is shown cannot look like two lines."""
    return text.translate(_ON_A_LINE)


def clean_json(text: str) -> str:
    """JSON with those characters escaped that it may hold and a terminal obeys: DEL, C1 controls, reordering marks."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def kernel_escaped(text: str) -> str:
    """A kernel message as ``/dev/kmsg`` has it: the backslash and every byte that is not printable ASCII as ``\\xHH``
    (kernel/printk/printk.c, ``msg_add_ext_text``). A message is one line, whatever is in it."""
    data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}" for byte in data)

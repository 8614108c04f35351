"""Makes foreign text safe to show: on a terminal, in a file, in XML.

Text from a DUT, a device or a file can hold anything: escape sequences that move the cursor and rewrite the screen,
line ends that forge a line, marks that reverse the text around them. All code that prints such text, or writes it to
files for people, uses this module.
"""

from __future__ import annotations

import re

_REORDERING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINE_ENDS = (0x2028, 0x2029)


def _visible() -> dict[int, int]:
    pictures = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
    pictures[0x7F] = 0x2421
    # Not allowed in XML, or able to reorder the text around them.
    refused = [*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
    return pictures | dict.fromkeys([*refused, *_REORDERING, *_LINE_ENDS], 0xFFFD)


_VISIBLE = _visible()
_ON_A_LINE = {**_VISIBLE, 0x0A: 0x240A, 0x09: 0x20}
_IN_JSON = re.compile("[\x7f-\x9f" + "".join(map(chr, (*_REORDERING, *_LINE_ENDS))) + "]")


def clean(text: str) -> str:
    """Make control characters visible (U+2400 block), and replace what XML 1.0 cannot hold by U+FFFD.

    Tab and newline stay. The result can be encoded as UTF-8. It must still be escaped for XML and HTML.
    """
    return text.translate(_VISIBLE)


def clean_line(text: str) -> str:
    """``text`` cleaned, with line ends made visible too, so that it cannot look like two lines."""
    return text.translate(_ON_A_LINE)


def clean_json(text: str) -> str:
    """Escape characters that JSON may hold but a terminal obeys: DEL, C1 controls, reordering marks."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def kernel_escaped(text: str) -> str:
    """A kernel message in the format of ``/dev/kmsg``, always on one line.

    The backslash and every byte that is not printable ASCII become ``\\xHH`` (kernel/printk/printk.c,
    ``msg_add_ext_text``).
    """
    data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}" for byte in data)

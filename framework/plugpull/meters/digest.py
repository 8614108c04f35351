"""HTTP digest authentication with SHA-256 (RFC 7616), which Shelly devices from the second generation on demand.

urllib supports it only from Python 3.14 on, and none of the libraries that this project uses does.
"""

from __future__ import annotations

import hashlib
import secrets
from urllib.request import parse_http_list, parse_keqv_list

from plugpull.meters.base import NoReading, device_text

ALGORITHM = "SHA-256"
LONGEST = 200
"""Characters of each part of a challenge at most. Those of Shelly devices have about 30."""


def authorization(challenge: str, user: str, password: str, path: str, cnonce: str = "") -> str:
    """The ``Authorization`` header that answers the ``WWW-Authenticate`` header of a GET of ``path``.

    ``cnonce`` is drawn if it is empty. Raises ``NoReading`` for any challenge but SHA-256 digest: a password is not
    sent in any other way.
    """
    scheme, _, rest = challenge.strip().partition(" ")
    parts = _parts(rest)
    if scheme.lower() != "digest" or parts.get("algorithm", "MD5").upper() != ALGORITHM:
        raise NoReading(f"it asks for {device_text(challenge)}, and the password is sent by {ALGORITHM} digest only")
    if "auth" not in [each.strip() for each in parts.get("qop", "").split(",")]:
        raise NoReading(f"its challenge is incomplete: {device_text(challenge)}")
    realm, nonce, opaque = (parts.get(key, "") for key in ("realm", "nonce", "opaque"))
    if any(len(part) > LONGEST or not part.isascii() or '"' in part or "\\" in part for part in (realm, nonce, opaque)):
        raise NoReading("its challenge is malformed")
    cnonce = cnonce or secrets.token_hex(16)
    secret, request = _hash(f"{user}:{realm}:{password}"), _hash(f"GET:{path}")
    response = _hash(f"{secret}:{nonce}:00000001:{cnonce}:auth:{request}")
    answer = (
        f'Digest username="{user}", realm="{realm}", nonce="{nonce}", uri="{path}", algorithm={ALGORITHM}, '
        f'qop=auth, nc=00000001, cnonce="{cnonce}", response="{response}"'
    )
    return f'{answer}, opaque="{opaque}"' if opaque else answer


def _parts(text: str) -> dict[str, str]:
    try:
        return {key.lower(): value for key, value in parse_keqv_list(parse_http_list(text)).items()}
    except (ValueError, IndexError):
        raise NoReading("its challenge is malformed") from None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

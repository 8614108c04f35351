"""Keeps the report's templates compiled where Python keeps compiled modules: compiling them takes 0.1 s."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

from plugpull.files import write_whole


class CompiledTemplates(BytecodeCache):
    """Templates of ``folder``, compiled for an environment with these ``options``. A compiled one counts only for the
    very text, options and version of Jinja that it was made of. Where none can be written, each run compiles again."""

    def __init__(self, folder: Path, options: Mapping[str, object]) -> None:
        self._folder = folder
        self._with = f"{jinja2.__version__} {options} "

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        return name

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(self._with + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError), self.file(bucket.key).open("rb") as file:
            try:
                bucket.load_bytecode(file)
            except Exception:  # a damaged file raises anything
                bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        path = self.file(bucket.key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, bucket.bytecode_to_string())

    def file(self, name: str) -> Path:
        """Where a template is kept, compiled."""
        return Path(cache_from_source(str(self._folder / name)))

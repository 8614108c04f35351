"""Lists what a kernel can print and what the catalogue says about it. Without TREE: the recorded census.

A TREE is a kernel's source: a directory, a tar archive, or Debian's linux-source package (``apt-get download
linux-source-6.1``). Exit status 1: a message has no answer.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from plugpull.errors import PlugpullError
from plugpull.kernel import catalogue
from plugpull.kernel.catalogue.vocabulary import NAME as VOCABULARY
from plugpull.kernel.census.answers import Answer, Conflict, answer_to, read_rules
from plugpull.kernel.census.compare import Difference, compare, not_in_census, read_index
from plugpull.kernel.census.coverage import coverage, table
from plugpull.kernel.census.messages import Message, SourceTree, Unresolved
from plugpull.kernel.census.record import NAME, merge, recorded, write_record
from plugpull.kernel.census.tree import read_tree, scope
from plugpull.kernel.census.words import vocabulary
from plugpull.kernel.census.wrappers import wrappers
from plugpull.plain import clean_line

Census = tuple[str, list[Message], list[Unresolved]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m plugpull.kernel.census", description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--diff", action="store_true", help="what is new, gone or reworded since the recorded census")
    what.add_argument("--record", action="store_true", help="record the census of these trees for the tests")
    what.add_argument("--document", action="store_true", help="put the table into this room's README.md")
    what.add_argument("--words", action="store_true", help="write the vocabulary of half lines from the trees, if any")
    what.add_argument("--list", action="store_true", help="every message with its answer")
    what.add_argument(
        "--index", type=Path, metavar="FILE", help="printk index of the tree's kernel, as a second witness"
    )
    options = parser.parse_args(arguments)
    if (options.diff or options.record or options.index) and not options.trees:
        parser.error("name the source of a kernel")
    try:
        return _run(options)
    except PlugpullError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    censuses = [census(place) for place in options.trees]
    if options.record:
        trees = [(version, found) for version, found, _ in censuses]
        write_record(merge(trees, scope()), Path(__file__).with_name(NAME))
    messages = [each for _, found, _ in censuses for each in found] if censuses else list(recorded().messages)
    if options.words:
        place = Path(catalogue.__file__).with_name("messages").joinpath(f"{VOCABULARY}.txt")
        place.write_text(vocabulary(messages), encoding="utf-8")
        return 0
    if options.diff:
        return _say(show_difference(compare(recorded().messages, messages, scope())))
    if options.list:
        return _say(show_answers(messages))
    if options.index:
        lines = options.index.read_text(errors="replace").splitlines()
        return _say(_line(each) for each in not_in_census(read_index(lines), messages))
    found = coverage(messages, scope())
    _say(table(found.rooms))
    if options.document:
        _document("\n".join(table(found.rooms)))
    _say(f"not a literal: {each.path} {each.function}: {each.text}" for _, _, rest in censuses for each in rest)
    _say(f"no answer: {_line(each)}" for each in found.unanswered)
    _say(f"{', '.join(each.kinds)}: {_line(each.message)}" for each in found.conflicts)
    return 1 if found.unanswered or found.conflicts else 0


def _document(text: str) -> None:
    readme = Path(__file__).with_name("README.md")
    readme.write_text(re.sub(r"^\| directory \|.*\n(?:\|.*\n)*", text + "\n", readme.read_text(), flags=re.MULTILINE))


def census(place: Path) -> Census:
    """(version, messages, calls whose format is not a literal) of a kernel's source."""
    version, files = read_tree(place, scope())
    found = list(SourceTree(files, wrappers()).messages())
    messages = [each for each in found if isinstance(each, Message)]
    return version, messages, [each for each in found if isinstance(each, Unresolved)]


def show_difference(difference: Difference) -> Iterator[str]:
    """New messages with their answers, reworded and gone ones."""
    rules = read_rules()
    for message in difference.new:
        yield f"new: {_line(message)}\n    {_shown(answer_to(message, rules))}"
    for old, new in difference.reworded:
        yield f"reworded: {_line(old)}\n  now: {new.format}\n    {_shown(answer_to(new, rules))}"
    for message in difference.gone:
        yield f"gone: {_line(message)}"


def show_answers(messages: Sequence[Message]) -> Iterator[str]:
    """Each message with its answer."""
    rules = read_rules()
    for message in messages:
        yield f"{_line(message)}\n    {_shown(answer_to(message, rules))}"


def _shown(answer: Answer | Conflict | None) -> str:
    if answer is None:
        return "no answer"
    if isinstance(answer, Conflict):
        return "conflict: " + ", ".join(answer.kinds)
    return f"{answer.kind} {answer.severity}" if answer.kind else f"nothing: {answer.reason}"


def _line(message: Message) -> str:
    return f"{message.level} {message.path} {message.function}: {message.format}"


def _say(lines: Iterator[str]) -> int:
    for line in lines:
        print(clean_line(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())

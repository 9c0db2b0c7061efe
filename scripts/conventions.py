"""Conventions that no linter checks: vocabulary, module docstrings, sizes of files and folders.

Exits 1 and prints each violation that ``scripts/conventions-exceptions.txt`` does not list with a reason.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXCEPTIONS = ROOT / "scripts" / "conventions-exceptions.txt"
FOLDERS = ("src", "tests", "scripts", "docs")
UNCHECKED = {"scripts/conventions.py", "scripts/conventions-exceptions.txt", "LICENSE"}
SUFFIXES = {".py", ".sql", ".md", ".toml", ".yaml", ".sh", ""}
FILES_PER_FOLDER_MAX = 18
LINES_PER_FILE_MAX = 350
SQL_LINES_PER_FILE_MAX = 600
VAGUE = (
    "whoever|whomever|whom|nobody|somebody|anybody|everybody|told|given up|gives? up|giving up|hears? of"
    "|asked anew|lets? (?:it|them) know|carr(?:y|ies|ied) out"
)
METAPHORS = (
    "couriers?|doorkeepers?|attendants?|chores?|patience|tally|tallies|heed(?:s|ed)?|foundation|beginnings|outlets"
    "|timekeeper|surroundings|strays?|setbacks?|first sight|close lost|forget ended|hand on"
)
WORDS = re.compile(rf"(?<![a-z])({VAGUE}|{METAPHORS})(?![a-z])", re.IGNORECASE)
QUESTION = re.compile(r"(What|Who|Whom|Whose|Whether|How|Where)\b")


def main() -> int:
    allowed = {line.split(" # ")[0].strip() for line in EXCEPTIONS.read_text().splitlines() if " # " in line}
    violations = [(key, text) for key, text in _violations() if key not in allowed]
    for key, text in violations:
        print(f"{key}: {text}")
    if violations:
        print(f"{len(violations)} violations. docs/glossary.md has the terms; exceptions need a reason.")
    return 1 if violations else 0


def _violations() -> Iterator[tuple[str, str]]:
    """Pairs of the key that an exception would list and an explanation."""
    paths = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    names = [
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts
    ]
    yield from _crowded_folders(names)
    for name in names:
        if name not in UNCHECKED and Path(name).suffix in SUFFIXES:
            text = (ROOT / name).read_text()
            yield from _words(name, text)
            yield from _size(name, text)
            if name.endswith(".py"):
                yield from _docstring(name, text)


def _crowded_folders(names: list[str]) -> Iterator[tuple[str, str]]:
    folders = Counter(str(Path(name).parent) for name in names if name.startswith("src/"))
    for folder, count in folders.items():
        if count > FILES_PER_FOLDER_MAX:
            yield folder, f"{count} files; at most {FILES_PER_FOLDER_MAX}"


def _words(name: str, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for match in WORDS.finditer(re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", line)):
            yield f"{name}: {match.group().lower()}", f"line {number}: {line.strip()[:100]}"


def _size(name: str, text: str) -> Iterator[tuple[str, str]]:
    lines_max = SQL_LINES_PER_FILE_MAX if name.endswith(".sql") else LINES_PER_FILE_MAX
    count = text.count("\n")
    if name.startswith("src/") and count > lines_max:
        yield f"{name}: size", f"{count} lines; at most {lines_max}"


def _docstring(name: str, text: str) -> Iterator[tuple[str, str]]:
    docstring = ast.get_docstring(ast.parse(text))
    if docstring and QUESTION.match(docstring):
        yield f"{name}: docstring", docstring.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())

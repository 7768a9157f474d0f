"""C files as a lint sees them: which there are, their includes, their code without comments and strings, their functions."""
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//(?:[^\n\\]|\\.)*)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
""", re.S | re.M | re.X)
HEAD = re.compile(r"(\w+)\s*\((?:[^;{}])*\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*$", re.S)
NOT_FUNCTIONS = {"if", "for", "while", "switch", "return", "sizeof"}


def files(*folders, suffixes=(".c", ".h")):
    """Paths below folders of the project, as strings relative to its root."""
    return sorted(path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*")
                  if path.suffix in suffixes)


def read(path):
    return (ROOT / path).read_text()


def includes(path):
    """Headers named by #include lines, in order."""
    text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    return re.findall(r'(?m)^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', text)


def code(path):
    """The text with comments, strings and directives blanked; lines stay where they are."""
    def blank(match):
        filler = "\n" * match[0].count("\n")
        return '""' + filler if match.lastgroup == "text" else filler

    return TOKEN.sub(blank, read(path))


@dataclass
class Function:
    path: str
    name: str
    line: int
    lines: int
    depth: int  # control blocks inside each other, the body itself not counted

    def __str__(self):
        return f"{self.path}:{self.line} {self.name}: {self.lines} lines, {self.depth} levels"


def functions(path):
    """The functions a file defines."""
    text, found, depth, deepest, begin, head = code(path), [], 0, 0, 0, 0
    for mark in re.finditer(r"[{};]", text):
        character, at = mark[0], mark.start()
        if character == "{":
            begin = at if depth == 0 else begin
            deepest = depth if depth > 0 and deepest < depth else deepest
            depth += 1
        elif character == "}":
            depth -= 1
        if depth > 0:
            continue
        name = HEAD.search(text[head:begin]) if character == "}" else None
        if name and name[1] not in NOT_FUNCTIONS and "=" not in text[head:begin].split("(")[0]:
            first = text.count("\n", 0, begin) + 1
            found.append(Function(path, name[1], first, text.count("\n", begin, at) + 1, deepest))
        head, deepest = mark.end(), 0
    return found

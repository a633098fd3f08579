#!/usr/bin/env python3
"""Checks the source tree against layers.json, and prints one line for each fault.

Rules:
  layer     A file belongs to the layer with the longest folder name above it. It may include its own
            layer, the layers in "folders" (with what lies below them) and the libraries in
            "libraries"; "*" allows all. "files" widens this for file names that match a pattern.
            The C++ standard library is allowed everywhere. Every header named in angle brackets must
            belong to it or to a library of the list; generated headers are listed there too.
  guard     A header's guard is TIDEMARK_ and its path in capitals.
  readme    Every folder that holds source files has a README.md.
  words     No source file holds a word of "banned_words".
  length    No source file has more than "max_lines" lines.

usage: check_structure.py ROOT        exit status 0: no fault, 1: faults, 2: usage
"""
import fnmatch
import json
import pathlib
import re
import sys

# The headers of C++20.
STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv
    chrono cinttypes climits clocale cmath codecvt compare complex concepts condition_variable
    coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar
    cwctype deque exception execution filesystem format forward_list fstream functional future
    initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
    memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept
    stop_token streambuf string string_view strstream syncstream system_error thread tuple
    type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
    version""".split()
)
SOURCES = {".cc", ".h", ".proto", ".glsl"}
WORD_FILES = SOURCES | {".py", ".cmake", ".sh", ".md", ".toml", ".txt", ".yml", ".yaml"}
SKIPPED = re.compile(r"^(\.git|\.cache|build.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def files_of(root):
    """Every file below root, as paths relative to it, without build folders."""
    found = []
    for path in sorted(root.iterdir()):
        if SKIPPED.match(path.name):
            continue
        if path.is_dir():
            found += [path.relative_to(root) / below for below in files_of(path)]
        elif path.is_file():
            found.append(path.relative_to(root))
    return found


def below(path, folder):
    return path == folder or path.startswith(folder + "/")


def layer_of(path, layers):
    names = [name for name in layers if below(path, name)]
    return max(names, key=len) if names else None


def library_of(header, libraries):
    for name, prefixes in libraries.items():
        if any(header == p or (p.endswith("/") and header.startswith(p)) for p in prefixes):
            return name
    return None


def check_includes(path, text, rules):
    layers, libraries = rules["layers"], rules["libraries"]
    layer = layer_of(str(path), layers)
    if layer is None:
        yield f"{path}:1: no layer in layers.json holds this file"
        return
    folders = [layer] + layers[layer]["folders"]
    allowed = list(layers[layer]["libraries"])
    for pattern, more in layers[layer].get("files", {}).items():
        if fnmatch.fnmatch(path.name, pattern):
            folders += more["folders"]
            allowed += more["libraries"]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, header = match.groups()
        where = f"{path}:{number}:"
        if bracket == "<" and header in STANDARD:
            continue
        library = library_of(header, libraries)
        if library is not None:
            if library not in allowed and "*" not in allowed:
                yield f"{where} {layer} must not see {library} (<{header}>)"
        elif bracket == "<":
            yield f"{where} <{header}> belongs to no library in layers.json"
        elif "/" not in header:
            yield f'{where} "{header}": paths begin at the root of the repository'
        elif "*" not in folders and not any(below(header, folder) for folder in folders):
            yield f'{where} {layer} must not include "{header}"'


def check_guard(path, text):
    expected = "TIDEMARK_" + re.sub(r"[^A-Z0-9]", "_", str(path).upper()) + "_"
    directives = re.findall(r"^\s*#\s*(\w+)\s*(\w*)", text, re.MULTILINE)
    if directives[:2] != [("ifndef", expected), ("define", expected)]:
        yield f"{path}:1: expected the header guard {expected}"
    elif not text.rstrip().endswith(f"#endif  // {expected}"):
        yield f"{path}:{len(text.splitlines())}: expected #endif  // {expected} at the end"


def check(root, rules):
    """All faults below root, as lines."""
    faults = []
    folders_with_sources = set()
    files = files_of(root)
    words = re.compile(r"\b(" + "|".join(map(re.escape, rules["banned_words"])) + r")\b")
    for path in files:
        # This folder names the banned words.
        if path.suffix not in WORD_FILES or below(str(path), "tests/structure"):
            continue
        text = (root / path).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if match := words.search(line):
                faults.append(f"{path}:{number}: {match.group(1)} marks unfinished work")
        if path.suffix not in SOURCES:
            continue
        folders_with_sources.add(path.parent)
        if (lines := len(text.splitlines())) > rules["max_lines"]:
            faults.append(f"{path}:1: {lines} lines, more than {rules['max_lines']}")
        if path.suffix in {".cc", ".h"}:
            faults += check_includes(path, text, rules)
        if path.suffix == ".h":
            faults += check_guard(path, text)
    for folder in sorted(folders_with_sources):
        if folder / "README.md" not in files:
            faults.append(f"{folder}: holds source files but no README.md")
    for name in rules["layers"]:
        if not (root / name).is_dir():
            faults.append(f"layers.json: there is no folder {name}")
    return faults


def main(arguments):
    if len(arguments) != 2 or not pathlib.Path(arguments[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    rules = json.loads(pathlib.Path(__file__).with_name("layers.json").read_text(encoding="utf-8"))
    faults = check(pathlib.Path(arguments[1]), rules)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

#!/usr/bin/env python3
"""Each rule of check_structure.py must be able to fail: small trees with one fault each."""
import json
import pathlib
import tempfile
import unittest

import check_structure

RULES = {
    "libraries": {"gl": ["epoxy/"], "net": ["boost/"], "hash": ["xxhash.h"]},
    "layers": {
        "core": {"folders": [], "libraries": []},
        "core/fast": {"folders": ["core"], "libraries": ["hash"]},
        "draw": {"folders": [], "libraries": [], "files": {"gl_*": {"folders": ["core"], "libraries": ["gl"]}}},
        "app": {"folders": ["*"], "libraries": ["*"]},
    },
    "banned_words": ["TODO"],
    "max_lines": 20,
}


def header(path, body=""):
    guard = "TIDEMARK_" + path.upper().replace("/", "_").replace(".", "_") + "_"
    return f"#ifndef {guard}\n#define {guard}\n{body}\n#endif  // {guard}\n"


class CheckStructureTest(unittest.TestCase):
    def faults(self, extra):
        """What is found in a good tree, changed by `extra`: path to text, None for absent."""
        tree = {
            "core/README.md": "core",
            "core/a.h": header("core/a.h", "#include <vector>"),
            "core/fast/README.md": "fast",
            "core/fast/b.cc": '#include <xxhash.h>\n#include "core/a.h"\n',
            "draw/README.md": "draw",
            "draw/gl_c.cc": '#include <epoxy/gl.h>\n#include "core/a.h"\n#include MACRO\n',
            "app/README.md": "app",
            "app/d.cc": '#include <boost/asio.hpp>\n#include "draw/e.h"\n',
            "build-x/z.h": "no guard, but not ours",
            **extra,
        }
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in tree.items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text, encoding="utf-8")
            return check_structure.check(root, RULES)

    def test_good_tree(self):
        self.assertEqual(self.faults({}), [])

    def test_layer_must_not_include_another(self):
        for text in ['#include "app/d.h"', '  #  include "app/d.h"', '#include "corex/a.h"']:
            faults = self.faults({"core/f.cc": "\n" + text})
            self.assertEqual(len(faults), 1, text)
            self.assertTrue(faults[0].startswith("core/f.cc:2: core must not include"), faults)

    def test_parent_may_include_what_lies_below_it_but_not_its_libraries(self):
        self.assertEqual(self.faults({"core/f.cc": '#include "core/fast/b.h"'}), [])
        self.assertEqual(
            self.faults({"core/f.cc": "#include <xxhash.h>"}),
            ["core/f.cc:1: core must not see hash (<xxhash.h>)"],
        )

    def test_library_in_quotes_is_seen_too(self):
        self.assertEqual(
            self.faults({"core/f.cc": '#include "epoxy/gl.h"'}),
            ["core/f.cc:1: core must not see gl (<epoxy/gl.h>)"],
        )

    def test_file_pattern_widens_for_its_files_alone(self):
        self.assertEqual(
            self.faults({"draw/cpu.cc": "#include <epoxy/gl.h>"}),
            ["draw/cpu.cc:1: draw must not see gl (<epoxy/gl.h>)"],
        )

    def test_unknown_library_and_relative_path(self):
        self.assertEqual(
            self.faults({"app/f.cc": '#include <zlib.h>\n#include "d.h"'}),
            [
                "app/f.cc:1: <zlib.h> belongs to no library in layers.json",
                'app/f.cc:2: "d.h": paths begin at the root of the repository',
            ],
        )

    def test_file_without_layer_and_layer_without_folder(self):
        faults = self.faults({"other/README.md": "", "other/f.cc": "", "draw/README.md": None, "draw/gl_c.cc": None})
        self.assertEqual(
            faults,
            ["other/f.cc:1: no layer in layers.json holds this file", "layers.json: there is no folder draw"],
        )

    def test_guard(self):
        for text in [
            "#pragma once\n",
            header("core/g.h"),
            header("core/f.h").replace("#endif  // TIDEMARK_CORE_F_H_", "#endif"),
            header("core/f.h").replace("#define TIDEMARK_CORE_F_H_", "#define TIDEMARK_CORE_H_"),
        ]:
            faults = self.faults({"core/f.h": text})
            self.assertEqual(len(faults), 1, text)
            self.assertIn("TIDEMARK_CORE_F_H_", faults[0])

    def test_readme(self):
        self.assertEqual(
            self.faults({"core/README.md": None}), ["core: holds source files but no README.md"]
        )

    def test_banned_word(self):
        self.assertEqual(
            self.faults({"app/notes.md": "ok\nTODO: more\nTODOS is another word\n"}),
            ["app/notes.md:2: TODO marks unfinished work"],
        )

    def test_length(self):
        self.assertEqual(
            self.faults({"app/f.cc": "\n" * 21}), ["app/f.cc:1: 21 lines, more than 20"]
        )

    def test_rules_file_names_known_libraries_and_folders(self):
        text = pathlib.Path(__file__).with_name("layers.json").read_text(encoding="utf-8")
        rules = json.loads(text)
        folders = set(rules["layers"]) | {"*", "gpu", "gpu/shaders", "tests/support"}
        for name, layer in rules["layers"].items():
            for entry in [layer, *layer.get("files", {}).values()]:
                self.assertLessEqual(set(entry["libraries"]), set(rules["libraries"]) | {"*"}, name)
                self.assertLessEqual(set(entry["folders"]), folders, name)


if __name__ == "__main__":
    unittest.main()

"""The top level holds exactly the agreed entries, every source is listed by name in its folder's meson.build, and no folder of
the product has more files than a reader takes in."""

import os
import re

TOP = {
    ".ci", ".clang-format", ".clang-tidy", ".gitignore", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "README.md",
    "SECURITY.md", "cli", "configs", "man", "meson.build", "meson_options.txt", "scripts", "supervisor", "tests",
    "transport", "worker",
}
# Of the product, headers and sources together: who looks for a file reads the names of its folder first.
MOST_FILES = 45
PRODUCT = re.compile(r"(cli|supervisor|worker|transport)/.*\.(cc|h|hpp)")
LISTED = re.compile(r".*\.cc|tests/.*_test\.py")

CLEAN = {
    "meson.build": "subdir('cli')\n",
    "cli/meson.build": "executable('monarch', 'main.cc', 'sub/part.cc')\n",
    "cli/main.cc": "\n",
    "cli/sub/part.cc": "\n",
    **{f"cli/sub/{n}.h": "\n" for n in range(MOST_FILES - 1)},
    "tests/cli/meson.build": "foreach name : ['ps_test.py']\n",
    "tests/cli/ps_test.py": "\n",
    "tests/fuzz/meson.build": "foreach name : ['wire']\n  x = name + '_fuzz.cc'\n",
    "tests/fuzz/wire_fuzz.cc": "\n",
}
PLANTS = [
    ("cli/sub/part.h", "\n", f"cli/sub/: {MOST_FILES + 1} files, more than {MOST_FILES}"),
    ("utils/a.h", "\n", "is not an agreed entry of the top level"),
    ("notes.txt", "\n", "is not an agreed entry of the top level"),
    ("cli/forgotten.cc", "\n", "is in no meson.build"),
    ("tests/fuzz/forgotten_fuzz.cc", "\n", "is in no meson.build"),
    ("tests/cli/forgotten_test.py", "\n", "is in no meson.build"),
    ("cli/rank/meson.build", "files = run_command('ls', check: true)\n", "lists its files by a command"),
]


def top_entries(tree):
    """What git knows, where it knows the tree: a build folder or a scratch file of a developer is nobody's business."""
    tracked = tree.git("ls-files", "-z")
    paths = tracked.split("\0") if tracked else tree.files()
    return sorted({p.split("/")[0] for p in paths if p})


def names(build, path):
    """The file by its name, or by the part of it that a list in the build file puts before a common end."""
    ends = [end for end in re.findall(r"\w \+ '([^']+)'", build) if path.endswith(end)]
    return f"'{path}'" in build or any(f"'{path.removesuffix(end)}'" in build for end in ends)


def is_listed(tree, path):
    folder = os.path.dirname(path)
    while True:
        build = os.path.join(folder, "meson.build")
        if tree.exists(build) and names(tree.read(build), os.path.relpath(path, folder or ".")):
            return True
        if not folder:
            return False
        folder = os.path.dirname(folder)


def crowded(tree):
    counts, last = {}, {}
    for path in filter(PRODUCT.fullmatch, tree.files()):
        folder = os.path.dirname(path)
        counts[folder], last[folder] = counts.get(folder, 0) + 1, path
    return [f"{folder}/: {count} files, more than {MOST_FILES} in one folder ({last[folder]})"
            for folder, count in counts.items() if count > MOST_FILES]


def check(tree, _build):
    found = [f"{e}/: is not an agreed entry of the top level ({e})" for e in top_entries(tree) if e not in TOP]
    # A plant names the file; say it as well.
    found = [f"{c} {' '.join(p for p in tree.files() if p.split('/')[0] == c.split('/')[0])[:80]}" for c in found]
    for path in tree.files(".cc", ".py"):
        if LISTED.fullmatch(path) and not is_listed(tree, path):
            found.append(f"{path}: is in no meson.build")
    found += crowded(tree)
    for path in tree.files("meson.build"):
        if re.search(r"run_command\s*\(\s*'(ls|find|sh|bash)'|\bglob\b", tree.read(path)):
            found.append(f"{path}: lists its files by a command")
    return found

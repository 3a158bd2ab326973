"""What every lint reads: the files of a tree by their path from its root, and C++ text without comments or strings."""

import os
import re
import subprocess

# `.git` is a folder, or in a linked worktree a file.
SKIPPED = re.compile(r"^(\.git|build|build-.*|__pycache__|shared)$")
CXX = (".cc", ".h", ".hpp")


class SourceTree:
    """A tree on disk. `root` is an absolute path; every path given or returned is relative to it, with slashes."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self._texts = {}

    def files(self, *endings):
        found = []
        for folder, subfolders, names in os.walk(self.root):
            subfolders[:] = sorted(d for d in subfolders if not SKIPPED.match(d))
            for name in sorted(names):
                if name != ".git" and (not endings or name.endswith(endings)):
                    found.append(os.path.relpath(os.path.join(folder, name), self.root))
        return found

    def cxx(self):
        return self.files(*CXX)

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))

    def read(self, path):
        """The text of a file; bytes that are not UTF-8 (a fuzz corpus) are replaced."""
        if path not in self._texts:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def git(self, *arguments):
        """The output of a git command in the tree, or None where there is no git or no repository."""
        try:
            done = subprocess.run(["git", "-c", "safe.directory=*", "-C", self.root, *arguments], check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  timeout=60)
        except FileNotFoundError:
            return None
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'                       # comments
    r'|R"([^()\\ ]{0,16})\(.*?\)\1"'            # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                     # strings
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",   # characters, but not the separators of 1'000
    re.DOTALL)


def without_comments(text):
    """C++ text with its comments blanked; line numbers stay."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group().startswith("/") else m.group(), text)


def code_of(text):
    """C++ text with comments, strings and characters blanked; line numbers stay."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def includes_of(text):
    """(line, quoted, path) of every include."""
    plain = without_comments(text)
    return [(line_of(plain, m.start()), m.group(1) == '"', m.group(2)) for m in INCLUDE.finditer(plain)]

"""Files of command lines and what is answered to them:

    $ a line
    = STATUS
    1 a line of stdout
    2 a line of stderr

A test replays each; `--update` writes the file anew from what the build answers, and the difference is read before it is committed.
"""

import sys

import harness


def cases(path):
    """[line, expected answer] in the order of the file; a line may go on after a backslash."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = []
    for block in ("\n" + text).split("\n$ ")[1:]:
        line, _, expected = block.rstrip("\n").partition("\n= ")
        found.append((line, "= " + expected))
    return found


def shown(done, folder):
    """The answer as such a file has it; the test's folder is @."""
    lines = [f"= {done.status}"]
    for mark, text in (("1", done.out), ("2", done.err)):
        lines += [f"{mark} {part}".rstrip() for part in text.replace(folder, "@").splitlines()]
    return "\n".join(lines)


def main(test, path):
    """harness.main(), or the update of the file: of each line to what answer() of a `test` after its world() says."""
    class Writer(test):
        def test_write(self):
            self.world()
            text = "\n\n".join(f"$ {line}\n{self.answer(line)}" for line, _ in cases(path)) + "\n"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    if sys.argv[1:] != ["--update"]:
        harness.main()
    suite = harness.unittest.TestSuite([Writer("test_write")])
    sys.exit(0 if harness.unittest.TextTestRunner().run(suite).wasSuccessful() else 1)

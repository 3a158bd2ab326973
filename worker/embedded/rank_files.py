#!/usr/bin/env python3
"""Writes an assembler source with the bytes of files, each between two symbols, for rank_files.cc. Modules are one piece: of
each its path below FOLDER, a blank, its size and a newline, then its bytes.

usage: rank_files.py OUTPUT MODULES FOLDER NAME=FILE... -- MODULE...
"""

import pathlib
import sys

SOURCE = """    .balign 16
    .global monarch_{name}_begin
    .global monarch_{name}_end
monarch_{name}_begin:
    .incbin "{path}"
monarch_{name}_end:
    .byte 0
"""


def main():
    output, modules, folder = map(pathlib.Path, sys.argv[1:4])
    named, files = sys.argv[4:], []
    while named[-1] != "--":
        files.append(pathlib.Path(named.pop()).resolve())
    pieces = []
    for file in sorted(files):
        data = file.read_bytes()
        pieces.append(f"{file.relative_to(folder.resolve())} {len(data)}\n".encode() + data)
    modules.write_bytes(b"".join(pieces))
    parts = ["    .section .rodata\n"]
    for one in [*named[:-1], f"python_modules={modules}"]:
        name, _, path = one.partition("=")
        parts.append(SOURCE.format(name=name, path=pathlib.Path(path).resolve()))
    parts.append('    .section .note.GNU-stack, "", %progbits\n')
    output.write_text("".join(parts), encoding="utf-8")


main()

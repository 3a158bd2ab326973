#!/usr/bin/env python3
"""Writes an assembler source with the bytes of files, each between two symbols, for rank_files.cc.

usage: rank_files.py OUTPUT NAME=FILE...
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
    parts = ["    .section .rodata\n"]
    for named in sys.argv[2:]:
        name, _, path = named.partition("=")
        parts.append(SOURCE.format(name=name, path=pathlib.Path(path).resolve()))
    parts.append('    .section .note.GNU-stack, "", %progbits\n')
    pathlib.Path(sys.argv[1]).write_text("".join(parts), encoding="utf-8")


main()

#!/usr/bin/env python3
"""Writes an assembler source with the bytes of a file between two symbols, for rank_file.cc.

usage: rank_file.py FILE OUTPUT
"""

import pathlib
import sys

SOURCE = """    .section .rodata
    .balign 16
    .global monarch_rank_file_begin
    .global monarch_rank_file_end
monarch_rank_file_begin:
    .incbin "{path}"
monarch_rank_file_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
"""


def main():
    path = pathlib.Path(sys.argv[1]).resolve()
    pathlib.Path(sys.argv[2]).write_text(SOURCE.format(path=path), encoding="utf-8")


main()

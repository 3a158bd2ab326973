#!/usr/bin/env python3
"""Packs what scripts/package has staged below PREFIX as a wheel, which pip installs: command, worker and man pages below the prefix of the
environment, the Python package into its site-packages. Its files are as old as SECONDS say, so that the same tree gives the same bytes.

usage: wheel.py PREFIX VERSION SECONDS FOLDER

share/monarch/python is there a second time, below the prefix: torchmonarch has a package of the same name in site-packages, and what
`monarch python` prints must be ours alone.
"""

import base64
import hashlib
import pathlib
import platform
import posixpath
import re
import stat
import sys
import time
import zipfile

NAME = "monarch_run"
GLIBC = 36  # of Debian 12: 2.36
SUMMARY = "Runs jobs of many processes, and programs written for PyTorch Monarch"
DESCRIPTION = """\
    monarch run -n 4 -- python3 train.py     # for torchrun --nproc-per-node 4 train.py
    monarch run job.yaml                     # on virtual hosts of this machine, over SSH, or on Slurm

The command `monarch` starts the processes of a job, follows them, starts again what fails, names the first cause, and leaves nothing behind.

    from monarch.actor import Actor, endpoint, this_host

runs on it as well. torchmonarch has a package and a command of the same names: use an environment without it, or, for a program,
`PYTHONPATH=$(monarch python) python3 PROGRAM`. `monarch doctor` says whose package python3 imports.
"""
EXECUTABLE, PLAIN = 0o755, 0o644


def places(prefix, info, data):
    """Folders below what is staged, and the folder of the wheel that each becomes."""
    yield prefix / "bin", f"{data}/scripts"
    yield prefix / "share/monarch/python", ""
    for at in ("libexec", "share/man", "share/monarch"):
        yield prefix / at, f"{data}/data/{at}"
    yield prefix / "share/doc/monarch/licenses", f"{info}/licenses"


def contents_of(folder, at):
    """Files of a folder that becomes `at`: (path in the wheel, bytes, mode)."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        executable = content.startswith(b"\x7fELF")
        if executable:
            check_glibc(path, content)
        yield posixpath.join(at, path.relative_to(folder).as_posix()), content, EXECUTABLE if executable else PLAIN


def check_glibc(path, content):
    """ValueError: a machine that the wheel's tag names could not run it."""
    newest = max((int(found) for found in re.findall(rb"GLIBC_2\.(\d+)", content)), default=0)
    if newest > GLIBC:
        raise ValueError(f"{path} needs glibc 2.{newest}, and wheels are for 2.{GLIBC}: build on Debian 12")


def write(wheel, moment, contents, info):
    """Contents is [(path, bytes, mode)]; the list of all of them, with their sums, comes last."""
    record = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content, mode in contents:
            add(archive, moment, path, content, mode)
            sum_of = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={sum_of},{len(content)}\n")
        add(archive, moment, f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]).encode(), PLAIN)


def add(archive, moment, path, content, mode):
    entry = zipfile.ZipInfo(path, moment)
    entry.create_system = 3  # Unix: the mode counts
    entry.external_attr = (stat.S_IFREG | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=9)


def main():
    (prefix, out), version, seconds = map(pathlib.Path, sys.argv[1:5:3]), sys.argv[2], int(sys.argv[3])
    info, data = f"{NAME}-{version}.dist-info", f"{NAME}-{version}.data"
    tag = f"py3-none-manylinux_2_{GLIBC}_{platform.machine()}"
    contents = [one for folder, at in places(prefix, info, data) for one in contents_of(folder, at)]
    contents.append((f"{info}/licenses/LICENSE", (prefix / "share/doc/monarch/LICENSE").read_bytes(), PLAIN))
    licenses = [f"License-File: {posixpath.basename(at)}\n" for at, _, _ in contents if at.startswith(f"{info}/licenses/")]
    metadata = (f"Metadata-Version: 2.4\nName: {NAME.replace('_', '-')}\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: Apache-2.0\n"
                f"{''.join(licenses)}Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{DESCRIPTION}")
    kind = f"Wheel-Version: 1.0\nGenerator: monarch {version}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    contents += [(f"{info}/METADATA", metadata.encode(), PLAIN), (f"{info}/WHEEL", kind.encode(), PLAIN)]
    wheel = out / f"{NAME}-{version}-{tag}.whl"
    write(wheel, time.gmtime(seconds)[:6], contents, info)
    print(wheel)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"monarch: {error}")

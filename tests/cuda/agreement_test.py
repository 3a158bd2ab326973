"""agree.cc with every header of CUDA and NCCL that this machine has: in CUDA_HOME, in /usr/local/cuda, where the compiler looks by itself, and
in the packages of Pythons. Says which versions it used. Where there is none it is skipped by name.
"""

import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
AGREE = os.path.join(HERE, "agree.cc")
COMPILER = next((found for found in map(shutil.which, ("g++", "clang++", "clang++-14")) if found), None)
# Pythons that may have a PyTorch with CUDA: this one, PATH's, and those that other tests and benchmarks install.
PYTHONS = [sys.executable, shutil.which("python3"), os.environ.get("MONARCH_TEST_TORCHMONARCH"),
           os.path.join(os.environ.get("MONARCH_TEST_TORCHFT") or os.path.join(ROOT, "build-torchft"), "bin", "python3"),
           *glob.glob(os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "monarch-bench", "*", "bin", "python3"))]

CUDA = {"header": "cuda.h", "own": "transport/tensor/cuda/cuda_own.h", "flag": "-DWITH_CUDA", "version": r"^#define\s+CUDA_VERSION\s+(\d+)"}
NCCL = {"header": "nccl.h", "own": "transport/tensor/nccl/nccl_own.h", "flag": "-DWITH_NCCL", "version": r"^#define\s+NCCL_VERSION_CODE\s+(\d+)"}
Header = collections.namedtuple("Header", "path version")

# What a header may come to declare otherwise: (in which, from, to, what the compiler then says).
CHANGED = [
    (CUDA, "kMaxPitch = 11", "kMaxPitch = 12", "CU_DEVICE_ATTRIBUTE_MAX_PITCH"),
    (CUDA, "kNotReady = 600", "kNotReady = 601", "CUDA_ERROR_NOT_READY"),
    (CUDA, "(*host_register)(void* start, std::size_t bytes,", "(*host_register)(void* start, unsigned bytes,", "cuMemHostRegister_v2"),
    (CUDA, "(*event_query)(Event event)", "(*event_query)(Event event, unsigned flags)", "cuEventQuery"),
    (CUDA, "(*to_host)(void* to, Address from,", "(*to_host)(Address to, void* from,", "cuMemcpyDtoHAsync_v2"),
    (CUDA, "  void* source_array = nullptr;\n", "", "CUDA_MEMCPY2D"),
    (CUDA, "  std::size_t target_x = 0;  // bytes\n  std::size_t target_y = 0;\n", "  std::size_t target_y = 0;\n  std::size_t target_x = 0;\n",
     "dstXInBytes"),
    (CUDA, "  std::size_t width = 0;  // bytes\n", "  unsigned width = 0;\n", "WidthInBytes"),
    (NCCL, "kBfloat16 = 9", "kBfloat16 = 8", "ncclBfloat16"),
    (NCCL, "char bytes[128]", "char bytes[64]", "ncclUniqueId"),
    (NCCL, "(*finalize)(Comm comm)", "(*finalize)(int comm)", "ncclCommFinalize"),
    (NCCL, "  unsigned magic = kConfigMagic;\n  unsigned version = kConfigVersion;\n",
     "  unsigned version = kConfigVersion;\n  unsigned magic = kConfigMagic;\n", "magic"),
]


def version_text(library, version):
    """13020 of CUDA is 13.2, 22809 of NCCL 2.28.9."""
    number = int(version)
    return f"{number // 1000}.{number % 1000 // 10}" if library is CUDA else f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def packages_of(python):
    """The folders of headers that NVIDIA's packages of a Python bring, and triton."""
    if not python or not os.path.exists(python):
        return []
    asked = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib')); print(sysconfig.get_path('purelib'))"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    found = []
    for folder in asked.stdout.decode().split("\n")[:2]:
        if folder:
            found += glob.glob(os.path.join(folder, "nvidia", "*", "include"))
            found += glob.glob(os.path.join(folder, "triton", "backends", "nvidia", "include"))
    return found


def own_places():
    """Where the compiler looks without being told."""
    said = subprocess.run([COMPILER, "-E", "-x", "c++", "-v", os.devnull], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=60).stderr.decode()
    listed = re.search(r"#include <\.\.\.> search starts here:\n(.*?)\nEnd of search list", said, re.DOTALL)
    return [line.strip() for line in listed.group(1).split("\n")] if listed else []


def places():
    found = [os.path.join(home, "include") for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    found += own_places()
    for python in PYTHONS:
        found += packages_of(python)
    return found


def headers_of(library, folders):
    """Those that there are, each once, with their versions."""
    found = {}
    for folder in folders:
        path = os.path.join(folder, library["header"])
        if os.path.isfile(path):
            version = re.search(library["version"], read(path), re.MULTILINE)
            if version:
                found.setdefault(os.path.realpath(path), Header(path, version.group(1)))
    by_version = {}
    for header in found.values():
        by_version.setdefault(header.version, header)
    return sorted(by_version.values(), key=lambda header: int(header.version))


@unittest.skipUnless(COMPILER, "there is no compiler here")
class AgreementTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folders = places()
        cls.headers = {library["header"]: headers_of(library, cls.folders) for library in (CUDA, NCCL)}

    def compiled(self, library, header, root=ROOT):
        """What the compiler says of agree.cc; nothing where all is as it should be."""
        beside = [folder for folder in self.folders if os.path.isfile(os.path.join(folder, "cuda_runtime.h"))][:1]
        folders = [root, os.path.dirname(header.path), *(beside if library is NCCL else [])]
        done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", library["flag"], *("-I" + folder for folder in folders), AGREE],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        said = done.stdout.decode()
        return said if done.returncode else ""

    def used(self, library):
        """The headers to hold ours against, or the case is skipped."""
        if not os.path.exists(os.path.join(ROOT, library["own"])):
            self.skipTest(f"{library['own']} is not in this tree")
        found = self.headers[library["header"]]
        if not found:
            self.skipTest(f"no {library['header']} in CUDA_HOME, /usr/local/cuda, {COMPILER}'s folders, or the packages of a Python here")
        if library is NCCL and not any(os.path.isfile(os.path.join(folder, "cuda_runtime.h")) for folder in self.folders):
            self.skipTest("no cuda_runtime.h, which nccl.h includes")
        return found

    def agrees(self, library):
        for header in self.used(library):
            self.assertEqual(self.compiled(library, header), "", header.path)
            print(f"# agrees with {library['header']} of {version_text(library, header.version)}, {header.path}", flush=True)

    def test_agrees_with_the_headers_of_cuda(self):
        self.agrees(CUDA)

    def test_agrees_with_the_headers_of_nccl(self):
        self.agrees(NCCL)

    def refuses_what_is_changed(self, library):
        header = self.used(library)[-1]
        original = read(os.path.join(ROOT, library["own"]))
        for its, before, after, named in CHANGED:
            if its is not library:
                continue
            self.assertEqual(original.count(before), 1, before)
            with self.subTest(after or before), tempfile.TemporaryDirectory() as root:
                path = os.path.join(root, library["own"])
                os.makedirs(os.path.dirname(path))
                with open(path, "w", encoding="utf-8") as file:
                    file.write(original.replace(before, after))
                said = self.compiled(library, header, root)
                self.assertIn(named, said)
                self.assertRegex(said, "static assertion failed|static_assert failed|has no member")

    def test_refuses_a_changed_declaration_of_cuda(self):
        self.refuses_what_is_changed(CUDA)

    def test_refuses_a_changed_declaration_of_nccl(self):
        self.refuses_what_is_changed(NCCL)

    def test_looks_at_every_constant(self):
        agree = read(AGREE)
        for library in (CUDA, NCCL):
            path = os.path.join(ROOT, library["own"])
            if not os.path.exists(path):
                continue
            for name in re.findall(r"^inline constexpr \w+ (k\w+) =", read(path), re.MULTILINE):
                if not name.startswith("kConfig"):  # those are values of fields
                    self.assertIn(f"VALUE({name},", agree)


if __name__ == "__main__":
    tap.main()

"""A Linux guest with two devices of soft-RoCE (rdma_rxe), for real libibverbs where the machine has no RDMA device: QEMU runs Debian's own
kernel, instruction by instruction where it must, over an initramfs that is made here. Nothing is installed but QEMU; nothing of the
machine's network is touched.

    guest.py prepare FOLDER              downloads kernel and programs with apt-get, and makes the guest's files; once
    guest.py run FOLDER COMMAND PROGRAM...
                                         runs a line of a shell in a guest, with these programs in its PATH and ib_read_bw beside them:
                                         rxe0 is at 10.8.0.1 on v0, rxe1 at 10.8.0.2 on v1, a veth pair between them

The status of `run` is the command's; 124: its time was up; 125: the guest did not run it. Standard library only.
"""

import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Those of the cloud kernel lack rdma_rxe.
KERNEL = "linux-image-amd64"
MODULES = ["virtio_pci", "virtio_console", "crc32_generic", "veth", "sch_netem", "rdma_rxe"]
PACKAGES = ["busybox-static", "iproute2", "ibverbs-providers", "libibverbs1", "perftest", "librdmacm1", "libibumad3", "libpci3", "libnl-3-200",
            "libnl-route-3-200", "libmnl0", "libbpf1", "libelf1", "libcap2", "libbsd0", "libmd0", "zlib1g", "libtirpc3", "libxtables12"]
PROGRAMS = ["usr/bin/rdma", "usr/bin/ib_read_bw", "bin/ip", "sbin/tc"]
LIBRARIES = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
READY = "ready"


class Unavailable(Exception):
    """No guest can be had here; the text says why."""


def recipe():
    """What the files of a guest are made by: where that has changed they are made anew."""
    digest = hashlib.sha256()
    for name in ("guest.py", "init"):
        with open(os.path.join(HERE, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def is_ready(folder):
    try:
        with open(os.path.join(folder, READY), encoding="ascii") as file:
            return file.read() == recipe()
    except OSError:
        return False


def must(command, **options):
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        last = done.stdout.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(f"{command[0]} ended with {done.returncode}: {' '.join(last)}")
    return done.stdout


# ---- What it is made of.

def kernel_package():
    if subprocess.run(["apt-cache", "show", KERNEL], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        must(["apt-get", "-q", "update"])  # a machine whose packages were all there has no lists
    for line in must(["apt-cache", "depends", KERNEL]).decode().splitlines():
        found = re.match(r"\s*Depends: (linux-image-[0-9]\S*)", line)
        if found:
            return found[1]
    raise Unavailable(f"apt knows no kernel behind {KERNEL}")


def unpacked_kernel(image):
    """The ELF file within a bzImage: a guest that is interpreted unpacks it for seconds. The offsets are those of
    Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length."""
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    packed = image[start:start + length]
    if not packed.startswith(b"\xfd7zXZ\0"):
        raise Unavailable("the kernel is packed in another way than by xz")
    kernel = lzma.LZMADecompressor().decompress(packed)
    if not kernel.startswith(b"\x7fELF"):
        raise Unavailable("what the kernel's file has packed is no ELF file")
    return kernel


def module_files(root):
    found = {}
    for folder, _, names in os.walk(os.path.join(root, "lib/modules")):
        for name in names:
            if ".ko" in name:
                found[name.split(".ko")[0].replace("-", "_")] = os.path.join(folder, name)
    return found


def read_module(path):
    with open(path, "rb") as file:
        data = file.read()
    return lzma.decompress(data) if path.endswith(".xz") else data


def modules_in_order(root):
    """(name, bytes), each behind those that it depends on; what is built in has no file."""
    files, order, seen = module_files(root), [], set()

    def add(name):
        if name in seen or name not in files:
            return
        seen.add(name)
        data = read_module(files[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in (depends[1].decode().split(",") if depends and depends[1] else []):
            add(other.replace("-", "_"))
        order.append((name, data))

    for name in MODULES:
        add(name)
    if "rdma_rxe" not in seen:
        raise Unavailable("the kernel has no rdma_rxe")
    return order


def libraries_of(program, root=None):
    """As the loader finds them, among those that were unpacked first."""
    environment = dict(os.environ)
    if root:
        environment["LD_LIBRARY_PATH"] = ":".join(os.path.join(root, folder) for folder in LIBRARIES)
    words = subprocess.run(["ldd", program], check=False, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL).stdout.decode()
    if "not found" in words:
        raise Unavailable(f"{program} lacks a library: {words}")
    return re.findall(r"(?:=> )?(/\S+) \(0x", words)


def put(base, path, source, mode=0o755):
    target = os.path.join(base, path.lstrip("/"))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)
    os.chmod(target, mode)


def put_libraries(base, program, root=None):
    for library in libraries_of(program, root):
        name = os.path.basename(library)
        put(base, os.path.join("lib64" if name.startswith("ld-linux") else LIBRARIES[1], name), library)


def pack(base, archive):
    names = []
    for folder, folders, files in os.walk(base):
        names += [os.path.relpath(os.path.join(folder, name), base) for name in [*folders, *files]]
    with open(archive, "wb") as file:
        subprocess.run(["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], check=True, cwd=base, stdout=file,
                       input="\n".join(sorted(names)).encode())


def fill(base, root):
    for folder in ("bin", "proc", "sys", "dev", "tmp", "run", "etc", "root", "lib/modules"):
        os.makedirs(os.path.join(base, folder), exist_ok=True)
    busybox = os.path.join(root, "bin/busybox")
    put(base, "bin/busybox", busybox)
    for applet in must([busybox, "--list"]).decode().split():
        if applet not in ("busybox", "ip", "tc"):
            os.symlink("busybox", os.path.join(base, "bin", applet))
    for program in PROGRAMS:
        source = os.path.join(root, program)
        put(base, os.path.join("usr/sbin" if "sbin" in program else "usr/bin", os.path.basename(program)), source)
        put_libraries(base, source, root)
    for name in ("libibverbs.so.1", "libnl-3.so.200", "libnl-route-3.so.200"):
        source = os.path.join(root, LIBRARIES[0] if name.startswith("libibv") or "route" in name else LIBRARIES[1], name)
        put(base, os.path.join(LIBRARIES[1], name), source if os.path.exists(source) else os.path.join(root, LIBRARIES[0], name))
    put(base, "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
        os.path.join(root, "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so"))
    put(base, "etc/libibverbs.d/rxe.driver", os.path.join(root, "etc/libibverbs.d/rxe.driver"), 0o644)
    # The C library loads it when a thread is cancelled; ldd does not know.
    put(base, os.path.join(LIBRARIES[1], "libgcc_s.so.1"), "/lib/x86_64-linux-gnu/libgcc_s.so.1")
    put(base, "init", os.path.join(HERE, "init"))
    for name, text in (("passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"), ("group", "root:x:0:\n"),
                       ("hosts", "127.0.0.1 localhost guest\n")):
        with open(os.path.join(base, "etc", name), "w", encoding="ascii") as file:
            file.write(text)


def prepare(folder):
    if is_ready(folder):
        return
    for program in ("qemu-system-x86_64", "cpio", "apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise Unavailable(f"there is no {program}")
    folder = os.path.abspath(folder)  # the loader says where libraries are by the folders that it is given
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        root, base, packages = (os.path.join(work, name) for name in ("root", "base", "packages"))
        for made in (root, base, packages):
            os.mkdir(made)
        must(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download", kernel_package(), *PACKAGES],
             cwd=packages)
        for name in sorted(os.listdir(packages)):
            must(["dpkg-deb", "-x", os.path.join(packages, name), root])
        image = next(name for name in os.listdir(os.path.join(root, "boot")) if name.startswith("vmlinuz-"))
        with open(os.path.join(root, "boot", image), "rb") as packed, open(os.path.join(folder, "kernel"), "wb") as kernel:
            kernel.write(unpacked_kernel(packed.read()))
        fill(base, root)
        modules = modules_in_order(root)
        for name, data in modules:
            with open(os.path.join(base, "lib/modules", name + ".ko"), "wb") as file:
                file.write(data)
        with open(os.path.join(base, "lib/modules/order"), "w", encoding="ascii") as file:
            file.write("".join(name + ".ko\n" for name, _ in modules))
        pack(base, os.path.join(folder, "base.cpio"))
    with open(os.path.join(folder, READY), "w", encoding="ascii") as file:
        file.write(recipe())


# ---- A run.

def accelerator():
    """WARNING: /dev/kvm may be there and run no kernel but its own kind's (KVM without VT-x or AMD-V, as under pvm): the processor says."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = file.read()
    except OSError:
        flags = ""
    if re.search(r"^flags\s*:.*\b(vmx|svm)\b", flags, re.MULTILINE) and os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "kvm", "host"
    # Without erms: string moves byte by byte are what a translator does worst.
    return "tcg,thread=multi,tb-size=256", "max,-erms"


def run(folder, command, programs, seconds=120.0):
    """(status, output): a line of a shell, with these programs in its PATH; output and errors together."""
    if not is_ready(folder):
        raise Unavailable("there is no guest yet: scripts/test rxe makes one")
    with tempfile.TemporaryDirectory(prefix="rxe-") as work:
        extra = os.path.join(work, "extra")
        for program in programs:
            put(extra, os.path.join("run", os.path.basename(program)), program)
            put_libraries(extra, program)
        with open(os.path.join(extra, "run/command"), "w", encoding="utf-8") as file:
            file.write(f"PATH=/run:$PATH\ncd /tmp\n{command}\n")
        pack(extra, os.path.join(work, "extra.cpio"))
        with open(os.path.join(work, "initrd"), "wb") as initrd:
            for part in (os.path.join(folder, "base.cpio"), os.path.join(work, "extra.cpio")):
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, initrd)
        files = {name: os.path.join(work, name) for name in ("output", "status", "console")}
        acceleration, processor = accelerator()
        qemu = ["qemu-system-x86_64", "-M", "pc", "-accel", acceleration, "-cpu", processor, "-m", "1G", "-smp", "2", "-display", "none",
                   "-nodefaults", "-no-user-config", "-no-reboot", "-kernel", os.path.join(folder, "kernel"),
                   "-initrd", os.path.join(work, "initrd"), "-append",
                   "console=ttyS0 quiet panic=-1 nokaslr mitigations=off random.trust_cpu=on", "-serial", "file:" + files["console"],
                   "-device", "virtio-serial-pci"]
        for name in ("output", "status"):
            qemu += ["-chardev", f"file,id={name},path={files[name]}", "-device", f"virtserialport,chardev={name},name={name}"]
        try:
            done = subprocess.run(qemu, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=seconds)
            late, words = False, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired:
            late, words = True, ""

        def text_of(name):
            try:
                with open(files[name], encoding="utf-8", errors="replace") as file:
                    return file.read()
            except OSError:
                return ""

        status, output = text_of("status").strip(), text_of("output")
        if status.isdigit():
            return int(status), output
        output += words + text_of("console")[-2000:]
        return (124, output + f"\nnot done within {seconds:.0f} s\n") if late else (125, output + "\nthe guest ended without a status\n")


def main(words):
    if len(words) == 2 and words[0] == "prepare":
        prepare(words[1])
        return 0
    if len(words) < 3 or words[0] != "run":
        print(__doc__, file=sys.stderr)
        return 2
    status, output = run(words[1], words[2], words[3:])
    sys.stdout.write(output)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Unavailable as why:
        print(f"no guest: {why}", file=sys.stderr)
        sys.exit(125)

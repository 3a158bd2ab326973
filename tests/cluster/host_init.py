"""The first process of a host of a world: gives it its interface, its own root file system, its sshd, and then reaps.

It is forked by world_init.py, runs as pid 1 of the host's pid namespace, and never returns. A host's disk (its overlay and
its /root) lies in the world and outlives a power loss; /tmp, /run, /dev/shm and the boot id are those of one boot. The
machine's root is the lower layer, so that nothing that a host writes reaches the machine.
"""

import os
import signal
import socket
import subprocess
import time
import traceback
import uuid

import linux

HOME = "/root"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": HOME}
_NAMESPACES = (linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWNET | linux.CLONE_NEWPID |
               linux.CLONE_NEWCGROUP)
_NODES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_SSHD = """Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""


def start(host, place, channel):
    """Forks the host `host` (a dictionary, see world.py) with its disk in `place`. Through `channel` (a SEQPACKET socket)
    comes (b"pid N"), N in this pid namespace, then b"ready" with the tap's descriptor, or b"failed …"."""
    if os.fork() != 0:
        return  # the one between ends at once, and leaves the host's init to the world's
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        linux.close_all_but({channel.fileno()})
        if host["cgroup"]:
            _write(os.path.join(host["cgroup"], "cgroup.procs"), "0")
        linux.unshare(_NAMESPACES)
        waits, goes = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(goes)
            os.read(waits, 1)
            os.close(waits)
            _run(host, place, channel)
        channel.send(b"pid %d" % init)
        status = 0
    except BaseException:
        channel.send(b"failed " + traceback.format_exc().encode()[-4000:])
    os._exit(status)


def _run(host, place, channel):
    try:
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        os.umask(0o022)
        socket.sethostname(host["name"])
        tap = _network(host)
        _file_system(host, place)
        _files(host)
        if host["sshd"]:
            start_sshd()
        socket.send_fds(channel, [b"ready"], [tap])
        os.close(tap)
        channel.close()
    except BaseException:
        channel.send(b"failed " + traceback.format_exc().encode()[-4000:])
        os._exit(1)
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    # Not before sshd is there, which would inherit it: that of Debian 11 would never hear of the end of what it runs.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


def _network(host):
    six = ":" in host["address"]
    for which in ("all", "lo"):
        _write(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", "0" if six else "1")
    tap = linux.open_tap("eth0")
    commands = f"""link set lo up
link set eth0 address {host['mac']} txqueuelen 5000 mtu {host['mtu']}
addr add {host['address']}{'/64' if six else '/16'} dev eth0{' nodad' if six else ''}
link set eth0 up
"""
    subprocess.run(["ip", "-batch", "-"], input=commands.encode(), check=True, timeout=30)
    return tap


def _file_system(host, place):
    upper, work, root, home = (os.path.join(place, name) for name in ("upper", "work", "root", "home"))
    for path in (upper, work, root, home):
        os.makedirs(path, exist_ok=True)
    os.chmod(home, 0o700)
    linux.mount("overlay", root, "overlay", data=f"lowerdir={host['root']},upperdir={upper},workdir={work}")

    def fresh(path, kind="tmpfs", flags=linux.MS_NOSUID | linux.MS_NODEV, data="mode=755"):
        os.makedirs(root + path, exist_ok=True)
        linux.mount(kind, root + path, kind, flags, data)

    fresh("/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, None)
    fresh("/sys", "sysfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, None)
    if host["cgroup"]:
        linux.mount("cgroup2", root + "/sys/fs/cgroup", "cgroup2")
    _devices(root, fresh)
    for path, mode in (("/tmp", "1777"), ("/run", "755"), ("/var/tmp", "1777"), ("/home", "755")):
        fresh(path, data=f"mode={mode}")
    os.makedirs(root + "/run/lock")
    os.makedirs(root + HOME, exist_ok=True)
    if host["home_bytes"]:
        fresh(HOME, data=f"mode=700,size={host['home_bytes']}")
    else:
        linux.bind(home, root + HOME)
    boot_id = os.path.join(place, "boot_id")
    _write(boot_id, f"{uuid.uuid4()}\n")
    linux.bind(boot_id, root + "/proc/sys/kernel/random/boot_id")
    for path in host["read_only"]:
        _bind_there(path, root, read_only=True)
    for path in host["hidden"]:
        if os.path.isdir(root + path):
            fresh(path)
    for path in host["shared"]:
        _bind_there(path, root, read_only=False)
    linux.change_root(root)


def _bind_there(path, root, read_only):
    os.makedirs(root + path, exist_ok=True)
    linux.bind(path, root + path, read_only)


def _devices(root, fresh):
    fresh("/dev", flags=linux.MS_NOSUID)
    for name, (major, minor) in _NODES.items():
        os.mknod(f"{root}/dev/{name}", 0o020666, os.makedev(major, minor))
        os.chmod(f"{root}/dev/{name}", 0o666)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"),
                         ("ptmx", "pts/ptmx")):
        os.symlink(target, f"{root}/dev/{name}")
    fresh("/dev/shm", data="mode=1777")
    fresh("/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")


def _files(host):
    """What makes this host itself; paths are in its own root by now."""
    _write("/etc/hostname", host["name"] + "\n")
    _write("/etc/hosts", host["hosts_file"])
    _replace("/etc/resolv.conf", "")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    os.makedirs(HOME + "/.ssh", mode=0o700, exist_ok=True)
    for name, text in host["ssh_files"].items():
        _write(f"{HOME}/.ssh/{name}", text, 0o600)
    if host["sshd"]:
        with open("/etc/shadow", encoding="utf-8") as file:
            # WARNING: without PAM, sshd refuses whose password begins with `!`, keys or not; sshd(8).
            lines = ["root:*:19000:0:99999:7:::\n" if line.startswith("root:") else line for line in file]
        _write("/etc/shadow", "".join(lines), 0o640)
        _write("/etc/ssh/ssh_host_ed25519_key", host["host_key"], 0o600)
        _write("/etc/ssh/ssh_host_ed25519_key.pub", host["public_key"])
        _write("/etc/ssh/sshd_config", _SSHD + host["sshd_config"])


def _replace(path, text):
    if os.path.lexists(path):
        os.unlink(path)
    _write(path, text)


def start_sshd():
    """Starts sshd and waits until it listens: it writes its pid file after that."""
    subprocess.run(["/usr/sbin/sshd", "-f", "/etc/ssh/sshd_config", "-E", "/var/log/sshd.log"], check=True, timeout=30)
    deadline = time.monotonic() + 30
    while not os.path.exists("/run/sshd.pid"):
        if time.monotonic() > deadline:
            raise TimeoutError("sshd does not listen after 30 s")
        time.sleep(0.002)


def _write(path, text, mode=None):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if mode is not None:
        os.chmod(path, mode)

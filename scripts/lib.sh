# shellcheck shell=bash
# shellcheck disable=SC2034  # the lists are used by the scripts that source this
# Sourced by the scripts beside it: where the tree is, which Debian packages a task needs, how the tree is built.
# It installs nothing that is there already, and asks dpkg rather than running tools.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build

# A caller without a stdin (a CI runner, a cron job) gives its children /dev/null, never a free descriptor 0.
{ : <&0; } 2>/dev/null || exec </dev/null

packages_build=(g++ ccache meson ninja-build pkg-config python3 libcli11-dev libyaml-cpp-dev libzmq3-dev cppzmq-dev
  libspdlog-dev libfmt-dev libsodium-dev libssl-dev libbsd-dev libmd-dev nlohmann-json3-dev libre2-dev libssh-dev libgtest-dev
  libgmock-dev libibverbs-dev python3-cloudpickle)
packages_unit=(openssh-server openssh-client busybox mksh tcsh zsh fish)
packages_lint=(clang-format-14 git)
packages_clang=(clang-14 lld-14 libclang-rt-14-dev llvm-14)  # llvm-14: its symbolizer, by which suppressions know functions
packages_tidy=(clang-tidy-14)
packages_process=(procps strace gdb python3-torch python3-numpy python3-jsonschema python3-yaml)
packages_cluster=(openssh-server openssh-client iproute2 util-linux procps nftables python3-msgpack slurmctld slurmd
  slurm-client munge)
packages_cli=(tmux zsh fish)
packages_package=(debootstrap util-linux iproute2 python3-venv)
packages_bench=(iperf3 python3-venv strace)
packages_rxe=(qemu-system-x86 cpio)
packages_torchft=(procps python3-venv)

say() { printf 'monarch: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

missing_packages() {
  local name
  for name in "$@"; do
    # shellcheck disable=SC2016  # the $ belongs to dpkg-query
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s\n' "$name"
  done
}

# install_packages NAME...: what is missing among them, by apt; without the right to do so, says which command would.
install_packages() {
  local missing log
  command -v dpkg-query >/dev/null || die "this is not Debian; install by hand what these packages hold: $*"
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    say "packages are missing; as root, run"
    printf '  apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 1
  fi
  # The lock sits on dpkg's own folder, so scripts of two checkouts queue as well; it leaves no file behind.
  exec 9</var/lib/dpkg
  flock -w 1200 9 || die "another script has been installing packages for 20 minutes"
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    log=$(mktemp)
    if ! apt_install "${missing[@]}" >"$log" 2>&1 9<&-; then
      tail -n 30 "$log" >&2
      rm -f "$log"
      die "apt-get could not install: ${missing[*]}"
    fi
    rm -f "$log"
  fi
  exec 9<&-
}

# A server among the packages must not begin to serve because a test wants its program: while they are installed nothing is started
# (invoke-rc.d(8)), unless the administrator has a policy of their own; and what was not there does not start at the next boot.
policy=/usr/sbin/policy-rc.d
policy_mark='# made by the scripts of monarch while they install packages'
apt_install() (
  local options=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3) fresh=() name
  local -A services=([openssh-server]="ssh.service ssh.socket" [slurmctld]=slurmctld.service [slurmd]=slurmd.service
    [munge]=munge.service)
  export DEBIAN_FRONTEND=noninteractive
  mapfile -t fresh < <(missing_packages "${!services[@]}")
  if { [ ! -e "$policy" ] && [ ! -L "$policy" ]; } || grep -qsxF "$policy_mark" "$policy"; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' HUP INT TERM
    printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >"$policy"
    chmod 755 "$policy"
  fi
  apt-get "${options[@]}" update </dev/null || exit
  apt-get "${options[@]}" install -y --no-install-recommends "$@" </dev/null || exit
  command -v systemctl >/dev/null || exit 0
  for name in "${fresh[@]}"; do
    # shellcheck disable=SC2086  # several words; and not every release has each of them
    [ -n "$(missing_packages "$name")" ] || systemctl disable ${services[$name]} || true
  done
)

# prepare_venv FOLDER REQUIREMENTS: what the file lists, from PyPI, for Debian's interpreter. False, and said: it cannot be had.
prepare_venv() {
  local folder=$1 wanted=$2 log
  ! cmp -s "$wanted" "$folder/installed.txt" || return 0
  say "installing $(grep -v '^#' "$wanted" | paste -sd ' ') from PyPI into $folder (minutes)"
  log=$(mktemp)
  if rm -rf "$folder" && mkdir -p "$folder" && /usr/bin/python3 -m venv "$folder" >"$log" 2>&1 &&
    "$folder/bin/pip" install --no-cache-dir -r "$wanted" >>"$log" 2>&1; then
    cp "$wanted" "$folder/installed.txt"
    rm -f "$log"
    return 0
  fi
  tail -n 5 "$log" >&2
  rm -rf "$folder" "$log"
  say "they could not be installed"
  return 1
}

# prepare_torchft: torchft and what it needs (5 GB), in a folder of this checkout. Where that cannot be had the tests are skipped.
prepare_torchft() { prepare_venv "$root/build-torchft" "$root/tests/process/torchft_requirements.txt" || true; }

# prepare_peers NAME: what a benchmark measures against, the newest of it, in a folder of the user's cache that checkouts share.
prepare_peers() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/monarch-bench/$1
  prepare_venv "$folder" "$root/scripts/peers_$1.txt" || return 0
  export "MONARCH_BENCH_${1^^}=$folder/bin"
}

# build_tree TARGET...: configures build/ when needed and builds the targets; silent unless it fails.
# One build at a time per checkout: the lock sits on the checkout's folder.
build_tree() {
  local options=() target
  exec 8<"$root"
  flock -n 8 || { say "waiting for another build in this tree"; flock 8; }
  if [ ! -f "$build/build.ninja" ]; then
    say "configuring $build"
    [ -z "${CI:-}" ] || options+=(--werror)
    quietly "meson could not configure $build" meson setup "${options[@]}" "$build" "$root"
  fi
  quietly "meson could not configure $build" ninja -C "$build" build.ninja
  for target in "$@"; do
    grep -q "^build $target:" "$build/build.ninja" || die "this tree does not build $target"
  done
  say "building $*"
  ninja_with_progress "$@"
  exec 8<&-
}

# ninja_with_progress TARGET...: says how far it is, on a terminal in one line that changes, else every half minute; its output only if it fails.
ninja_with_progress() {
  local log pid told=$SECONDS shown=
  log=$(mktemp)
  NINJA_STATUS='[%f/%t] ' ninja -j "$(nproc)" -C "$build" "$@" >"$log" 2>&1 8<&- </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.5
    if [ -t 2 ] || [ $((SECONDS - told)) -ge 30 ]; then
      shown=$(grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1) || continue
      told=$SECONDS
      shown=${shown//[\[\]]/}
      if [ -t 2 ]; then printf '\rmonarch: %s of %s steps \033[K' "${shown%/*}" "${shown#*/}" >&2; else say "${shown%/*} of ${shown#*/} steps"; fi
    fi
  done
  { [ -t 2 ] && [ -n "$shown" ] && printf '\r\033[K' >&2; } || true
  if ! wait "$pid"; then
    tail -n 80 "$log" >&2
    rm -f "$log"
    die "the build failed"
  fi
  rm -f "$log"
}

# quietly COMPLAINT COMMAND...: the output is shown only if the command fails.
quietly() {
  local complaint=$1 log
  shift
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1 8<&- </dev/null; then
    tail -n 80 "$log" >&2
    rm -f "$log"
    die "$complaint"
  fi
  rm -f "$log"
}

# prepare_rxe: QEMU, and a guest with soft-RoCE for it (75 MB), in a folder of this checkout. Where they cannot be had the tests are skipped.
prepare_rxe() {
  # What cannot be installed ends the subshell alone.
  (install_packages "${packages_rxe[@]}") || return 0
  /usr/bin/python3 -B "$root/tests/rxe/guest.py" prepare "$root/build-rxe" || true
}

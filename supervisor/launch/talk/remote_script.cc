#include "supervisor/launch/talk/remote_script.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kWordBytes = 255;

// The mode of a folder or file that only its owner may write to, as ls(1) shows it, is matched rather than computed: a
// shell has no other way to learn it. A failure is told in one line; what is still sent is read, so that whoever sends
// it comes to read that line.
constexpr std::string_view kCommand =
    "exec /bin/sh -c '"
    // A start-up file may have left no way to ls(1) and the like; what is executed at last has the PATH of the login.
    "o=$PATH; PATH=${o:+$o:}/usr/bin:/bin; "
    "m=$(umask); umask 077; set -f; u=$(id -u); t=; "
    "y=; [ \"${SLURM_STEP_NUM_TASKS:-1}\" = 1 ] || y=@$SLURMD_NODENAME; "
    "say() { printf \"%s \" $y \"$@\"; echo; }; "
    "drop() { [ -z \"$t\" ] || rm -rf \"$t\"; t=; }; "
    "fail() { drop; say failed \"$@\"; cat >/dev/null; exit 1; }; "
    "trouble() { case \"$*\" in *\"o space left\"*|*uota*) fail disk-full \"$@\";; esac; fail not-writable \"$@\"; }; "
    // $1 is a folder (d) or file (-) of ours that nobody else may write to, and no link. Its size is left in $z.
    "own() { set -- \"$1\" \"$2\" $(LC_ALL=C ls -ldn \"$1\" 2>/dev/null); z=$7; [ \"$5\" = \"$u\" ] || return 1; "
    "case \"$3\" in \"$2\"rwx?-?"
    "?-?*) return 0;; esac; return 1; }; "
    "folder() { [ -d \"$1\" ] || e=$(LC_ALL=C mkdir \"$1\" 2>&1) || [ -d \"$1\" ] || trouble $e; "
    "own \"$1\" d || fail not-ours \"$1\" is not a folder of user \"$u\" that nobody else may write to; }; "
    // $1: the hash. Leaves the path in $f.
    "place() { case \"$XDG_CACHE_HOME\" in /*) c=$XDG_CACHE_HOME;; *) c=$HOME/.cache;; esac; "
    // A link of one's own leads to a larger disk, say.
    "k=$c/monarch; if [ -h \"$k\" ]; then set -- \"$1\" $(LC_ALL=C ls -ldn \"$k\"); "
    "if [ \"$4\" = \"$u\" ]; then k=$(cd -P \"$k\" 2>/dev/null && pwd) || k=$c/monarch; fi; fi; "
    "w=$k/worker; f=$w/$1/monarch-worker; }; "
    "found() { place \"$1\"; own \"$k\" d && own \"$w\" d && own \"$w/$1\" d && own \"$f\" - && [ \"$z\" = "
    "\"$2\" ]; }; "
    "given() { IFS= read -r f || exit 1; case \"$f\" in \"~/\"*) f=$HOME/${f#??};; esac; "
    "[ -f \"$f\" ] || fail absent \"$f\" is not there; }; "
    "go() { say have \"$f\"; umask \"$m\"; [ -z \"$o\" ] || PATH=$o; exec \"$f\" \"$@\"; }; "
    // $1: the hash; $2: the size.
    "put() { place \"$1\"; [ -d \"$c\" ] || e=$(LC_ALL=C mkdir -p \"$c\" 2>&1) || trouble $e; "
    "folder \"$k\"; folder \"$w\"; folder \"$w/$1\"; "
    "[ -d \"$f\" ] && fail not-ours \"$f\" is a folder; "
    // Of hosts that lost their power meanwhile.
    "find \"$w\" -type d -name \"put.*\" -mtime +1 -exec rm -rf {} + 2>/dev/null; "
    "n=$w/$1/put.$(uname -n).$PPID.$$; e=$(LC_ALL=C mkdir \"$n\" 2>&1) || trouble $e; t=$n; n=$t/monarch-worker; "
    "e=$(LC_ALL=C head -c \"$2\" 2>&1 >\"$n\") || trouble $e; "
    "e=$(LC_ALL=C chmod 0700 \"$n\" 2>&1) || trouble $e; "
    "own \"$n\" - || fail not-ours \"$n\" changed while it was written; "
    "[ \"$z\" = \"$2\" ] || fail short \"$z\" of \"$2\" bytes came; "
    "if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <\"$n\"); "
    "else h=$(LC_ALL=C \"$n\" digest \"$n\" 2>&1) || fail not-executable $h; fi; "
    "[ \"${h%% *}\" = \"$1\" ] || fail hash what came has the sha256 \"${h%% *}\"; "
    "e=$(LC_ALL=C mv -f \"$n\" \"$f\" 2>&1) || trouble $e; drop; "
    "found \"$1\" \"$2\" || fail not-ours \"$f\" changed while it was put there; say stored; }; "
    // $1: the hash. Leaves the folder in $p and the paths in $f and $g.
    "bundle() { place \"$1\"; w=$k/bundle; p=$w/$1; f=$p/bin/monarch; g=$p/libexec/monarch/monarch-worker; }; "
    // $1: the hash; $2 and $3: the sizes.
    "has() { bundle \"$1\"; "
    "for d in \"$k\" \"$w\" \"$p\" \"$p/bin\" \"$p/libexec\" \"$p/libexec/monarch\"; do "
    "own \"$d\" d || return 1; done; "
    "own \"$g\" - && [ \"$z\" = \"$3\" ] && own \"$f\" - && [ \"$z\" = \"$2\" ]; }; "
    // $1: where to; $2: how much.
    "take() { e=$(LC_ALL=C head -c \"$2\" 2>&1 >\"$1\") || trouble $e; "
    "e=$(LC_ALL=C chmod 0700 \"$1\" 2>&1) || trouble $e; "
    "own \"$1\" - || fail not-ours \"$1\" changed while it was written; "
    "[ \"$z\" = \"$2\" ] || fail short \"$z\" of \"$2\" bytes came; }; "
    "keep() { bundle \"$1\"; [ -d \"$c\" ] || e=$(LC_ALL=C mkdir -p \"$c\" 2>&1) || trouble $e; "
    "for d in \"$k\" \"$w\" \"$p\" \"$p/bin\" \"$p/libexec\" \"$p/libexec/monarch\"; do folder \"$d\"; done; "
    "for d in \"$f\" \"$g\"; do [ -d \"$d\" ] && fail not-ours \"$d\" is a folder; done; "
    "find \"$w\" -type d -name \"put.*\" -mtime +1 -exec rm -rf {} + 2>/dev/null; "
    "n=$p/put.$(uname -n).$PPID.$$; e=$(LC_ALL=C mkdir \"$n\" 2>&1) || trouble $e; t=$n; "
    "take \"$n/1\" \"$2\"; take \"$n/2\" \"$3\"; "
    "if command -v sha256sum >/dev/null 2>&1; then h=$(cat \"$n/1\" \"$n/2\" | sha256sum); "
    "else e=$(LC_ALL=C cat \"$n/1\" \"$n/2\" 2>&1 >\"$n/3\") || trouble $e; "
    "h=$(LC_ALL=C \"$n/2\" digest \"$n/3\" 2>&1) || fail not-executable $h; fi; "
    "[ \"${h%% *}\" = \"$1\" ] || fail hash what came has the sha256 \"${h%% *}\"; "
    "e=$(LC_ALL=C mv -f \"$n/2\" \"$g\" 2>&1) || trouble $e; e=$(LC_ALL=C mv -f \"$n/1\" \"$f\" 2>&1) || trouble $e; "
    "drop; has \"$1\" \"$2\" \"$3\" || fail not-ours \"$p\" changed while it was put there; say stored; }; "
    "trap drop 0; trap \"exit 1\" 1 2 13 15; "
    "a=${SSH_CONNECTION%% *}; "
    "echo; say monarch-remote 1 $(uname -s) $(uname -m) ${SLURM_LAUNCH_NODE_IPADDR:-${a:--}}; "
    "while read -r l; do set -- $l; case \"$1\" in "
    "start) if found \"$2\" \"$3\"; then go --job \"$4\" --host \"$5\"; fi; say missing;; "
    "put) put \"$2\" \"$3\";; "
    "use) given; go --job \"$2\" --host \"$3\";; "
    "end) if found \"$2\" \"$3\"; then go end --job \"$4\" --host \"$5\" --job-id \"$6\"; fi; say missing;; "
    "workspace) if found \"$2\" \"$3\"; then go workspace --job \"$4\" --host \"$5\" --job-id \"$6\"; fi; say "
    "missing;; "
    "workspace-with) given; go workspace --job \"$2\" --host \"$3\" --job-id \"$4\";; "
    "end-with) given; go end --job \"$2\" --host \"$3\" --job-id \"$4\";; "
    "check) if found \"$2\" \"$3\"; then go check; fi; say missing;; "
    "check-with) given; go check;; "
    "bundle) keep \"$2\" \"$3\" \"$4\";; "
    "has) if found \"$2\" \"$3\"; then say there; else say missing; fi;; "
    "fill) case \"$4\" in \"*\"|\"$SLURMD_NODENAME\") found \"$2\" \"$3\" || { put \"$2\" \"$3\"; continue; };; esac; "
    "head -c \"$3\" >/dev/null;; "
    "each) if found \"$2\" \"$3\"; then go step --job \"$4\" --host \"$SLURMD_NODENAME\"; fi; say missing;; "
    "@*) ;; "
    "program) if has \"$2\" \"$3\" \"$4\"; then go \"$5\"; fi; say missing;; "
    "*) fail request no such request;; "
    "esac; done'";

std::string line(std::initializer_list<std::string_view> words) {
  std::string request;
  for (const std::string_view word : words) {
    MONARCH_ASSERT_BECAUSE(is_remote_word(word), "a request is split at blanks and lines");
    request += text(request.empty() ? "" : " ", word);
  }
  return request + "\n";
}

std::string path_line(const std::string& path) {
  MONARCH_ASSERT_BECAUSE(path.find_first_of(std::string_view("\n\0", 2)) == std::string::npos, "a path is one line");
  return path + "\n";
}

}  // namespace

std::string_view remote_command() { return kCommand; }

bool is_remote_word(std::string_view word) {
  return !word.empty() && word.size() <= kWordBytes &&
         std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string start_request(const RemoteFile& file, const RemoteMark& mark) {
  return line({"start", file.sha256, text(file.size), mark.job_uuid, mark.host_name});
}

std::string put_request(const RemoteFile& file) { return line({"put", file.sha256, text(file.size)}); }

std::string use_request(const std::string& path, const RemoteMark& mark) {
  return line({"use", mark.job_uuid, mark.host_name}) + path_line(path);
}

std::string end_request(const RemoteFile& file, const RemoteMark& mark) {
  return line({"end", file.sha256, text(file.size), mark.job_uuid, mark.host_name, mark.job_id});
}

std::string end_with_request(const std::string& path, const RemoteMark& mark) {
  return line({"end-with", mark.job_uuid, mark.host_name, mark.job_id}) + path_line(path);
}

std::string check_request(const RemoteFile& file) { return line({"check", file.sha256, text(file.size)}); }

std::string check_with_request(const std::string& path) { return line({"check-with"}) + path_line(path); }

std::string program_request(const RemoteFile& bundle, std::string_view word) {
  return line({"program", bundle.sha256, text(bundle.head), text(bundle.size - bundle.head), word});
}

std::string bundle_request(const RemoteFile& bundle) {
  return line({"bundle", bundle.sha256, text(bundle.head), text(bundle.size - bundle.head)});
}

std::string has_request(const RemoteFile& file) { return line({"has", file.sha256, text(file.size)}); }

std::string fill_request(const RemoteFile& file, std::string_view node) {
  return line({"fill", file.sha256, text(file.size), node});
}

std::string each_request(const RemoteFile& file, const std::string& job_uuid) {
  return line({"each", file.sha256, text(file.size), job_uuid});
}

std::string workspace_request(const RemoteFile& file, const RemoteMark& mark) {
  return line({"workspace", file.sha256, text(file.size), mark.job_uuid, mark.host_name, mark.job_id});
}

std::string workspace_with_request(const std::string& path, const RemoteMark& mark) {
  return line({"workspace-with", mark.job_uuid, mark.host_name, mark.job_id}) + path_line(path);
}

}  // namespace monarch

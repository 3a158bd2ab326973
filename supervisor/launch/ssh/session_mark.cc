#include "supervisor/launch/ssh/session_mark.h"

#include <charconv>
#include <string>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kSaid = "\nmonarch-session 1 ";
constexpr std::size_t kMostOutput = 64U << 10U;

// look PID: its name in $n, its parent in $p, when it started in $b. The name stands in brackets and may hold anything;
// what follows the last of them is fields, of which $1 is the third (proc(5)). Our parents end at whoever has sshd's
// name: login shells that do not execute their last command lie between.
constexpr std::string_view kCommand =
    "exec /bin/sh -c '"
    "look() { { IFS= read -r l <\"/proc/$1/stat\"; } 2>/dev/null || return 1; "
    "n=${l#*(}; n=${n%)*}; set -f; set -- ${l##*) }; p=$2; b=${20}; }; "
    "is_sshd() { look \"$1\" || return 1; case \"$n\" in sshd*) return 0;; esac; return 1; }; "
    "held() { is_sshd \"$1\" && [ \"$b\" = \"$2\" ]; }; "
    "read -r o s || exit 1; "
    "if held \"$o\" \"$s\"; then kill \"$o\"; i=0; "
    "while [ \"$i\" -lt 5 ] && held \"$o\" \"$s\"; do sleep 0.1; i=$((i+1)); done; "
    "held \"$o\" \"$s\" && kill -9 \"$o\"; fi; "
    "q=$PPID; c=0; "
    "while [ \"$q\" -gt 1 ] && [ \"$c\" -lt 8 ]; do "
    "if is_sshd \"$q\"; then echo; echo monarch-session 1 \"$q\" \"$b\"; exit 0; fi; "
    "[ -n \"$p\" ] || break; q=$p; p=; c=$((c+1)); done; "
    "echo; echo monarch-session 1 0 0'";

template <class Number>
bool take_number(std::string_view& rest, char end, Number& number) {
  const auto [stopped, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || stopped == rest.data() + rest.size() || *stopped != end) return false;
  rest.remove_prefix(static_cast<std::size_t>(stopped - rest.data()) + 1);
  return true;
}

Result<std::string> converse(SshChannel& channel, const std::string& words, const Patience& patience) {
  std::string_view left = words;
  std::string heard;
  bool told_end = false;
  for (;;) {
    if (!left.empty()) {
      MONARCH_ASSIGN(const std::size_t written, channel.write_some(left));
      left.remove_prefix(written);
    }
    if (left.empty() && !told_end) {
      MONARCH_TRY(channel.send_eof());
      told_end = true;
    }
    MONARCH_ASSIGN(const SshOutput output, channel.read_some());
    heard += output.out;
    const bool line = heard.find(kSaid) != std::string::npos && heard.back() == '\n';
    if (output.ended || line || heard.size() > kMostOutput) return heard;
    MONARCH_TRY(channel.wait(patience));
  }
}

}  // namespace

std::string_view mark_command() { return kCommand; }

SessionMark read_mark(std::string_view output) {
  const std::size_t at = output.find(kSaid);
  if (at == std::string_view::npos) return {};
  std::string_view rest = output.substr(at + kSaid.size());
  SessionMark mark;
  if (!take_number(rest, ' ', mark.pid) || !take_number(rest, '\n', mark.started) || mark.pid < 0) return {};
  return mark;
}

SessionMark mark_session(SshSession& session, const SessionMark& before, const Patience& patience) {
  auto channel = session.exec(kCommand, patience);
  if (!channel.ok()) return {};
  const auto heard = converse(**channel, text(before.pid, " ", before.started, "\n"), patience);
  return heard.ok() ? read_mark(*heard) : SessionMark{};
}

}  // namespace monarch

#include "supervisor/launch/ssh/remote_conversation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

struct FailedWord {
  std::string_view word;
  LaunchFailureKind kind;
};
constexpr std::array<FailedWord, 8> kFailedWords = {{
    {"disk-full", LaunchFailureKind::kDiskFull},
    {"not-writable", LaunchFailureKind::kDiskFull},
    {"not-ours", LaunchFailureKind::kNotExecutable},
    {"not-executable", LaunchFailureKind::kNotExecutable},
    {"absent", LaunchFailureKind::kExec},
    {"short", LaunchFailureKind::kClosed},
    {"hash", LaunchFailureKind::kClosed},
    {"request", LaunchFailureKind::kOther},
}};

std::string_view first_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

RemoteTurn RemoteConversation::take_turn() { return std::exchange(turn_, {}); }

std::string RemoteConversation::phase() const {
  if (order_.purpose == RemotePurpose::kEnd) return "end";
  return state_ == State::kStored ? "copy" : "start";
}

void RemoteConversation::on_output(std::string_view bytes) {
  if (answer_) return;
  bytes_ += bytes;
  take_lines();
  if (!answer_ && state_ == State::kReply) try_reply(false);
}

void RemoteConversation::take_lines() {
  while (!answer_ && state_ != State::kReply) {
    const std::size_t end = bytes_.find('\n');
    const std::size_t limit = state_ == State::kMarker ? kNoiseBytes : kLineBytes;
    if (std::min(end, bytes_.size()) + noise_ > limit) {
      note(bytes_);
      return fail(LaunchFailureKind::kShellNoise, noise_failure());
    }
    if (end == std::string::npos) return;
    const std::string line = bytes_.substr(0, end);
    bytes_.erase(0, end + 1);
    state_ == State::kMarker ? on_marker(line) : on_line(trimmed(line));
  }
}

std::string RemoteConversation::noise_failure() const {
  if (state_ != State::kMarker) return text("an answer of more than ", kLineBytes, " bytes");
  return text("more than ", kNoiseBytes,
              " bytes came of the shell's start-up files before our script's first line: let them print ",
              "nothing where no terminal is attached");
}

void RemoteConversation::on_marker(std::string_view line) {
  if (!line.starts_with(kRemoteMarker) || !line.substr(kRemoteMarker.size()).starts_with(' ')) {
    noise_ += line.size() + 1;
    if (!line.empty()) note(text(line, '\n'));
    return;
  }
  std::string_view rest = trimmed(line.substr(kRemoteMarker.size() + 1));
  noise_ = 0;
  const std::string kernel(first_word(rest));
  const std::string machine(rest);
  if (kernel != "Linux") {
    return fail(LaunchFailureKind::kArchitecture,
                text("the host runs ", printable(kernel), "; monarch-worker needs Linux"));
  }
  if (order_.installed.empty() && machine != order_.machine) {
    return fail(LaunchFailureKind::kArchitecture,
                text("the host is of architecture ", printable(machine), ", this monarch-worker was built for ",
                     order_.machine, ": install one there and name it in launch.ssh.worker"));
  }
  ask();
}

void RemoteConversation::ask() {
  state_ = State::kPlace;
  const bool shipped = order_.installed.empty();
  if (order_.purpose == RemotePurpose::kEnd) {
    turn_.bytes += shipped ? end_request(order_.file, order_.mark) : end_with_request(order_.installed, order_.mark);
    return;
  }
  turn_.bytes += shipped ? start_request(order_.file, order_.mark) : use_request(order_.installed, order_.mark);
}

void RemoteConversation::on_line(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = first_word(rest);
  if (word == "failed" && state_ != State::kEnded) return on_failed(rest);
  if (state_ == State::kEnded) return on_ended(line);
  if (state_ == State::kStored && word == "stored") return ask();
  if (state_ == State::kPlace && word == "have") {
    path_ = rest;
    const bool starts = order_.purpose == RemotePurpose::kStart;
    state_ = starts ? State::kReply : State::kEnded;
    if (starts) turn_.bytes += order_.bootstrap;
    return;
  }
  if (state_ == State::kPlace && word == "missing" && order_.installed.empty() && !std::exchange(copied_, true)) {
    state_ = State::kStored;
    turn_.bytes += put_request(order_.file);
    turn_.file = true;
    return;
  }
  fail(LaunchFailureKind::kShellNoise, text("not an answer of our script: `", printable(line), "`"));
}

void RemoteConversation::on_failed(std::string_view rest) {
  const std::string_view word = first_word(rest);
  const auto* const known = std::find_if(kFailedWords.begin(), kFailedWords.end(),
                                         [word](const FailedWord& each) { return each.word == word; });
  const LaunchFailureKind kind = known == kFailedWords.end() ? LaunchFailureKind::kOther : known->kind;
  fail(kind, text(order_.installed.empty() ? "the host could not take monarch-worker: " : "monarch-worker: ",
                  printable(rest.empty() ? word : rest)));
}

void RemoteConversation::on_ended(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = first_word(rest);
  RemoteEnded ended;
  const char* const end = rest.data() + rest.size();
  const auto [stopped, error] = std::from_chars(rest.data(), end, ended.processes);
  if (word == "ended" && error == std::errc{} && stopped == end) {
    answer_ = ended;
    return;
  }
  if (word == "still") {
    return fail(LaunchFailureKind::kOther, text("processes of the job did not end after SIGKILL: ", printable(rest),
                                                "; their state in /proc of that host says what they wait for"));
  }
  fail(LaunchFailureKind::kShellNoise, text("not an answer of monarch-worker: `", printable(line), "`"));
}

void RemoteConversation::try_reply(bool ended) {
  if (bytes_.size() > kReplyBytes) {
    return fail(LaunchFailureKind::kShellNoise, text("the worker's answer has more than ", kReplyBytes, " bytes"));
  }
  const auto frame = decode_frame(bytes_, kReplyBytes);
  if (!frame.ok()) {
    if (!ended) return;  // the rest is on its way
    return fail(LaunchFailureKind::kShellNoise, text("the worker's answer: ", frame.error().message));
  }
  auto reply = decode_payload<BootstrapReply>(frame->payload);
  if (!reply.ok()) {
    if (!ended) return;
    return fail(LaunchFailureKind::kShellNoise, text("the worker's answer: ", reply.error().message));
  }
  if (!reply->error.empty()) return fail(LaunchFailureKind::kExec, reply->error);
  if (reply->version != MONARCH_VERSION) {
    return fail(LaunchFailureKind::kVersion,
                text(printable(path_), " is of version ", printable(reply->version), ", this is " MONARCH_VERSION));
  }
  answer_ = std::move(*reply);
}

void RemoteConversation::on_words(std::string_view bytes) { note(bytes); }

void RemoteConversation::note(std::string_view words) {
  words_ += words.substr(0, kWordsBytes - std::min(words_.size(), kWordsBytes));
}

void RemoteConversation::on_end(std::optional<int> exit_status) {
  if (answer_) return;
  if (state_ == State::kReply && !bytes_.empty()) return try_reply(true);
  if (!bytes_.empty()) note(bytes_);
  const std::string how = exit_status ? text(" with status ", *exit_status) : std::string();
  if (state_ == State::kMarker) {
    return fail(exit_status ? LaunchFailureKind::kShellNoise : LaunchFailureKind::kClosed,
                text("the remote shell ended", how,
                     " before our script's first line: does that user's login shell run commands, and "
                     "is there a /bin/sh?"));
  }
  if (!exit_status) return fail(LaunchFailureKind::kClosed, "the connection ended midway");
  const bool executed = state_ == State::kReply || state_ == State::kEnded;
  if (executed && *exit_status == kExitNotExecutable) {
    return fail(LaunchFailureKind::kNotExecutable,
                text(printable(path_),
                     " could not be executed there: is its file system mounted noexec? XDG_CACHE_HOME names another "
                     "place for it, launch.ssh.worker a file that is installed"));
  }
  if (executed && *exit_status == kExitNotFound) {
    return fail(LaunchFailureKind::kExec,
                text(printable(path_), " could not be executed there: is it a program for that host?"));
  }
  fail(LaunchFailureKind::kExec,
       text(executed ? "monarch-worker" : "the remote script", " ended", how, " and without an answer"));
}

LaunchFailure RemoteConversation::timed_out() const {
  switch (state_) {
    case State::kMarker:
      return failure(LaunchFailureKind::kTimeout,
                     "the remote shell did not come to our script: a start-up file of it may wait");
    case State::kPlace:
      return failure(LaunchFailureKind::kTimeout, "the remote script did not find out whether it has the worker");
    case State::kStored: return failure(LaunchFailureKind::kTimeout, "the worker was not copied");
    case State::kReply:
      return failure(LaunchFailureKind::kTimeout, text("the worker, ", printable(path_), ", did not answer"));
    case State::kEnded: return failure(LaunchFailureKind::kTimeout, "the worker's `end` did not answer");
  }
  return failure(LaunchFailureKind::kTimeout, "no answer");
}

LaunchFailure RemoteConversation::failure(LaunchFailureKind kind, std::string message) const {
  return {.kind = kind, .phase = phase(), .elapsed = {}, .message = std::move(message), .words = words_, .again = {}};
}

void RemoteConversation::fail(LaunchFailureKind kind, std::string message) {
  turn_ = {};
  answer_ = failure(kind, std::move(message));
}

}  // namespace monarch

#include "supervisor/launch/talk/remote_conversation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/from_host.h"

namespace monarch {

namespace {

struct FailedWord {
  std::string_view word;
  LaunchFailureKind kind;
};
constexpr std::array<FailedWord, 10> kFailedWords = {{
    {"disk-full", LaunchFailureKind::kDiskFull},
    {"not-writable", LaunchFailureKind::kNotWritable},
    {"not-ours", LaunchFailureKind::kNotExecutable},
    {"not-executable", LaunchFailureKind::kNotExecutable},
    {"absent", LaunchFailureKind::kExec},
    {"short", LaunchFailureKind::kClosed},
    {"hash", LaunchFailureKind::kClosed},
    {"request", LaunchFailureKind::kOther},
    {"refused", LaunchFailureKind::kOther},
    {"other", LaunchFailureKind::kOther},
}};

std::string_view first_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

// Of "<word> <number>".
std::optional<std::uint64_t> number_after(std::string_view word, std::string_view line) {
  std::string_view rest = line;
  std::uint64_t number = 0;
  if (first_word(rest) != word) return std::nullopt;
  const char* const end = rest.data() + rest.size();
  const auto [stopped, error] = std::from_chars(rest.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::string RemoteEnded::how() const {
  if (orderly()) return "nothing of it was running any more";
  return text(counted(processes, "process", "processes"), " ended by order");
}

RemoteTurn RemoteConversation::take_turn() { return std::exchange(turn_, {}); }

std::string RemoteConversation::phase() const {
  if (order_.purpose == RemotePurpose::kEnd) return "end";
  if (state_ == State::kNeeds || state_ == State::kBuilt) return "workspace";
  if (state_ == State::kStored) return "copy";
  return order_.purpose == RemotePurpose::kCheck ? "check" : "start";
}

void RemoteConversation::on_output(std::string_view bytes) {
  if (answer_) return;
  bytes_ += bytes;
  take_lines();
  if (!answer_ && state_ == State::kReply) try_reply(false);
  if (!answer_ && state_ == State::kTalk && bytes_.size() > kHeardBytes) {
    fail(LaunchFailureKind::kShellNoise, text("more than ", kHeardBytes, " bytes came of monarch-worker check"));
  }
}

void RemoteConversation::take_lines() {
  while (!answer_ && state_ != State::kReply && state_ != State::kTalk) {
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
  ++understood_;
  const std::string kernel(first_word(rest));
  const std::string machine(first_word(rest));
  place_ = rest == "-" ? std::string() : std::string(rest);
  if (kernel != "Linux") {
    return fail(LaunchFailureKind::kArchitecture,
                text("the host runs ", printable(kernel), "; ", file_name(), " needs Linux"));
  }
  if (order_.installed.empty() && machine != order_.machine) {
    return fail(LaunchFailureKind::kArchitecture,
                text("the host is of architecture ", printable(machine), ", this ", file_name(), " was built for ",
                     order_.machine,
                     order_.purpose == RemotePurpose::kProgram ? ": the supervisor cannot be there"
                                                               : advice(": install one there and name it in ", "")));
  }
  ask();
}

void RemoteConversation::ask() {
  state_ = State::kPlace;
  const bool shipped = order_.installed.empty();
  switch (order_.purpose) {
    case RemotePurpose::kStart:
      turn_.bytes += shipped ? start_request(order_.file, order_.mark) : use_request(order_.installed, order_.mark);
      return;
    case RemotePurpose::kEnd:
      turn_.bytes += shipped ? end_request(order_.file, order_.mark) : end_with_request(order_.installed, order_.mark);
      return;
    case RemotePurpose::kWorkspace:
      turn_.bytes +=
          shipped ? workspace_request(order_.file, order_.mark) : workspace_with_request(order_.installed, order_.mark);
      return;
    case RemotePurpose::kProgram: turn_.bytes += program_request(order_.file, order_.word); return;
    case RemotePurpose::kCheck:
      turn_.bytes += shipped ? check_request(order_.file) : check_with_request(order_.installed);
      return;
  }
}

void RemoteConversation::on_line(std::string_view line) {
  ++understood_;
  std::string_view rest = line;
  const std::string_view word = first_word(rest);
  if (word == "failed" && state_ != State::kEnded) return on_failed(rest);
  if (state_ == State::kEnded) return on_ended(line);
  if (state_ == State::kGreeting) {
    if (line != kProgramGreeting) {
      return fail(LaunchFailureKind::kShellNoise, text("not the greeting of a monarch: `", printable(line), "`"));
    }
    answer_ = RemoteProgram{.path = path_};
    return;
  }
  if (state_ == State::kNeeds) return on_need(line);
  if (state_ == State::kBuilt) return on_built(line);
  if (state_ == State::kStored && word == "stored") return ask();
  if (state_ == State::kPlace && word == "have") {
    path_ = rest;
    return on_executed();
  }
  if (state_ == State::kPlace && word == "missing" && order_.lies_there) {
    return fail(LaunchFailureKind::kExec,
                text("the monarch that started the job, of the sha256 ", order_.file.sha256,
                     ", is not in the cache there any more, and this machine has another one"));
  }
  if (state_ == State::kPlace && word == "missing" && order_.installed.empty() && !std::exchange(copied_, true)) {
    state_ = State::kStored;
    turn_.bytes += order_.purpose == RemotePurpose::kProgram ? bundle_request(order_.file) : put_request(order_.file);
    turn_.file = true;
    return;
  }
  fail(LaunchFailureKind::kShellNoise, text("not an answer of our script: `", printable(line), "`"));
}

// Of the worker, which has taken the script's place.
void RemoteConversation::on_executed() {
  switch (order_.purpose) {
    case RemotePurpose::kEnd: state_ = State::kEnded; return;
    case RemotePurpose::kCheck: state_ = State::kTalk; return;
    case RemotePurpose::kProgram: state_ = State::kGreeting; return;
    case RemotePurpose::kStart:
      state_ = State::kReply;
      turn_.bytes += order_.bootstrap;
      return;
    case RemotePurpose::kWorkspace:
      state_ = State::kNeeds;
      turn_.bytes += text("tree ", order_.manifest.size(), '\n', order_.manifest);
      return;
  }
}

// "need <number>", in order, or "end".
void RemoteConversation::on_need(std::string_view line) {
  std::string_view rest = line;
  if (first_word(rest) == "end" && rest.empty()) {
    state_ = State::kBuilt;
    turn_.blobs = std::exchange(needed_, {});
    return;
  }
  const auto number = number_after("need", line);
  if (number && *number < order_.blobs && (needed_.empty() || *number > needed_.back())) {
    needed_.push_back(static_cast<std::size_t>(*number));
    return;
  }
  fail(LaunchFailureKind::kShellNoise, text("not an answer of monarch-worker: `", printable(line), "`"));
}

// "at <bytes>", which says that it lives, or "built <bytes>". What it kept may turn out to be damaged: then it asks
// once more.
void RemoteConversation::on_built(std::string_view line) {
  if (const auto came = number_after("at", line)) {
    came_ = *came;
    return;
  }
  if (const auto bytes = number_after("built", line)) {
    answer_ = RemoteWorkspace{.bytes = *bytes};
    return;
  }
  if ((line == "end" || number_after("need", line)) && !std::exchange(asked_again_, true)) {
    state_ = State::kNeeds;
    return on_need(line);
  }
  fail(LaunchFailureKind::kShellNoise, text("not an answer of monarch-worker: `", printable(line), "`"));
}

void RemoteConversation::on_failed(std::string_view rest) {
  const std::string_view word = first_word(rest);
  const auto* const known = std::find_if(kFailedWords.begin(), kFailedWords.end(),
                                         [word](const FailedWord& each) { return each.word == word; });
  const LaunchFailureKind kind = known == kFailedWords.end() ? LaunchFailureKind::kOther : known->kind;
  if (state_ == State::kNeeds || state_ == State::kBuilt) {
    return fail(kind, text("the workspace could not be made there: ", printable(rest.empty() ? word : rest)));
  }
  fail(kind, order_.installed.empty()
                 ? text("the host could not take ", file_name(),
                        " into ~/.cache/monarch (or below $XDG_CACHE_HOME): ", printable(rest.empty() ? word : rest))
                 : text("monarch-worker: ", printable(rest.empty() ? word : rest)));
}

void RemoteConversation::on_ended(std::string_view line) {
  if (const auto processes = number_after("ended", line)) {
    answer_ = RemoteEnded{.processes = *processes};
    return;
  }
  std::string_view rest = line;
  if (first_word(rest) == "still") {
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
  auto reply = decode_from_host<BootstrapReply>(frame->payload);
  if (!reply.ok()) {
    if (!ended) return;
    return fail(LaunchFailureKind::kShellNoise, text("the worker's answer: ", reply.error().message));
  }
  if (!reply->error.empty()) {
    const bool interface = reply->refusal == BootstrapRefusal::kInterface;
    return fail(interface ? LaunchFailureKind::kInterface : LaunchFailureKind::kExec, reply->error);
  }
  if (reply->version != MONARCH_VERSION) {
    return fail(LaunchFailureKind::kVersion,
                text(printable(path_), " is of version ", printable(reply->version), ", this is " MONARCH_VERSION));
  }
  answer_ = std::move(*reply);
}

void RemoteConversation::on_words(std::string_view bytes) { note(bytes); }

// The last line that came from there and is not ours, for people.
std::string RemoteConversation::said() const {
  constexpr std::size_t kSaidBytes = 200;
  const std::size_t end = words_.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = words_.find_last_of('\n', end) + 1;  // npos + 1 is 0
  return text(" (it said: ", printable(words_.substr(begin, std::min(end + 1 - begin, kSaidBytes))), ")");
}

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
                     "is there a /bin/sh?",
                     said()));
  }
  if (!exit_status) return fail(LaunchFailureKind::kClosed, "the connection ended midway");
  if (state_ == State::kTalk && *exit_status == 0) {
    answer_ = RemoteLeft{};
    return;
  }
  if (state_ == State::kPlace || state_ == State::kStored) {
    return fail(LaunchFailureKind::kExec, text("the remote script ended", how, " and without an answer"));
  }
  ended_unheard(*exit_status);
}

// By the key that can name a worker; nothing where none can.
std::string RemoteConversation::advice(std::string_view before, std::string_view behind) const {
  return order_.worker_key.empty() ? std::string() : text(before, order_.worker_key, behind);
}

// What the script executed.
void RemoteConversation::ended_unheard(int exit_status) {
  if (exit_status == kExitNotExecutable) {
    if (!order_.installed.empty()) {
      return fail(
          LaunchFailureKind::kNotExecutable,
          text(printable(path_),
               " could not be executed there: may this user execute it, and is its file system mounted noexec?"));
    }
    return fail(LaunchFailureKind::kNotExecutable,
                text(printable(path_),
                     " could not be executed there: is its file system mounted noexec? XDG_CACHE_HOME names another "
                     "place for it",
                     order_.purpose == RemotePurpose::kProgram ? "" : advice(", ", " a file that is installed")));
  }
  if (exit_status == kExitNotFound) {
    return fail(LaunchFailureKind::kExec,
                text(printable(path_), " could not be executed there: is it a program for that host?"));
  }
  // ld.so(8) says what it lacks, and ends with 1 or 127.
  const bool loader = words_.find("GLIBC") != std::string::npos || words_.find("shared librar") != std::string::npos;
  if (order_.purpose == RemotePurpose::kProgram && loader) {
    return fail(
        LaunchFailureKind::kLibraries,
        text("the C library of the host is too old for ", printable(path_), ": ",
             printable(words_.substr(0, words_.find('\n'))),
             "; let the supervisor be here (`supervisor: {on: here}`), or put a host with a newer system first"));
  }
  fail(LaunchFailureKind::kExec,
       text(file_name(), " ended with status ", exit_status, " and without an answer", said()));
}

std::string_view RemoteConversation::file_name() const {
  return order_.purpose == RemotePurpose::kProgram ? "monarch" : "monarch-worker";
}

LaunchFailure RemoteConversation::timed_out(std::string_view late) const {
  return failure(LaunchFailureKind::kTimeout, text(awaited(), late));
}

std::string RemoteConversation::awaited() const {
  switch (state_) {
    case State::kMarker:
      return text("the remote shell did not come to our script: a start-up file of it may wait", said());
    case State::kPlace: return "the remote script did not find out whether it has what is executed";
    case State::kStored: return text(file_name(), " was not copied");
    case State::kReply: return text("the worker, ", printable(path_), ", did not answer");
    case State::kTalk: return text("monarch-worker check, ", printable(path_), ", did not answer");
    case State::kEnded: return "the worker's `end` did not answer";
    case State::kGreeting: return text("the monarch there, ", printable(path_), ", did not answer");
    case State::kNeeds: return "the worker did not say what it lacks of the workspace";
    case State::kBuilt: return "the workspace was not made";
  }
  return "no answer";
}

LaunchFailure RemoteConversation::failure(LaunchFailureKind kind, std::string message) const {
  return {.kind = kind, .phase = phase(), .elapsed = {}, .message = std::move(message), .words = words_, .again = {}};
}

void RemoteConversation::fail(LaunchFailureKind kind, std::string message) {
  turn_ = {};
  answer_ = failure(kind, std::move(message));
}

}  // namespace monarch

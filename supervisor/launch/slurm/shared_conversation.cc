#include "supervisor/launch/slurm/shared_conversation.h"

#include <algorithm>
#include <utility>

#include "supervisor/launch/program_pipes.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kAll = "*";

}  // namespace

SharedConversation::SharedConversation(std::vector<RemoteOrder> orders) : open_(orders.size()) {
  MONARCH_ASSERT(!orders.empty());
  file_ = orders.front().file;
  job_uuid_ = orders.front().mark.job_uuid;
  for (RemoteOrder& order : orders) {
    std::string name = order.mark.host_name;
    nodes_.push_back({.name = std::move(name),
                      .conversation = RemoteConversation(std::move(order)),
                      .reply = StepBytes(RemoteConversation::kReplyBytes)});
  }
}

std::vector<SharedTurn> SharedConversation::take_turns() { return std::exchange(turns_, {}); }

std::vector<SharedNews> SharedConversation::take_news() { return std::exchange(news_, {}); }

void SharedConversation::on_output(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const bool whole = end != std::string_view::npos;
    bytes_ += bytes.substr(0, end);
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
    dropping_ = dropping_ || bytes_.size() > kLineBytes;
    if (whole && !dropping_) on_line(bytes_);
    if (whole || dropping_) bytes_.clear();
    if (whole) dropping_ = false;
  }
}

// What is of no node is of whoever begins a task of Slurm's, or the rest of a line that srun had cut.
void SharedConversation::on_line(std::string_view line) {
  StepLine read;
  if (!read_step_line(line, read)) return;
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.name == read.node; });
  if (found == nodes_.end() || found->state == State::kOver) return;
  on_word(static_cast<std::size_t>(found - nodes_.begin()), read.rest);
  advance();
}

void SharedConversation::on_word(std::size_t node, std::string_view rest) {
  Node& its = nodes_[node];
  if (!its.shown) return show(node, rest);
  if (its.state == State::kTold) return on_reply(node, rest);
  if (rest.starts_with("failed ")) return hear(node, text(rest, '\n'));
  if (stage_ == Stage::kAsk && its.state == State::kAwaited && (rest == "there" || rest == "missing")) {
    its.has = rest == "there";
    its.state = State::kSaid;
    ++progress_;
    return;
  }
  if (stage_ == Stage::kStart) on_started(node, rest);
}

void SharedConversation::show(std::size_t node, std::string_view rest) {
  if (!rest.starts_with(kRemoteMarker)) return;
  Node& its = nodes_[node];
  its.shown = true;
  its.state = State::kSaid;
  ++shown_;
  ++progress_;
  hear(node, text(rest, '\n'));
  if (its.state == State::kOver || !its.conversation.place()) return;
  // In place: of a temporary that is moved, GCC 12 says where sources are joined that it may be uninitialized.
  SharedNews& news = news_.emplace_back();
  news.node = node;
  news.word = SharedPlaced{.address = *its.conversation.place()};
}

void SharedConversation::on_started(std::size_t node, std::string_view rest) {
  Node& its = nodes_[node];
  if (its.state == State::kAwaited && rest.starts_with("have ")) {
    its.state = State::kExecuted;
    ++progress_;
    return hear(node, text(rest, '\n'));
  }
  if (its.state == State::kAwaited && rest == "missing") return leave(node);
  if (its.state != State::kExecuted || rest != "ready") return;
  // The conversation wants to say it since the worker was executed.
  const std::string frame = its.conversation.take_turn().bytes;
  if (frame.empty()) return leave(node);  // it asks before anybody has heard from where it is
  say(step_lines(its.name, frame));
  its.state = State::kTold;
  ++progress_;
}

void SharedConversation::on_reply(std::size_t node, std::string_view rest) {
  Node& its = nodes_[node];
  switch (its.reply.add(rest)) {
    case StepBytes::Sight::kOther: return;
    case StepBytes::Sight::kMore: ++progress_; return;
    case StepBytes::Sight::kBroken: its.conversation.on_output("no answer of a worker"); break;
    case StepBytes::Sight::kWhole: its.conversation.on_output(its.reply.bytes()); break;
  }
  its.conversation.on_end(0);
  MONARCH_ASSERT(its.conversation.answer().has_value());
  answer(node, *its.conversation.answer());
}

void SharedConversation::hear(std::size_t node, std::string_view bytes) {
  Node& its = nodes_[node];
  its.conversation.on_output(bytes);
  if (its.conversation.answer()) return answer(node, *its.conversation.answer());
  if (its.state == State::kSaid) (void)its.conversation.take_turn();  // it wants to ask, and all are asked
}

void SharedConversation::answer(std::size_t node, RemoteAnswer answer) {
  Node& its = nodes_[node];
  const bool told = std::exchange(its.state, State::kOver) == State::kTold;
  --open_;
  ++progress_;
  const auto* failure = std::get_if<LaunchFailure>(&answer);
  const bool may_run = told && failure != nullptr && failure->kind != LaunchFailureKind::kNotExecutable;
  news_.push_back({.node = node, .word = SharedAnswer{.answer = std::move(answer), .may_run = may_run}});
}

void SharedConversation::leave(std::size_t node, std::string_view late) {
  Node& its = nodes_[node];
  if (its.state == State::kTold) return answer(node, its.conversation.timed_out(late));
  its.state = State::kOver;
  --open_;
  ++progress_;
  news_.push_back({.node = node, .word = SharedLeft{.again = its.shown && stage_ == Stage::kShow}});
}

void SharedConversation::give_bootstrap(std::size_t node, std::string frame) {
  nodes_[node].conversation.give_bootstrap(std::move(frame));
}

void SharedConversation::withdraw(std::size_t node) {
  if (std::exchange(nodes_[node].state, State::kOver) == State::kOver) return;
  --open_;
  advance();
}

void SharedConversation::on_silence(std::string_view late) {
  if (stage_ == Stage::kShow) return leave_all();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const State state = nodes_[i].state;
    if (state != State::kOver && state != State::kSaid) leave(i, late);
  }
  advance();
}

// Whether a worker that was told to start has, nobody knows; why it is not known is srun's to say.
void SharedConversation::on_end(std::string_view words) {
  const std::string_view last = last_line(words);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].state != State::kTold) continue;
    LaunchFailure failure = nodes_[i].conversation.timed_out();
    failure.kind = LaunchFailureKind::kClosed;
    failure.message = text("the srun that it shares with other hosts ended before its worker answered",
                           last.empty() ? "" : ": ", printable(last));
    failure.words = words;
    answer(i, std::move(failure));
  }
  leave_all();
}

void SharedConversation::leave_all() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].state != State::kOver) leave(i);
  }
}

std::string SharedConversation::awaited() const {
  constexpr std::size_t kNames = 8;
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const Node& node : nodes_) {
    if (node.state == State::kSaid || node.state == State::kOver) continue;
    names.size() < kNames ? names.push_back(node.name) : static_cast<void>(++more);
  }
  return more == 0 ? join(names, ", ") : text(join(names, ", "), " and ", more, " more");
}

bool SharedConversation::awaits() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.state == State::kAwaited; });
}

void SharedConversation::advance() {
  if (over() || stage_ == Stage::kStart || awaits()) return;
  if (stage_ == Stage::kShow) {
    stage_ = Stage::kAsk;
    return ask_all();
  }
  const auto lacks = [](const Node& node) { return node.state == State::kSaid && !node.has; };
  const auto first = std::find_if(nodes_.begin(), nodes_.end(), lacks);
  if (first == nodes_.end() || fills_ == 2) return start_all();
  // Where they share a home, the others have it then.
  const std::string_view whom = fills_++ == 0 ? std::string_view(first->name) : kAll;
  turns_.push_back({.bytes = fill_request(file_, whom), .file = true});
  ask_all();
}

void SharedConversation::ask_all() {
  for (Node& node : nodes_) {
    if (node.state == State::kSaid) node.state = State::kAwaited;
  }
  say(has_request(file_));
}

// Who lacks the file although it was sent says why in a step of its own.
void SharedConversation::start_all() {
  stage_ = Stage::kStart;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].state != State::kSaid) continue;
    if (nodes_[i].has) {
      nodes_[i].state = State::kAwaited;
    } else {
      leave(i);
    }
  }
  if (!over()) say(each_request(file_, job_uuid_));
}

}  // namespace monarch

#include "worker/library/card_asks.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

PostCall CardAsks::call_of(std::uint64_t number, const Question& question) const {
  PostCall call;
  call.id = number;
  call.mesh = question.mesh;
  call.ranks = {{.first = question.rank, .count = 1}};
  call.target = {kCardsActor, name_, text(question.since)};
  return call;
}

// Nobody waits for the sending: where it fails the connection has ended, and the next one asks.
std::uint64_t CardAsks::ask(const std::string& mesh, std::uint32_t rank, std::uint64_t since, Handler handler) {
  DoorThread::Connection connection;
  PostCall call;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = next_++;
    const Question& question =
        questions_.emplace(number, Question{mesh, rank, since, std::move(handler)}).first->second;
    call = call_of(number, question);
    connection = connection_;
  }
  if (connection) (void)connection->send(call);
  return call.id;
}

void CardAsks::take_back(std::uint64_t question) {
  DoorThread::Connection connection;
  {
    const std::lock_guard lock(mutex_);
    if (questions_.erase(question) == 0) return;
    connection = connection_;
  }
  if (connection) (void)connection->send(PostCancel{question});
}

void CardAsks::came(const DoorThread::Connection& connection) {
  std::vector<PostCall> calls;
  {
    const std::lock_guard lock(mutex_);
    connection_ = connection;
    for (const auto& [number, question] : questions_) calls.push_back(call_of(number, question));
  }
  for (const PostCall& call : calls) (void)connection->send(call);
}

void CardAsks::ended(const DoorThread::Connection& connection) {
  const std::lock_guard lock(mutex_);
  if (connection_ == connection) connection_.reset();
}

void CardAsks::answer(std::uint64_t number, Result<Answer> answer) {
  Handler handler;
  {
    const std::lock_guard lock(mutex_);
    const auto question = questions_.find(number);
    if (question == questions_.end()) return;
    handler = std::move(question->second.handler);
    questions_.erase(question);
  }
  handler(std::move(answer));
}

void CardAsks::heard(const PostAnswer& said, std::vector<UniqueFd>& beside) {
  if (said.outcome.kind != OutcomeKind::kValue) {
    const bool ended = said.outcome.kind == OutcomeKind::kRefused;
    return answer(said.id, Error{ended ? ErrorCode::kNotFound : ErrorCode::kGone, said.outcome.text});
  }
  const auto body = DoorBody::take(said.outcome.body, beside);
  if (!body.ok()) return answer(said.id, body.error());
  answer(said.id, Answer{said.outcome.generation, std::string(body->bytes()), said.outcome.personal.data});
}

// After its answer nobody asks any more.
void CardAsks::heard(const PostOver& over) {
  if (!over.refused.empty()) answer(over.id, Error{ErrorCode::kGone, over.refused});
}

}  // namespace monarch

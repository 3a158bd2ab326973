#include "transport/zmq/admission.h"

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"

namespace monarch {

namespace {

constexpr std::size_t kUserIdBytes = 255;  // RFC 27: a short string of metadata

}  // namespace

std::optional<Admission::Answer> Admission::decide(std::uint64_t ticket, const CurvePublicKey& key) const {
  if (table_.denied.contains(key)) return Answer{ticket, std::nullopt};
  const auto found = table_.users.find(key);
  if (found == table_.users.end()) return std::nullopt;
  return Answer{ticket, found->second};
}

std::optional<Admission::Answer> Admission::ask(std::uint64_t ticket, const CurvePublicKey& key, Instant now) {
  if (auto answer = decide(ticket, key)) return answer;
  if (waiting_.size() >= options_.waiting) return Answer{ticket, std::nullopt};
  waiting_.push_back({ticket, key, now + options_.unknown_key_wait});
  return std::nullopt;
}

std::vector<Admission::Answer> Admission::replace(AllowTable table) {
  for (const auto& [key, user_id] : table.users) {
    MONARCH_ASSERT(!user_id.empty() && user_id.size() <= kUserIdBytes);
  }
  table_ = std::move(table);
  std::vector<Answer> answers;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    auto answer = decide(waiting.ticket, waiting.key);
    if (answer) answers.push_back(std::move(*answer));
    return answer.has_value();
  });
  return answers;
}

std::vector<Admission::Answer> Admission::expire(Instant now) {
  std::vector<Answer> answers;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.until > now) return false;
    answers.push_back({waiting.ticket, std::nullopt});
    return true;
  });
  return answers;
}

Instant Admission::next_due() const { return waiting_.empty() ? Instant::never() : waiting_.front().until; }

}  // namespace monarch

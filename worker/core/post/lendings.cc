#include "worker/core/post/lendings.h"

namespace monarch {

void Lendings::begin(const CallBody& body, std::optional<DoorId> lender) {
  if (body.at == BodyId(0) || body.block == 0 || (lender && !doors_.contains(*lender))) return;
  lendings_.emplace(body.at, Lending{.lender = lender, .block = body.block});
}

bool Lendings::give(BodyId body, DoorId door, const Reading& reading) {
  const auto lending = lendings_.find(body);
  if (lending == lendings_.end()) return false;
  std::map<Reading, BodyId>* const its = doors_.contains(door) ? &reading_[door] : nullptr;
  if (its == nullptr || its->size() >= kReadByADoor || !its->emplace(reading, body).second) {
    lending->second.unsure = true;
    return false;
  }
  ++lending->second.readers;
  return true;
}

void Lendings::let_go(DoorId door, const Reading& reading) {
  const auto its = reading_.find(door);
  if (its == reading_.end()) return;
  const auto found = its->second.find(reading);
  if (found == its->second.end()) return;
  const BodyId body = found->second;
  its->second.erase(found);
  lose_reader(body, false);
}

// Its process may live on, and have what it was given.
void Lendings::left(DoorId door) {
  doors_.erase(door);
  const auto its = reading_.extract(door);
  if (its.empty()) return;
  for (const auto& [reading, body] : its.mapped()) lose_reader(body, true);
}

void Lendings::lose_reader(BodyId body, bool unsure) {
  const auto lending = lendings_.find(body);
  --lending->second.readers;
  lending->second.unsure = lending->second.unsure || unsure;
  look_at(lending);
}

void Lendings::gone(BodyId body) {
  const auto lending = lendings_.find(body);
  if (lending == lendings_.end()) return;
  lending->second.used = false;
  look_at(lending);
}

// A lender whose connection has ended has given the block up.
void Lendings::look_at(All::iterator lending) {
  const Lending& one = lending->second;
  if (one.used || one.readers > 0) return;
  const PostFree free{.block = one.block, .unsure = one.unsure};
  if (!one.lender) {
    out_.emplace_back(post_action::FreeBlock{free});
  } else if (doors_.contains(*one.lender)) {
    out_.emplace_back(post_action::ToDoor{*one.lender, free});
  }
  lendings_.erase(lending);
}

}  // namespace monarch

// Blocks of memory that lenders write, lend and write again: those of processes, and of posts for what comes from other
// hosts. What the kernel and MemoryPool do is modelled here.

#include <algorithm>

#include "tests/sim/calls/room.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim::calls {

namespace {

constexpr std::size_t kBlocksOfALender = 6;
constexpr Duration kLongestKept = Duration::milliseconds(1'500);
constexpr Duration kLongestOnItsWay = Duration::milliseconds(30);

}  // namespace

// Whether anybody has it open or mapped, as the kernel says to its lender.
bool Room::is_alone(const Block& block) const {
  return block.held == 0 && block.readers.empty() && block.mapped.empty();
}

// A block with that content; 0: there is none, and it goes in memory of its own.
std::uint64_t Room::lend(ProcessNumber lender, DoorId door, Tag content) {
  std::size_t count = 0;
  auto at = blocks_.lower_bound({lender, 0});
  for (; at != blocks_.end() && at->first.first == lender; ++at, ++count) {
    Block& one = at->second;
    if (one.lent > 0) continue;
    if (one.asked) one.asked = !is_alone(one);
    if (!one.asked) break;
  }
  if (at == blocks_.end() || at->first.first != lender) {
    if (count >= kBlocksOfALender) return 0;
    at = blocks_.emplace(BlockKey{lender, next_block_++}, Block()).first;
  }
  Block& block = at->second;
  must(block.readers.empty(), "C8", text("block ", at->first.second, " is written while somebody reads it"));
  must(block.held == 0, "C8", text("block ", at->first.second, " is written while a post has it"));
  block.content = content;
  block.door = door;
  block.lent = 1;
  return at->first.second;
}

void Room::freed(ProcessNumber lender, const PostFree& free) {
  if (is(Bug::kUnsureUntold) && free.unsure) return;
  const auto block = blocks_.find({lender, free.block});
  if (block == blocks_.end() || block->second.lent == 0) return;
  --block->second.lent;
  block->second.asked = block->second.asked || free.unsure;
}

// Its connection has ended.
void Room::give_up_lent(ProcessNumber lender, std::optional<DoorId> door) {
  for (auto at = blocks_.lower_bound({lender, 0}); at != blocks_.end() && at->first.first == lender;) {
    const bool is_lent = at->second.lent > 0 && (!door || at->second.door == *door);
    if (is_lent && is(Bug::kWrittenAfterALoss)) at->second.lent = 0;
    const bool goes = is_lent && !is(Bug::kWrittenAfterALoss);
    at = goes ? blocks_.erase(at) : std::next(at);
  }
}

// What a process says may have its body in a block.
void Room::lend_body(const ProcessPtr& process, DoorId door, CallBody& body, Tag content) {
  if (content == 0 || !speaks_newest(*process) || random_.one_in(2)) return;
  body.block = lend(process->number, door, content);
}

// A body that a post has, perhaps in that block of the lender.
CallBody Room::give_in_block(Post& post, Tag tag, ProcessNumber lender, std::uint64_t block) {
  CallBody body = give_body(post, tag, kBodyBytes);
  if (tag == 0 || block == 0) return body;
  body.way = BodyWay::kBeside;
  body.block = block;
  hold_block(post, body.at, {lender, block});
  return body;
}

CallBody Room::give_from_peer(Post& post, Tag tag) {
  const bool is_own = tag != 0 && random_.one_in(2);
  return give_in_block(post, tag, post.lender, is_own ? lend(post.lender, DoorId(0), tag) : 0);
}

// A post has it, under that number.
void Room::hold_block(Post& post, BodyId body, const BlockKey& key) {
  const auto block = blocks_.find(key);
  if (block == blocks_.end()) return;  // it was given up meanwhile
  ++block->second.held;
  post.blocks[body] = key;
}

void Room::drop_block(Post& post, BodyId body) {
  const auto found = post.blocks.find(body);
  if (found == post.blocks.end()) return;
  const auto block = blocks_.find(found->second);
  if (block != blocks_.end()) --block->second.held;
  post.blocks.erase(found);
}

// What no core has heard of.
void Room::drop_body(Post& post, BodyId body) {
  const auto found = post.blocks.find(body);
  if (found != post.blocks.end() && found->second.first == post.lender)
    freed(post.lender, {.block = found->second.second});
  drop_block(post, body);
  post.bodies.erase(body);
}

void Room::forget_reader(const ProcessPtr& process) {
  for (auto& [key, block] : blocks_) {
    block.mapped.erase(process->number);
    std::erase_if(block.readers, [&](const auto& one) { return one.first.first == process->number; });
  }
}

void Room::perform(HostNumber host, const PostPtr& post, const post_action::FreeBody& action) {
  must(post->bodies.erase(action.body) == 1, "C6", "a body is let go twice");
  if (!action.tells) return drop_block(*post, action.body);
  // It may be on its way to another host.
  const Duration takes =
      random_.one_in(2) ? Duration::zero() : random_.skewed(Duration::microseconds(10), kLongestOnItsWay);
  send_after(scheduler_, takes, post->life, [this, host, post, body = action.body] {
    drop_block(*post, body);
    feed(host, post, post_event::BodyGone{body});
  });
}

void Room::perform(HostNumber /*host*/, const PostPtr& post, const post_action::FreeBlock& action) {
  freed(post->lender, action.free);
}

// A process is given what lies in a block; from here on it has it.
void Room::begin_reading(const Post& post, const ProcessPtr& process, const CallBody& body,
                         const Lendings::Reading& what) {
  const auto held = post.blocks.find(body.at);
  if (held == post.blocks.end() || !process->life->alive()) return;
  const auto found = blocks_.find(held->second);
  if (found == blocks_.end()) return;
  Block& block = found->second;
  must(block.content == post.bodies.at(body.at), "C8",
       text("block ", found->first.second, " is given on, and something else is in it"));
  block.readers[{process->number, what}] = block.content;
  if (body.block != 0) block.mapped.insert(process->number);
}

void Room::end_reading(const ProcessPtr& process, const Lendings::Reading& what) {
  for (auto& [key, block] : blocks_) {
    const auto reader = block.readers.find({process->number, what});
    if (reader == block.readers.end()) continue;
    must(reader->second == block.content, "C8", text("block ", key.second, " is not as its reader was given it"));
    block.readers.erase(reader);
    if (is(Bug::kFreedAtTheFirst) && !block.readers.empty()) freed(key.first, {.block = key.second});
  }
}

// A user keeps it for a while.
void Room::let_go_later(const ProcessPtr& process, DoorId door, const Lendings::Reading& what) {
  const Duration kept = random_.one_in(2) ? Duration::zero() : random_.skewed(Duration::milliseconds(1), kLongestKept);
  send_after(scheduler_, kept, process->life, [this, process, door, what] {
    end_reading(process, what);
    if (process->serves != door && process->calls != door) return;
    say(process, door, PostLetGo{.delivery = what.delivery, .id = what.id, .rank = what.rank}, 0);
  });
}

void Room::judge_blocks() const {
  for (const auto& [key, block] : blocks_) {
    must(block.lent == 0 || block.held > 0 || !block.readers.empty(), "C8",
         text("block ", key.second, " of lender ", key.first, " does not come back"));
  }
}

}  // namespace monarch::sim::calls

#include "worker/keeper/rank_doors.h"

#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/socket_directory.h"
#include "worker/core/commit_question.h"
#include "worker/core/host_places.h"

namespace monarch {

RankDoors::~RankDoors() {
  for (const auto& [key, door] : doors_) loop_.cancel(door.timer);
}

Result<RankDoorPaths> RankDoors::open(const keeper_action::ForkRank& order) {
  const Incarnation key = order.key;
  if (options_.directory.empty()) return RankDoorPaths{};
  // Of a rank there is one live generation at a time (I21), so the paths need none.
  const std::string own = text(key.rank.mesh.value(), '.', key.rank.rank.value(), '.');
  const std::string stem = text(options_.directory, '/', own);
  RankDoorPaths paths{.notify = stem + "n", .questions = stem + "s", .events = stem + "e"};
  if (options_.vault) paths.vault = text(options_.directory, '/', kVaultDoor);
  if (options_.post) paths.post = post_door(options_.directory);
  Door door{.name = text(printable(order.gang.mesh_name), '/', key.rank.rank.value()),
            .stem = own,
            .voice = RankVoice(options_.period)};
  door.voice.look_beyond(order.gang.furthest);
  MONARCH_ASSIGN(door.notify, NotifySocket::open(
                                  loop_, paths.notify, [this, key](std::string_view datagram) { heard(key, datagram); },
                                  [this, key] { dropped(key); }));
  MONARCH_ASSIGN(
      door.events,
      EventDoor::open(
          loop_, {.question_path = paths.questions,
                  .events_path = paths.events,
                  .who = who_answer(identity_of(order)),
                  .committed = committed_answer(order.gang.env, order.own.env),
                  .gate = order.gang.standby ? std::string() : gate_answer(order.gang.env, order.own.env),
                  .on_gate = [this, key] { loop_.defer([tell = tell_, key] { tell(keeper_event::AtGate{key}); }); },
                  // Later: what follows from it may close the door, which is being read from here.
                  .on_commit =
                      [this, key](const CommitRequest& asked) {
                        const Incarnation called = now_called(key);
                        loop_.defer([tell = tell_, called, asked] { tell(keeper_event::Committing{called, asked}); });
                      }}));
  doors_.insert_or_assign(key, std::move(door));
  return paths;
}

RankIdentity RankDoors::identity_of(const keeper_action::ForkRank& order) const {
  return {.job = options_.job_id,
          .mesh = order.gang.mesh_name,
          .rank = order.key.rank.rank.value(),
          .generation = order.key.generation.counter,
          .host = options_.host_name};
}

Incarnation RankDoors::now_called(const Incarnation& key) const {
  const auto found = renamed_.find(key);
  return found == renamed_.end() ? key : found->second;
}

void RankDoors::take_over(const Incarnation& from, const keeper_action::ForkRank& as) {
  auto door = doors_.extract(from);
  if (door.empty()) return;
  loop_.cancel(std::exchange(door.mapped().timer, 0));
  door.mapped().timer_due = Instant::never();
  door.mapped().name = text(printable(as.gang.mesh_name), '/', as.key.rank.rank.value());
  door.mapped().place = as;
  door.key() = as.key;
  Door& moved = doors_.insert(std::move(door)).position->second;
  moved.voice.look_beyond(as.gang.furthest);
  renamed_[from] = as.key;
  arm(as.key, moved);
}

void RankDoors::open_gate(const Incarnation& key) {
  const auto found = doors_.find(key);
  if (found == doors_.end() || !found->second.place) return;
  const keeper_action::ForkRank place = *std::exchange(found->second.place, std::nullopt);
  found->second.events->open_gate(who_answer(identity_of(place)), committed_answer(place.gang.env, place.own.env),
                                  gate_answer(place.gang.env, place.own.env));
}

// It only sets the timer: what is passed on may close the door, which is being read from here.
void RankDoors::heard(const Incarnation& opened_as, std::string_view datagram) {
  const Incarnation key = now_called(opened_as);
  const auto found = doors_.find(key);
  if (found == doors_.end()) return;
  Door& door = found->second;
  const bool warned = door.voice.bad() > 0;
  const Notice notice = parse_notice(datagram);
  door.voice.hear(notice, loop_.now());
  if (notice.bad > 0 && !warned) {
    log_warn(door.name, ": `", printable(notice.first_bad), "` has no such value; more of them are only counted");
  }
  if (notice.bad > 0) door.voice.dropped(loop_.now());
  arm(key, door);
}

void RankDoors::dropped(const Incarnation& opened_as) {
  const Incarnation key = now_called(opened_as);
  const auto found = doors_.find(key);
  if (found == doors_.end()) return;
  found->second.voice.dropped(loop_.now());
  arm(key, found->second);
}

TalkDrops RankDoors::Door::drops() const {
  const NotifyDrops& said = notify->drops();
  const EventDoorDrops listened = events->drops();
  return {.bad_values = voice.bad(),
          .too_long = said.too_long,
          .foreign = said.foreign + listened.foreign,
          .connections = listened.too_many,
          .slow_readers = listened.slow};
}

void RankDoors::arm(const Incarnation& key, Door& door) {
  const Instant due = door.voice.due();
  if (due == door.timer_due) return;
  loop_.cancel(door.timer);
  door.timer_due = due;
  door.timer = due == Instant::never() ? 0 : loop_.at(due, [this, key] { pass_on(key); });
}

void RankDoors::pass_on(const Incarnation& key) {
  const auto found = doors_.find(key);
  if (found == doors_.end()) return;
  Door& door = found->second;
  const TalkDrops drops = door.drops();
  if (door.voice.due() == Instant::never() && drops == door.told) return;
  door.told = drops;
  loop_.cancel(std::exchange(door.timer, 0));
  door.timer_due = Instant::never();
  door.voice.told(loop_.now());
  tell_(keeper_event::Spoke{key, door.voice.ready(), door.voice.progress(), drops});
}

void RankDoors::tell(const Incarnation& key, const std::string& json) {
  if (const auto found = doors_.find(key); found != doors_.end()) found->second.events->tell(json);
}

void RankDoors::answer(const Incarnation& key, const CommitAnswer& answer) {
  if (const auto found = doors_.find(key); found != doors_.end()) found->second.events->answer_commit(answer);
}

void RankDoors::hear_last_words(const Incarnation& key) {
  const auto found = doors_.find(key);
  if (found == doors_.end()) return;
  found->second.notify->drain();
  pass_on(key);
}

void RankDoors::close(const Incarnation& key) {
  const auto found = doors_.find(key);
  if (found == doors_.end()) return;
  log_drops(found->second);
  loop_.cancel(found->second.timer);
  remove_sockets(options_.directory, found->second.stem, kTensorSocketEnd);
  doors_.erase(found);
  std::erase_if(renamed_, [&key](const auto& renamed) { return renamed.second == key; });
}

void RankDoors::log_drops(const Door& door) {
  const TalkDrops drops = door.drops();
  if (drops == TalkDrops{}) return;
  log_warn(door.name, ": of what it said, ", drops.bad_values, " values were bad and ", drops.too_long,
           " messages too long; ", drops.foreign, " came from other users; ", drops.connections,
           " connections were too many, and ", drops.slow_readers, " readers of events did not read");
}

}  // namespace monarch

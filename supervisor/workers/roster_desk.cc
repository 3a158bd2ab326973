#include "supervisor/workers/roster_desk.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

constexpr const char* kNoPost = "beats of its host speak of none";
constexpr Duration kLookWhole = Duration::milliseconds(200);  // while it is not known where all posts are

// Those of a later supervisor have higher numbers.
std::uint64_t first_failure(Term term) {
  constexpr unsigned kTermShift = 32;
  return (term.value() << kTermShift) + 1;
}

}  // namespace

JobEvent post_word_event(const std::string& host, const PostWord& word) {
  const bool waits = word.kind == PostWordKind::kWaiting;
  JobEvent event;
  event.kind = waits ? EventKind::kCallWaiting : EventKind::kPostUnreached;
  event.severity = waits ? Severity::kInfo : Severity::kWarning;
  event.host = host;
  event.message = text("the post of ", host, " says: ", printable(word.text));
  return event;
}

JobEvent post_ended_event(const std::string& host, const std::string& how) {
  JobEvent event;
  event.kind = EventKind::kPostEnded;
  event.severity = Severity::kWarning;
  event.host = host;
  event.message =
      text("the post of ", host, " has ended, and another one was started; its host says: ", printable(how));
  return event;
}

RosterDesk::RosterDesk(const JobCore& core, RosterDeskOptions options)
    : core_(core),
      options_(std::move(options)),
      ports_(core, options_.returned),
      next_failure_(first_failure(core.state().term)),
      sent_(core.hosts().size()),
      heard_(core.hosts().size()) {}

void RosterDesk::changed() {
  if (std::exchange(armed_, true)) return;
  const Instant now = options_.now();
  options_.at(std::max(now, looked_at_ + pause_), [this] {
    armed_ = false;
    look();
  });
}

void RosterDesk::told(const JobEvent& event) {
  if (event.kind != EventKind::kGangFailed) return;
  std::optional<RosterFailure> failure = failure_of(event);
  if (!failure) return;
  failure->number = next_failure_++;
  failures_.push_back(std::move(*failure));
  if (failures_.size() > kFailures) failures_.pop_front();
  changed();
}

std::optional<RosterFailure> RosterDesk::failure_of(const JobEvent& event) const {
  const auto& meshes = core_.spec().meshes;
  const auto mesh = std::find_if(meshes.begin(), meshes.end(), [&](const auto& one) { return one.name == event.mesh; });
  const auto gang = std::find_if(event.details.begin(), event.details.end(),
                                 [](const auto& detail) { return detail.first == "gang"; });
  if (mesh == meshes.end() || gang == event.details.end()) return std::nullopt;
  const MeshId id(static_cast<std::uint32_t>(mesh - meshes.begin()));
  std::uint32_t number = 0;
  (void)std::from_chars(gang->second.data(), gang->second.data() + gang->second.size(), number);  // the core's own
  const RankRange ranks = core_.placement().range_of(id, GangId(number));
  return RosterFailure{.number = 0,
                       .mesh = id,
                       .first = Rank(ranks.first),
                       .count = ranks.count,
                       .generation = event.generation,
                       .cause = event.message};
}

// What an earlier supervisor has heard it has passed on.
void RosterDesk::pass_on(HostId host, const PostReport& report) {
  Heard& heard = heard_[host.value()];
  const bool is_first = heard.start == 0 && options_.returned.has_value();
  if (report.start < heard.start) return;  // starts are ordered: an older one has nothing to say
  if (report.start != heard.start) {
    const bool ended = !is_first && !report.before.empty() && options_.post_ended;
    if (ended && heard.budget.take(options_.now())) options_.post_ended(host, report.before);
    heard.start = report.start;
    heard.word = 0;
  }
  for (const PostWord& word : report.words) {
    if (word.number <= heard.word) continue;
    heard.word = word.number;
    if (!is_first && options_.tell_people && heard.budget.take(options_.now())) options_.tell_people(host, word);
  }
}

void RosterDesk::hear(HostId host, const PostReport& report) {
  pass_on(host, report);
  if (!is_joined(core_.facts().host(host).phase)) return;
  if (ports_.hear(host, report.port, options_.now()) != ServantPorts::Heard::kSame) changed();
  if (first_serves()) {
    for (const auto& [viewer, then] : std::exchange(waiting_, {})) then();
  }
  if (!durable_ || report.port == 0) return;
  if (report.roster_term == durable_->term && report.roster_number >= durable_->number) return;
  // It may still be on its way.
  const Sent& sent = sent_[host.value()];
  const bool on_its_way =
      sent.number == durable_->number && options_.now() < sent.at + core_.spec().supervision.heartbeat;
  if (!on_its_way) tell(host);
}

bool RosterDesk::first_serves() const {
  for (std::uint32_t i = 0; i < sent_.size(); ++i) {
    if (serves(HostId(i))) return true;
    if (may_serve(core_.facts().host(HostId(i))) && !ports_.is_gone(HostId(i))) return false;
  }
  return false;
}

void RosterDesk::when_served(std::uint64_t viewer, std::function<void()> then) {
  if (first_serves()) return then();
  waiting_.insert_or_assign(viewer, std::move(then));
}

Roster RosterDesk::take_look() const {
  std::vector<PostPlace> posts;
  for (std::uint32_t i = 0; i < sent_.size(); ++i) {
    posts.push_back({.port = ports_.port(HostId(i)), .without = ports_.is_gone(HostId(i)) ? kNoPost : ""});
  }
  return make_roster({.spec = core_.spec(),
                      .state = core_.state(),
                      .placement = core_.placement(),
                      .pool = core_.hosts(),
                      .posts = posts,
                      .failures = {failures_.begin(), failures_.end()}});
}

void RosterDesk::look() {
  looked_at_ = options_.now();
  if (!ports_.whole(looked_at_)) {
    pause_ = kLookWhole;
    return changed();
  }
  Roster now = take_look();
  now.number = newest_.number;
  if (newest_.number != 0 && now == newest_) return;
  ++now.number;
  newest_ = std::move(now);
  const auto told = std::make_shared<const Roster>(newest_);
  const std::uint64_t bytes = encode_payload(*told).size() * sent_.size();
  const auto at_rate = Duration::milliseconds(static_cast<std::int64_t>(bytes * 1'000 / kBytesPerSecond));
  pause_ = std::max(kFloor, at_rate);
  options_.when_durable([this, told] {
    durable_ = told;
    tell();
  });
}

void RosterDesk::tell() {
  for (const RosterHost& host : durable_->hosts) tell(host.peer.host);
}

void RosterDesk::tell(HostId host) {
  if (!options_.send(host, *durable_)) return;  // the next beat asks for it again
  sent_[host.value()] = {.at = options_.now(), .number = durable_->number};
  if (options_.told) options_.told(host);
}

const Roster* RosterDesk::told_to(HostId host) const {
  return durable_ && sent_[host.value()].number == durable_->number ? durable_.get() : nullptr;
}

}  // namespace monarch

#include "transport/tensor/pull.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/machine.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/tensor/registrar.h"

namespace monarch::tensor {

namespace {

LinkWays machine_alone(LinkWays ways) {
  ways.verbs = ways.tcp = false;
  return ways;
}

// Of a run for which no plan can be made, or that may not begin.
PullEnd end_of(ErrorCode planned) {
  switch (planned) {
    case ErrorCode::kNotFound: return PullEnd::kNotCovered;
    case ErrorCode::kTimeout: return PullEnd::kTimeout;
    case ErrorCode::kDevice: return PullEnd::kDevice;
    default: return PullEnd::kInvalid;
  }
}

// Half of it to three halves: who were refused together do not come together again.
Duration spread(Duration again) {
  const auto byte = static_cast<unsigned char>(random_bytes(1).front());
  return again / 2 + again * byte / 255;
}

// Within a millisecond, which poll(2) does not know.
void wait_for(std::vector<pollfd> descriptors, Instant until) {
  const Duration left = std::clamp(until - boot_now(), Duration(), Duration::seconds(1));
  const timespec time{.tv_sec = left.count_nanoseconds() / 1'000'000'000,
                      .tv_nsec = left.count_nanoseconds() % 1'000'000'000};
  (void)::ppoll(descriptors.data(), descriptors.size(), &time, nullptr);  // a signal: it is all looked at again
}

constexpr Duration kDevicesLooks = Duration::microseconds(100);  // GPUs have no descriptor
constexpr Duration kDevicesPatience = Duration::seconds(5);
constexpr std::size_t kWaitsBytes = 300;
constexpr Duration kOthersPatience = Duration::milliseconds(20);  // for gangs nearer than the first that was found

}  // namespace

Pull::Pull(PullPlace place, std::vector<PullPart> parts, std::unique_ptr<RegistrarFinder> finder, FinderWords words,
           std::unique_ptr<DeviceDestination> devices)
    : place_(std::move(place)),
      parts_(std::move(parts)),
      finder_(std::move(finder)),
      words_(std::move(words)),
      devices_(devices.get()),
      destination_(devices ? std::move(devices) : std::make_unique<Destination>()),
      verbs_destination_(place_.verbs, devices_ != nullptr ? devices_->spans() : spans_of(parts_)) {}

Pull::Pull(PullPlace place, std::string mapped, std::unique_ptr<RegistrarFinder> finder, FinderWords words)
    : place_(std::move(place)),
      maps_(std::move(mapped)),
      finder_(std::move(finder)),
      words_(std::move(words)),
      destination_(std::make_unique<Destination>()),
      verbs_destination_({}, {}) {}

const TensorKind* Pull::mapped_kind() const { return mapped() == nullptr ? nullptr : &gang_->mapped->kind; }

const char* Pull::mapped() const {
  if (gang_ == nullptr || !gang_->mapped) return nullptr;
  const auto lane = gang_->lanes.find(gang_->mapped->owner);
  const char* const slot = lane == gang_->lanes.end() ? nullptr : lane->second->mapped();
  return slot == nullptr ? nullptr : slot + gang_->mapped->offset;
}

HelloAsk Pull::ask_of(std::uint32_t rank) const {
  HelloAsk ask;
  ask.reader = place_.reader;
  ask.owner = {place_.mesh, rank, gang_->found.generation};
  ask.publication = place_.publication;
  return ask;
}

// ---- A run.

PullOutcome Pull::run(const RunOptions& options) {
  const Status may = begin_devices(options.stream);
  if (!may.ok()) return PullFailure{.how = end_of(may.error().code), .text = may.error().message};
  begin_run(options);
  while (!outcome_) {
    turn();
    say_waiting(options);
    take_events();
  }
  core_.reset();
  settle(options);
  events_.clear();
  return *std::exchange(outcome_, std::nullopt);
}

Status Pull::begin_devices(std::uint64_t stream) {
  if (devices_ == nullptr) return {};
  std::set<int> gpus;
  for (const PullPart& part : parts_) {
    if (part.device != kHostMemory && !is_empty(part.box)) gpus.insert(part.device);
  }
  return devices_->begin(gpus, stream);
}

// A version is had once the GPU has it. Where it is not to be had, what is under way has a moment to end: afterwards
// the memory that it is copied from is nobody's.
void Pull::settle(const RunOptions& options) {
  Instant give_up_at = Instant::never();
  while (devices_ != nullptr) {
    const Status went = devices_->go_on();
    const bool is_whole = std::holds_alternative<Pulled>(*outcome_);
    if (is_whole && !went.ok()) fail(PullEnd::kDevice, went.error().message);
    if (devices_->is_idle()) break;
    const Instant now = boot_now();
    const std::string words = text(place_.name(), " is here, and waits for ", devices_->waits_for());
    if (is_whole && std::exchange(cancelled_, false)) fail(PullEnd::kCancelled, text(words, "; it was cancelled"));
    if (is_whole && now >= deadline_) {
      fail(PullEnd::kTimeout, text(words, " for longer than ", to_text(deadline_ - begun_at_)));
    }
    const bool has_failed = std::holds_alternative<PullFailure>(*outcome_);
    if (has_failed && give_up_at == Instant::never()) {
      give_up_at = devices_->is_lost() ? now : now + kDevicesPatience;
    }
    if (now >= give_up_at) return devices_->give_up();
    if (now >= say_at_) {
      say_at_ = now + options.waiting_every;
      options.waiting(words);
    }
    wait_for({{words_->descriptor(), POLLIN, 0}}, now + kDevicesLooks);
    hear_finder();
  }
  if (auto* const pulled = std::get_if<Pulled>(&*outcome_)) pulled->time = boot_now() - begun_at_;
}

void Pull::fail(PullEnd how, const std::string& words) {
  failure_.how = how;
  failure_.text = words;
  outcome_ = failure_;
}

void Pull::begin_run(const RunOptions& options) {
  newer_than_ = options.newer_than;
  failure_ = {};
  begun_at_ = boot_now();
  deadline_ = options.timeout == Duration::forever() ? Instant::never() : begun_at_ + options.timeout;
  say_at_ = options.waiting ? begun_at_ + options.waiting_every : Instant::never();
  PullOptions core{.publication = place_.name(),
                   .nobody = finder_->nobody(),
                   .newer_than = {},
                   .deadline = deadline_,
                   .next_generation = options.next_generation};
  if (newer_than_) core.newer_than = VersionId{0, newer_than_->version.number};
  core_ = std::make_unique<PullCore>(std::move(core));
  cancelled_ = false;
  for (const PullAction& action : core_->begin(begun_at_)) {
    std::visit([this](const auto& one) { perform(one); }, action);
  }
  take_events();
}

void Pull::take_events() {
  while (!events_.empty() && !outcome_) {
    const PullEvent event = std::move(events_.front());
    events_.pop_front();
    for (const PullAction& action : core_->step(event, boot_now())) {
      std::visit([this](const auto& one) { perform(one); }, action);
    }
  }
}

void Pull::say_waiting(const RunOptions& options) {
  const Instant now = boot_now();
  if (now < say_at_) return;
  say_at_ = now + options.waiting_every;
  options.waiting(core_->waits_for());
}

// Waits until there is something to do.
void Pull::turn() {
  std::vector<pollfd> waiting{{words_->descriptor(), POLLIN, 0}};
  Instant due = std::min({core_->next_due(), choose_at_, say_at_});
  bool busy = false;
  if (gang_ != nullptr) {
    if (gang_->dial) {
      gang_->dial->poll_for(waiting);
      due = std::min(due, gang_->dial->next_due());
    }
    if (gang_->registrar) {
      const bool writes = gang_->registrar->wants_to_write();
      waiting.push_back({gang_->registrar->descriptor(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
    }
    for (const std::uint32_t rank : fetching_) {
      const OwnerLane& lane = *gang_->lanes.at(rank);
      lane.poll_for(waiting);
      due = std::min(due, lane.next_due());
      busy = busy || lane.is_busy();
    }
  }
  if (busy || destination_->is_idle()) {
    const int time = busy ? 0 : EventLoop::wait_milliseconds(boot_now(), due);
    (void)::poll(waiting.data(), waiting.size(), time);  // a signal: it is all looked at again
  } else {
    wait_for(std::move(waiting), std::min(due, boot_now() + kDevicesLooks));
  }
  const Status device = destination_->go_on();
  if (!device.ok()) feed(pull_event::DeviceFailed{device.error().message});
  hear_finder();
  if (!candidates_.empty() && boot_now() >= choose_at_) choose();
  go_on_registrar();
  go_on_lanes();
  if (boot_now() >= core_->next_due()) feed(pull_event::Tick{});
}

// ---- Where it is published.

void Pull::perform(const pull_action::AskCard& action) {
  // What was found before is as good as what would be found now, unless it is known to be over.
  const bool good =
      gang_ != nullptr && gang_->local > action.since && over_[gang_->found.gang] < gang_->found.generation;
  if (good) return feed(pull_event::CardCame{gang_->local});
  if (gang_ != nullptr) {
    set_over();
    failure_.generation = gang_->found.generation;
  }
  gang_.reset();
  candidates_.clear();
  choose_at_ = Instant::never();
  finder_->ask(over_);
}

void Pull::hear_finder() {
  for (FinderWord& word : words_->take_all()) {
    std::visit([this](const auto& one) { hear(one); }, word);
  }
}

void Pull::hear(const finder_word::Found& word) {
  if (gang_ != nullptr || over_[word.gang] >= word.generation) return;  // of an earlier question
  if (word.gangs == 1 || word.card.machine == place_.ways.machine) return take(word);
  candidates_.push_back(word);
  if (candidates_.size() == word.gangs) return choose();
  choose_at_ = std::min(choose_at_, boot_now() + kOthersPatience);
}

// Of gangs elsewhere each reader begins with another.
void Pull::choose() {
  const std::uint32_t gangs = candidates_.front().gangs;
  const auto distance = [&](const finder_word::Found& one) {
    return (one.gang + gangs - place_.reader.rank % gangs) % gangs;
  };
  take(*std::min_element(candidates_.begin(), candidates_.end(),
                         [&](const auto& one, const auto& other) { return distance(one) < distance(other); }));
}

void Pull::take(const finder_word::Found& found) {
  gang_ = std::make_unique<Gang>();
  gang_->local = next_local_++;
  gang_->found = found;
  locals_[gang_->local] = {found.gang, found.generation};
  candidates_.clear();  // `found` may be one of them
  choose_at_ = Instant::never();
  feed(pull_event::CardCame{gang_->local});
}

void Pull::hear(const finder_word::Lost& word) {
  if (gang_ == nullptr) feed(pull_event::CardLost{word.text, word.ended});
}

void Pull::hear(const finder_word::Over& word) {
  std::uint64_t& over = over_[word.gang];
  over = std::max(over, word.generation);
  if (gang_ == nullptr || gang_->found.gang != word.gang || gang_->found.generation > over) return;
  feed(pull_event::GenerationOver{gang_->local, word.text});
}

void Pull::hear(const finder_word::Cancelled& /*word*/) {
  cancelled_ = core_ == nullptr;
  feed(pull_event::Cancel{});
}

// ---- The registrar.

void Pull::perform(const pull_action::Link& /*action*/) {
  if (gang_->registrar) return feed(pull_event::Linked{});
  gang_->lanes.clear();
  gang_->dial = std::make_unique<WayDial>(gang_->found.card, ask_of(gang_->found.rank), place_.ways, false);
  const Status started = gang_->dial->start(boot_now());
  if (!started.ok()) failed(started.error(), gang_->found.rank);
}

void Pull::go_on_registrar() {
  if (gang_ == nullptr) return;
  if (gang_->dial) {
    auto linked = gang_->dial->go_on(boot_now());
    if (!linked.ok()) return failed(linked.error(), gang_->found.rank, gang_->dial->again());
    if (!*linked) return;
    gang_->registrar = std::move((*linked)->stream);
    gang_->waits.clear();
    gang_->dial.reset();
    feed(pull_event::Linked{});
  }
  if (gang_->registrar) hear_registrar();
}

void Pull::hear_registrar() {
  const Status sent = gang_->registrar->flush();
  if (!sent.ok()) return registrar_failed(ErrorCode::kBusy, sent.error().message);
  for (;;) {
    auto received = gang_->registrar->receive(kMostFrameLength);
    if (!received.ok()) {
      const bool ended = received.error().code != ErrorCode::kInvalid;
      return registrar_failed(ended ? ErrorCode::kBusy : ErrorCode::kInvalid, received.error().message);
    }
    if (!*received) return;
    StreamLink::Received& word = **received;
    switch (word.frame.kind) {
      case FrameKind::kOpened:
        opened(word);
        if (!gang_->registrar) return;
        break;
      case FrameKind::kOver: feed(pull_event::Over{}); break;
      case FrameKind::kUnknown: gang_->unknown = std::move(word.behind); break;
      case FrameKind::kWaits:
        gang_->unknown.clear();
        gang_->waits = printable(std::string_view(word.behind).substr(0, kWaitsBytes));
        feed(pull_event::Waits{gang_->waits});
        break;
      case FrameKind::kUnfit:
        return registrar_failed(ErrorCode::kTimeout, printable(word.behind), time_to_come_again(word.frame));
      default: return registrar_failed(ErrorCode::kInvalid, "it says what nobody has asked");
    }
  }
}

// As the registrar counts generations. Another gang's versions are of its own generations: their numbers are compared.
std::optional<VersionId> Pull::as_opened(const std::optional<VersionId>& newer_than) const {
  if (!newer_than) return std::nullopt;
  const finder_word::Found& now = gang_->found;
  Local seen{now.gang, 0};
  if (newer_than->generation == 0) {
    seen = {newer_than_->gang, newer_than_->version.generation};
  } else {
    seen = locals_.at(newer_than->generation);
  }
  return VersionId{seen.gang == now.gang ? seen.generation : now.generation, newer_than->number};
}

void Pull::perform(const pull_action::Open& action) {
  if (!gang_->registrar) return;  // it has ended since, which is told next
  failure_ = {};
  LinkFrame frame{.kind = FrameKind::kOpen};
  opens_ = as_opened(action.newer_than);
  if (opens_) {
    frame.version = *opens_;
    frame.flags |= kNewerThan;
  }
  if (gang_->index) frame.flags |= kKnowsIndex;
  if (!gang_->waits.empty()) feed(pull_event::Waits{gang_->waits});  // it is told where that changes
  const Status sent = gang_->registrar->send(frame);
  if (!sent.ok()) return registrar_failed(ErrorCode::kBusy, sent.error().message);
  hear_registrar();
}

// A run that ended while it waited for this may have asked for less than the present one: its answer comes all the
// same, and beside the present one's. An index is fixed, and lanes may be at work by the first.
void Pull::opened(StreamLink::Received& word) {
  gang_->waits.clear();
  if ((word.frame.flags & kWithIndex) != 0 && !gang_->index) {
    const Status taken = take_index(word.behind);
    if (!taken.ok()) return registrar_failed(ErrorCode::kInvalid, taken.error().message);
    const Status planned = plan();
    if (!planned.ok()) {
      gang_->index.reset();
      return feed(pull_event::Unfit{end_of(planned.error().code), planned.error().message});
    }
  }
  if (!gang_->index) return registrar_failed(ErrorCode::kInvalid, "it opens a version without its index");
  if (opens_ && VersionId{gang_->found.generation, word.frame.version.number} <= *opens_) return;
  pull_event::Opened event{.number = word.frame.version.number, .owners = {}};
  for (const auto& [rank, work] : gang_->work.by_owner) event.owners.insert(rank);
  feed(std::move(event));
}

Status Pull::plan() {
  if (!maps_) {
    PlanBudget budget{.is_over = [this] { return boot_now() >= deadline_; }};
    MONARCH_ASSIGN(gang_->work, make_work(*gang_->index, gang_->cards, place_, parts_, budget));
    return {};
  }
  MONARCH_ASSIGN(gang_->mapped, find_mapped(*gang_->index, gang_->cards, place_, *maps_));
  const MappedTensor& mapped = *gang_->mapped;
  gang_->work.by_owner[mapped.owner].slot_bytes = mapped.offset + mapped.bytes;
  return {};
}

Status Pull::take_index(std::string_view word) {
  OpenedWord opened;
  codec::DecodeError error;
  if (!codec::decode(word, opened, error, kIndexLimits)) {
    return Error{ErrorCode::kInvalid, unreadable(opened.index, error)};
  }
  MONARCH_TRY(check_index(opened.index));
  for (const OwnerCard& owner : opened.cards.list) {
    MONARCH_ASSIGN(gang_->cards[owner.rank], parse_card(owner.card.data));
  }
  for (const TensorPart& part : opened.index.parts) {
    if (!gang_->cards.contains(part.owner)) return Error{ErrorCode::kInvalid, "its index has owners without a card"};
  }
  gang_->index = std::move(opened.index);
  return {};
}

// ---- Owners.

void Pull::perform(const pull_action::Fetch& action) {
  auto& lane = gang_->lanes[action.owner];
  if (lane == nullptr) {
    lane = std::make_unique<OwnerLane>(gang_->cards.at(action.owner), ask_of(action.owner),
                                       maps_ ? machine_alone(place_.ways) : place_.ways, *destination_,
                                       verbs_destination_, maps_.has_value());
  }
  lane->begin({gang_->found.generation, action.number}, gang_->work.by_owner.at(action.owner));
  fetching_.insert(action.owner);
  begun_.insert(action.owner);
}

void Pull::go_on_lanes() {
  if (gang_ == nullptr) return;
  const std::set<std::uint32_t> all = fetching_;
  for (const std::uint32_t rank : all) {
    OwnerLane& lane = *gang_->lanes.at(rank);
    const Status went = lane.go_on(boot_now());
    if (!went.ok()) return failed(went.error(), rank, lane.again());
    if (!lane.word()) continue;
    fetching_.erase(rank);
    feed(pull_event::Fetched{rank});
  }
}

void Pull::perform(const pull_action::LookAtWord& action) {
  const auto word = gang_->lanes.at(action.owner)->word();
  MONARCH_ASSERT(word.has_value());
  feed(pull_event::Word{action.owner, *word});
}

void Pull::perform(const pull_action::SayRead& action) {
  const VersionId version{gang_->found.generation, action.number};
  for (const std::uint32_t rank : begun_) {
    const auto lane = gang_->lanes.find(rank);
    if (lane != gang_->lanes.end()) lane->second->say_read(version, action.whole);
  }
  if (!gang_->registrar) return;
  // Who wants nothing, and asks what there is, has not had it.
  const std::uint16_t flags = action.whole && (maps_ || !parts_.empty()) ? kWhole : std::uint16_t{0};
  // Where that is not heard the link has ended, which is heard as well.
  if (!gang_->registrar->send({.kind = FrameKind::kRead, .flags = flags, .version = version}).ok()) return;
  (void)gang_->registrar->flush();
}

void Pull::perform(const pull_action::Stop& action) {
  for (const std::uint32_t rank : begun_) {
    const auto lane = gang_->lanes.find(rank);
    if (lane != gang_->lanes.end()) lane->second->stop();
  }
  begun_.clear();
  fetching_.clear();
  if (gang_ != nullptr) gang_->dial.reset();
  if (gang_ != nullptr && action.links) gang_->lanes.clear();
  feed(pull_event::Stopped{});
}

// ---- Ends.

void Pull::failed(const Error& error, std::optional<std::uint32_t> rank, std::optional<Duration> again) {
  failure_.rank = rank;
  failure_.lane.reset();
  if (rank) {
    const auto lane = gang_->lanes.find(*rank);
    if (lane != gang_->lanes.end()) failure_.lane = lane->second->kind();
  }
  drop_links();
  if (again) return feed(pull_event::Full{error.message, spread(*again)});
  switch (error.code) {
    case ErrorCode::kGone: return feed(pull_event::OwnerGone{error.message});
    case ErrorCode::kBusy: return feed(pull_event::LinkEnded{error.message});
    default: return feed(pull_event::Unreached{error.message});
  }
}

void Pull::registrar_failed(ErrorCode code, const std::string& words, std::optional<Duration> again) {
  failed({code, text(ask_of(gang_->found.rank).owner.name(), ": ", words)}, gang_->found.rank, again);
}

void Pull::set_over() {
  std::uint64_t& over = over_[gang_->found.gang];
  over = std::max(over, gang_->found.generation);
}

// Whoever it was: all are linked anew. Lanes stay until they have stopped.
void Pull::drop_links() {
  gang_->dial.reset();
  gang_->registrar.reset();
  fetching_.clear();
}

void Pull::perform(const pull_action::End& action) {
  finder_->stop_asking();
  if (action.how == PullEnd::kOk) {
    Pulled pulled{.version = {gang_->found.gang, {gang_->found.generation, action.version.number}},
                  .bytes = gang_->work.bytes,
                  .time = boot_now() - begun_at_};
    for (const auto& [rank, work] : gang_->work.by_owner) {
      const OwnerLane& lane = *gang_->lanes.at(rank);
      switch (*lane.kind()) {
        case LaneKind::kShm: ++pulled.by_shm; continue;
        case LaneKind::kVerbs: ++pulled.by_verbs; break;
        case LaneKind::kTcp:
          if (pulled.by_tcp++ == 0) pulled.why_not_verbs = lane.why_not_verbs();
          break;
      }
      if (pulled.by_verbs + pulled.by_tcp == 1) pulled.why_not_shm = lane.why_not_shm();
    }
    outcome_ = pulled;
    return;
  }
  failure_.how = action.how;
  failure_.text = action.text;
  // It may have been found anew since, while it was asked how the one before had ended.
  const bool is_of_gang = gang_ != nullptr && gang_->local == action.version.generation;
  if (is_of_gang) failure_.generation = gang_->found.generation;
  if (action.how == PullEnd::kTimeout && gang_ != nullptr && !gang_->unknown.empty()) {
    std::vector<std::string> names;
    for (std::string_view left = gang_->unknown; !left.empty();) {
      const std::size_t end = std::min(left.find('\n'), left.size());
      names.emplace_back(printable(left.substr(0, end)));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    failure_.text = text(place_.mesh, " does not publish ", printable(place_.publication), " within ",
                         to_text(deadline_ - begun_at_), nearest_or_all(place_.publication, names));
  }
  // A generation that has ended is not asked again: the next run begins with its successor.
  if (action.how == PullEnd::kPeerGone && is_of_gang) {
    set_over();
    gang_.reset();
  }
  outcome_ = failure_;
}

}  // namespace monarch::tensor

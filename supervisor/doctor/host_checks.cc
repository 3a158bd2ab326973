#include "supervisor/doctor/host_checks.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "supervisor/doctor/host_errand.h"
#include "supervisor/doctor/host_requests.h"
#include "supervisor/doctor/lot.h"
#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "supervisor/launch/ssh/ssh_access.h"
#include "supervisor/launch/ssh/ssh_pool.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/limits.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/process/door.h"

namespace monarch::doctor {

namespace {

constexpr Duration kDoorPatience = Duration::seconds(4);  // two lost packets
constexpr Duration kLifeBeyond = Duration::seconds(10);   // of a check whose doctor is gone
constexpr std::size_t kReportsPerHost = 8;

std::string random_word() { return to_hex(random_bytes(16)); }

class HostChecks {
 public:
  static Result<std::unique_ptr<HostChecks>> create(const JobSpec& spec, const HostChecksOptions& options) {
    MONARCH_TRY(load_libssh());
    std::unique_ptr<HostChecks> checks(new HostChecks(spec, options));
    MONARCH_ASSIGN(checks->access_, ssh_access(spec, options.user, options.worker_path));
    for (const SshLauncherHost& host : checks->access_.hosts) {
      checks->hosts_.push_back({.name = host.name, .route = host.route});
    }
    checks->words_ = {random_word(), random_word()};
    checks->open_doors();  // they fork: before there is a thread
    MONARCH_ASSIGN(checks->loop_, EventLoop::create());
    checks->time_.emplace(*checks->loop_);
    checks->patience_.emplace(*checks->loop_);
    auto on_report = [self = checks.get()](Report report) { self->on_report(std::move(report)); };
    MONARCH_ASSIGN(checks->reports_,
                   WatchedInbox<Report>::create(*checks->loop_, kReportsPerHost * checks->hosts_.size(), on_report));
    MONARCH_ASSIGN(checks->pool_,
                   SshPool::create(*checks->loop_, {.parallel = checks->lot_size() * 2,  // late ones beside a lot
                                                    .seed = static_cast<std::uint64_t>(::getpid())}));
    return checks;
  }
  HostChecks(const HostChecks&) = delete;
  HostChecks& operator=(const HostChecks&) = delete;

  std::vector<HostSeen> run() {
    began_ = boot_now();
    time_->start(FairDeadline(options_.deadline, began_), [this](const std::string& late) { give_up(late); });
    name_missing_later();
    start_lot();
    loop_->run();
    pool_.reset();  // joins the threads; what has not left by then is cancelled
    return std::move(hosts_);
  }

 private:
  using Phase = LotMember::Phase;
  using Round = LotRound;
  using Member = LotMember;

  HostChecks(const JobSpec& spec, const HostChecksOptions& options) : spec_(spec), options_(options) {}

  // Hosts of one lot have their sessions at the same time.
  std::uint32_t lot_size() const { return std::max<std::uint32_t>(access_.parallel, 2); }

  // As a supervisor listens: two ports of control.ports, else any.
  void open_doors() {
    if (spec_.control.via == ControlVia::kSsh || spec_.supervised_away()) return;  // loopback alone; not here
    const std::optional<PortSpan>& span = spec_.control.ports;
    const std::size_t wanted = span ? 2 : 1;
    std::uint16_t first = span ? span->first : std::uint16_t{0};
    while (doors_.size() < wanted) {
      auto door = Door::open(words_, first, span ? span->last : std::uint16_t{0});
      if (!door.ok()) {
        no_doors_because_ = text("control.ports: ", door.error().message, " on this machine");
        return;
      }
      if (span) first = static_cast<std::uint16_t>(std::min<unsigned>((*door)->port() + 1U, span->last));
      doors_.push_back(std::move(*door));
    }
  }

  void start_lot() {
    lot_.clear();
    round_ = Round::kLook;
    lot_began_ = boot_now();
    if (anchor_ && !is_late(*anchor_)) add_member(*anchor_);
    while (lot_.size() < lot_size() && next_ < hosts_.size()) add_member(next_++);
    of_late_ones_ =
        lot_.size() <= 1 && !again_.empty();  // once all others are done: they keep nobody waiting but each other
    while (of_late_ones_ && lot_.size() < lot_size() && !again_.empty()) {
      add_member(again_.front());
      again_.pop_front();
    }
    for (Member& member : lot_) submit(member);
    loop_->defer([this] { go_on(); });  // it may be that none could be asked
  }

  void add_member(std::size_t host) {
    auto orders = Orders::create(kReportsPerHost);
    Member member{.host = host};
    if (orders.ok()) {
      member.orders = std::move(*orders);
    } else {
      hosts_[host].failure = LaunchFailure{.phase = "connect", .message = orders.error().message};
      member.phase = Phase::kOver;
    }
    lot_.push_back(std::move(member));
  }

  void submit(Member& member) {
    if (member.phase == Phase::kOver) return;
    member.phase = Phase::kBusy;
    const std::size_t host = member.host;
    Errand errand{.host = host,
                  .began = boot_now(),
                  .order = access_.order(RemotePurpose::kCheck),
                  .image = access_.image,
                  .look = look_request(spec_, host),
                  .address = spec_.control.address,
                  .tunnel = spec_.control.via == ControlVia::kSsh,
                  .calls_here = !spec_.supervised_away(),
                  .route = hosts_[host].route,
                  .no_doors_because = no_doors_because_,
                  .reports = &reports_->inbox(),
                  .orders = member.orders.get()};
    for (const auto& door : doors_) errand.ports.push_back(door->port());
    prepare(errand.look);
    (void)pool_->submit({.route = hosts_[host].route,
                         .talk = [this, host, errand](SshSession& session, int cancel) -> std::function<void()> {
                           run_errand(errand, session, cancel);
                           return [this, host] { on_over(host); };
                         },
                         .on_failed =
                             [this, host](LaunchFailure failure) {
                               hosts_[host].failure = std::move(failure);
                               on_over(host);
                             }});
  }

  void prepare(CheckRequest& request) const {
    request.words = words_;
    request.patience = kDoorPatience;
    request.life = time_->until() - boot_now() + kLifeBeyond;
  }

  // A host is in one of them: late ones come back only when their session is over, and then they are forgotten here.
  Member* member_of(std::size_t host) {
    for (std::vector<Member>* among : {&lot_, &late_}) {
      const auto found = std::find_if(among->begin(), among->end(), [host](const Member& m) { return m.host == host; });
      if (found != among->end()) return &*found;
    }
    return nullptr;
  }
  bool is_late(std::size_t host) const {
    return std::any_of(late_.begin(), late_.end(), [host](const Member& m) { return m.host == host; });
  }

  void wait_no_longer_than(Duration patience) {
    patience_->start(FairDeadline(patience, boot_now()), [this](const std::string&) { leave_behind(); });
  }

  void leave_behind() {
    for (auto member = lot_.begin(); member != lot_.end();) {
      if (member->phase != Phase::kBusy) {
        ++member;
        continue;
      }
      late_.push_back(std::move(*member));
      member = lot_.erase(member);
    }
    go_on();
  }

  void on_report(Report report) {
    Member* member = member_of(report.host);
    HostSeen& seen = hosts_[report.host];
    MONARCH_ASSERT(member != nullptr);
    if (auto* failure = std::get_if<LaunchFailure>(&report.outcome)) {
      failure->again = reproducer(seen.route);
      if (!seen.failure) seen.failure = std::move(*failure);
      return;  // the end of its session follows
    }
    TimedAnswer& timed = std::get<TimedAnswer>(report.outcome);
    member->phase = Phase::kIdle;
    const bool looked = member->asked == Round::kLook;
    if (looked) note_look(*member, seen, report, timed);
    note_answer(seen, timed.answer);
    if (is_late(report.host)) return send_away(*member);
    if (looked && !patience_->runs()) {
      wait_no_longer_than(
          std::max(of_late_ones_ ? kLatePatience : kLookPatience, (boot_now() - lot_began_) * kLookShare));
    }
    go_on();
  }

  void send_away(Member& member) {
    if (member.asked == Round::kLook && !was_late_.contains(member.host)) again_.push_back(member.host);
    was_late_.insert(member.host);
    member.phase = Phase::kBusy;
    member.asked = Round::kLeave;
    MONARCH_ASSERT(member.orders->put(std::nullopt));
  }

  void note_look(Member& member, HostSeen& seen, const Report& report, TimedAnswer& timed) const {
    CheckAnswer& answer = timed.answer;
    if (answer.facts) member.door = {.name = seen.name, .address = answer.facts->address, .port = answer.door};
    if (member.door.address.empty()) member.door.port = 0;
    if (seen.facts) {  // asked again, for the others' sake
      answer.calls.clear();
      answer.folders.clear();
      answer.programs.clear();
      return;
    }
    seen.reached_after = report.reached_after;
    seen.copied = report.copied;
    seen.no_call_back_because = report.no_call_back_because;
    seen.tunnel = report.tunnel;
    seen.clock = clock_sample(timed.left, answer.received, answer.answered, timed.came);
    seen.facts = std::move(answer.facts);
    seen.no_door_because = answer.error;
    seen.call_back = std::exchange(answer.calls, {});
    seen.folders = std::move(answer.folders);
    seen.programs = std::move(answer.programs);
  }

  void note_answer(HostSeen& seen, CheckAnswer& answer) {
    for (DoorReached& each : answer.calls) seen.neighbours.push_back(std::move(each));
    for (TokenFound& each : answer.written) seen.written.push_back(std::move(each));
    for (TokenFound& each : answer.read) {
      const auto token = std::find_if(tokens_.begin(), tokens_.end(),
                                      [&each](const WrittenToken& t) { return t.order.folder == each.folder; });
      if (token == tokens_.end()) continue;  // the host made it up
      seen.tokens.push_back(
          {.writer = hosts_[token->writer].name, .expected = token->order.content, .found = std::move(each)});
    }
  }

  void on_over(std::size_t host) {
    // Its last words came before its end.
    for (Report& report : reports_->inbox().take_all()) on_report(std::move(report));
    Member* member = member_of(host);
    MONARCH_ASSERT(member != nullptr);
    member->phase = Phase::kOver;
    if (is_late(host)) std::erase_if(late_, [host](const Member& m) { return m.host == host; });
    go_on();
  }

  bool all(Phase one, Phase other) const {
    return std::all_of(lot_.begin(), lot_.end(), [=](const Member& m) { return m.phase == one || m.phase == other; });
  }

  // To the next round once everybody has answered; a round in which nobody is asked anything is over at once.
  void go_on() {
    while (round_ != Round::kLeave && all(Phase::kIdle, Phase::kOver)) next_round();
    if (round_ != Round::kLeave || !all(Phase::kOver, Phase::kOver)) return;
    patience_->stop();
    const bool waits = std::any_of(again_.begin(), again_.end(), [this](std::size_t host) { return is_late(host); });
    if (next_ < hosts_.size() || (!again_.empty() && !waits)) return start_lot();
    if (late_.empty()) loop_->stop();
  }

  void next_round() {
    std::vector<Present> present;
    for (const Member& member : lot_) {
      if (member.phase == Phase::kIdle) present.push_back({member.host, member.door});
    }
    round_ = static_cast<Round>(static_cast<std::uint8_t>(round_) + 1U);
    wait_no_longer_than(kRoundPatience);
    std::vector<Order> orders(present.size());
    if (round_ == Round::kMeet) {
      orders = meet_requests(spec_, present, hosts_, token_name());
      remember_tokens(present, orders);
      if (!anchor_ && !present.empty()) anchor_ = present.front().host;
    }
    if (round_ == Round::kRead) orders = read_requests(present, hosts_, tokens_);
    for (std::size_t i = 0; i < present.size(); ++i) {
      if (!orders[i] && round_ != Round::kLeave) continue;
      if (orders[i]) prepare(*orders[i]);
      Member* member = member_of(present[i].host);
      member->phase = Phase::kBusy;
      member->asked = round_;
      MONARCH_ASSERT(member->orders->put(std::move(orders[i])));  // one at a time
    }
  }

  std::string token_name() const {
    return text(kTokenPrefix, wall_now().nanoseconds_since_epoch / 1'000'000'000, "-", words_.word.substr(0, 16), "-",
                next_);
  }

  void remember_tokens(const std::vector<Present>& present, const std::vector<Order>& orders) {
    tokens_.clear();
    for (std::size_t i = 0; i < present.size(); ++i) {
      if (!orders[i]) continue;
      for (const TokenOrder& order : orders[i]->write) tokens_.push_back({present[i].host, order});
    }
  }

  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (const auto* among : {&late_, &lot_}) {
      for (const Member& member : *among) {
        if (member.phase == Phase::kBusy) names.push_back(hosts_[member.host].name);
      }
    }
    for (std::size_t i = next_; i < hosts_.size(); ++i) names.push_back(hosts_[i].name);
    return names;
  }

  void name_missing_later() {
    loop_->at(loop_->now() + limits::kNamesMissingEvery, [this] {
      options_.on_waiting(missing());
      name_missing_later();
    });
  }

  void give_up(const std::string& late) {
    const auto is_silent = [&late](HostSeen& host) {
      host.silent = true;
      host.late = late;
    };
    for (const auto* among : {&late_, &lot_}) {
      for (const Member& member : *among) {
        if (member.phase == Phase::kBusy && member.asked != Round::kLeave) is_silent(hosts_[member.host]);
      }
    }
    for (std::size_t i = next_; i < hosts_.size(); ++i) is_silent(hosts_[i]);
    loop_->stop();
  }

  const JobSpec& spec_;
  const HostChecksOptions& options_;
  std::vector<HostSeen> hosts_;
  SshAccess access_;
  DoorWords words_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::string no_doors_because_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<WatchedInbox<Report>> reports_;
  std::vector<Member> lot_;   // under way; outlives the threads, which read their orders from it
  std::vector<Member> late_;  // of earlier lots, and so do these
  std::unique_ptr<SshPool> pool_;
  Instant began_;
  Round round_ = Round::kLook;
  Instant lot_began_;
  bool of_late_ones_ = false;
  std::optional<FairTimer> time_;      // of all
  std::optional<FairTimer> patience_;  // of the round
  std::deque<std::size_t> again_;      // hosts that were late, for another lot
  std::set<std::size_t> was_late_;     // which happens once
  std::size_t next_ = 0;               // host that has not been in a lot
  std::optional<std::size_t> anchor_;  // the first that answered
  std::vector<WrittenToken> tokens_;   // of this lot
};

}  // namespace

Result<std::vector<HostSeen>> look_at_hosts(const JobSpec& spec, const HostChecksOptions& options) {
  MONARCH_ASSIGN(auto checks, HostChecks::create(spec, options));
  return checks->run();
}

}  // namespace monarch::doctor

// Who is told of an event, what machines hand on, and who is looked after: in which order, and why.

#include <utility>

#include "supervisor/core/job/job_core.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of one step. Two or three are usual; a chain may have as many as there are hosts.
constexpr std::size_t kMostRounds = 100'000;

template <class Part, class Event>
concept Takes = requires(Part& part, const Event& event) {
  part.on(event);
};

template <class Part, class Event>
void give(Part& part, const Event& event) {
  if constexpr (Takes<Part, Event>) part.on(event);
}

// False: there was nothing to do.
template <class List, class Act>
bool done(const List& list, Act act) {
  for (const auto& one : list) act(one);
  return !list.empty();
}

}  // namespace

// Each part that takes it, in this order: who knows what it is about, before who decides what follows.
template <class Event>
void JobCore::hear(const Event& event) {
  constexpr bool mine = requires { on(event); };
  static_assert(mine || Takes<Drills, Event> || Takes<Ending, Event> || Takes<CoreHosts, Event> ||
                    Takes<Gangs, Event> || Takes<Wishes, Event> || Takes<Starts, Event> || Takes<Claims, Event>,
                "each event is somebody's");
  give(drills_, event);
  give(end_, event);
  give(hosts_, event);
  settle();
  give(adoption_, event);
  give(gangs_, event);
  give(starts_, event);
  give(standbys_, event);
  give(wishes_, event);
  give(claims_, event);
  if constexpr (mine) on(event);
  settle();
  if (wishes_.take_forgiven()) slots_.forgive();
  if (wishes_.take_asked()) look_at_hosts();
}

std::vector<Action> JobCore::step(const CoreEvent& event, Instant now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& e) { hear(e); }, event);
  std::size_t before = 0;
  std::size_t rounds = 0;
  do {
    MONARCH_ASSERT_BECAUSE(++rounds < kMostRounds, "what is done for those who wait comes to an end");
    // Whatever was done may be what others waited for, also what was done for these.
    waits_due_ = waits_due_ || actions_.size() > before;
    before = actions_.size();
    look_at_waits();
    adoption_.look();
    look_at_end();
    tend_beside();
  } while (waits_due_ || actions_.size() > before);
  gangs_.end_step();
  reminders_.tend();
  return std::move(actions_);
}

// Beside the gangs, which have their own.
void JobCore::on(const RankChanged& event) {
  if (basis_.has_rank(event.report.process.rank) || !judge(basis_, event.host, event.report).counts()) return;
  const CrewPlace place = *crew_of(spec_, event.report.process.rank);
  const bool lived = lives(crews_.at(place.key).members[place.index].stage);
  if (lived && event.report.phase == RankPhase::kWedged) hosts_.wedged(event, crews_.name_of(place.key));
  const bool prepares = place.key.mesh == prepare_mesh(spec_);
  prepares ? preparations_.heard(place, event.report) : standbys_.heard(place, event.host, event.report);
}

// Until nothing is left. Who is lost comes first: what follows may have been decided with hosts that are gone.
void JobCore::settle() {
  const auto give_up = [this](HostId id) { hosts_.give_up(id); };
  bool more = true;
  while (std::exchange(more, false)) {
    more = done(hosts_.take_news(), [this](const HostNews& news) { take(news); }) || more;
    more = done(gangs_.take_placed(), [this](const PlacedGang& gang) { standbys_.is_placed(gang); }) || more;
    more = done(standbys_.take_left(), [this](GangOf gang) { gangs_.give_up_reservation(gang.first, gang.second); }) ||
           more;
    more = done(preparations_.take_stuck(), give_up) || more;
    more = done(standbys_.take_stuck(), give_up) || more;
    more = done(gangs_.take_waiting(), [this](GangOf gang) { standby_takes(gang.first, gang.second); }) || more;
  }
  // A gang may have waited for these hosts.
  const bool freed = preparations_.take_freed();
  waits_due_ = standbys_.take_freed() || freed || waits_due_;
}

void JobCore::take(const HostNews& news) {
  switch (news.what) {
    case HostNews::What::kLost: return gangs_.lose_host(news.host, news.silence);
    case HostNews::What::kDecides: return gangs_.decide_causes_within(news.host, news.within);
    case HostNews::What::kGone: break;
  }
  preparations_.lose(news.host);
  standbys_.lose(news.host);
  gangs_.host_gone(news.host);
}

// The gang has failed, nothing of it lives, and it is to be started again: on the hosts of one that waits. Its hosts
// become spares.
void JobCore::standby_takes(MeshId mesh, GangId g) {
  const std::optional<std::uint32_t> standby = standbys_.ready_for(mesh);
  if (standby && slots_.may_give(mesh, g)) {
    slots_.give(mesh, g, standbys_.give(mesh, *standby, g), text("standby ", *standby));
  }
}

// A host at a time: what becomes of one may decide about the next.
void JobCore::look_at_hosts() {
  standbys_.look_at_times();
  settle();
  preparations_.look_at_times();
  settle();
  last_words_.look_at_times();
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    hosts_.look_at_time(HostId(i));
    settle();
  }
  hosts_.look_at_late();
}

// Whoever waits for a host, for others or for a time is looked at until nothing comes of it: the start of a gang may
// find that a host lacks what it needs, which is out then.
void JobCore::look_at_waits() {
  while (std::exchange(waits_due_, false)) {
    looked_at_ = now_;
    slots_.fill();
    settle();
    starts_.look();
    settle();
  }
}

// What follows from how far the job is: stages stop one after the other, then output is awaited, then workers end.
void JobCore::look_at_end() {
  end_.look_running();
  end_.look_done();
  if (end_.take_nothing_starts()) {
    // Of what will not be started: a spare's warming, standbys, and what hosts hold for gangs.
    stop_beside();
    basis_.each_gang([this](MeshId m, GangId g) { gangs_.give_up_reservation(m, g); });
  }
  while (end_.take_stop() || (state_.phase == JobPhase::kStopping && gangs_.is_stage_due())) {
    stop_beside();
    gangs_.stop_highest();
  }
  settle();
  end_.look_drained();
  if (end_.take_shut_down()) hosts_.shut_down();
  if (end_.take_kill()) {
    for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) hosts_.destroy(HostId(i));
  }
  end_.finish();
}

void JobCore::tend_beside() {
  if (state_.phase == JobPhase::kNew || basis_.starts_nothing()) return;
  preparations_.tend();
  settle();
  standbys_.tend();
  settle();
}

void JobCore::stop_beside() {
  preparations_.stop_all();
  standbys_.stop_all();
  settle();
}

}  // namespace monarch

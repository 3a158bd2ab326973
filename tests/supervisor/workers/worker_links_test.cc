// What a worker's last word and a copied output make of a job: each once, and of the host that said it.

#include "supervisor/workers/worker_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "tests/transport/zmq/zmq_lab.h"
#include "transport/base/clock.h"
#include "transport/messages/describe_end.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

const RankId kFirst{MeshId(0), Rank(0)};
const RankId kOfOther{MeshId(0), Rank(1)};

// A job of two hosts with a rank each that runs; `says()` is what comes over a host's link.
class Links {
 public:
  explicit Links(bool copies = true, const JobSpec& spec = fixtures::job_of(2, 1)) : driver_(spec) {
    lab_.bind();
    driver_.run_all();
    take_over(copies);
  }

  // By a supervisor that knows what was decided, and has heard nothing.
  void take_over(bool copies = false) {
    BeatBookHandlers beats{.decide =
                               [this](const CoreEvent& event) {
                                 driver_.step(event);
                                 if (const auto* change = std::get_if<RankChanged>(&event))
                                   changes.push_back(change->report);
                                 return ++ticket_;
                               },
                           .is_durable = [](std::uint64_t) { return true; },
                           .all_durable = [this] { return durable; },
                           .on_warned =
                               [this](HostId host) {
                                 warned.push_back({host, changes.size()});
                               },
                           .has_successor = [this] { return successor; },
                           .on_superseded = [this](Term term) { superseded.push_back(term); }};
    if (copies) beats.on_written = [this](const RankReport& report) { written.push_back(report); };
    WorkerLinksHandlers handlers{
        .beats = std::move(beats),
        .on_vault = [this](HostId host, const VaultReport& report) { vaults.emplace_back(host, report); },
        .on_goodbye = [this](HostId host, const Goodbye& word) { goodbyes.emplace_back(host, word.orderly); }};
    links =
        std::make_unique<WorkerLinks>(*lab_.events, *lab_.server, driver_.core, Term(1), "here", std::move(handlers));
  }

  template <class Message>
  void says(HostId host, const Message& message, JobUuid job = {}) {
    says(host, number_of<Message>(), encode_payload(message), job);
  }
  void says(HostId host, std::uint16_t type, const std::string& payload, JobUuid job = {}, Term term = Term(1)) {
    FrameHeader header;
    header.type = type;
    header.job = job;
    header.term = term;
    const LinkId link = link_of_first_ && host == HostId(0) ? *link_of_first_ : LinkId{host.value() + 1};
    InboundMessage message{.link = link, .user_id = user_id_of(host), .frames = {}};
    message.frames.push_back(ZmqFrame::copy(encode_header(header)));
    message.frames.push_back(ZmqFrame::copy(payload));
    links->on_message(std::move(message));
  }
  RankReport ended(RankId rank, bool complete) const {
    RankReport report = driver_.report_of(rank, RankPhase::kEnded, fixtures::exited(0));
    report.output_complete = complete;
    report.stdout_bytes = 7;
    return report;
  }
  void beats(HostId host, const RankReport& report) {
    says(host, Beat{.seq = ++seq_, .sent_at = boot_now(), .content = {.ranks = {report}}});
  }
  // From now on the first host has a link of its own, over which the answer to a beat comes.
  void dial() {
    const CurveKeyPair keys = key_pair();
    lab_.allow({{keys.public_key, user_id_of(HostId(0))}});
    client_ = lab_.client(keys);
    ASSERT_TRUE(lab_.until([&] { return client_->saw(ClientEvent::kConnected); }));
    ASSERT_TRUE(client_->send("here").ok());
    ASSERT_TRUE(lab_.until([&] { return lab_.from(user_id_of(HostId(0))) != nullptr; }));
    link_of_first_ = lab_.from(user_id_of(HostId(0)))->link;
  }
  // The payload of the first message of that type that the first host gets.
  std::string received(std::uint16_t type) {
    std::string payload;
    EXPECT_TRUE(lab_.until([&] {
      for (std::size_t i = 0; i + 1 < client_->messages.size() && payload.empty(); i += 2) {
        const auto header = decode_header(client_->messages[i]);
        if (header.ok() && header->type == type) payload = client_->messages[i + 1];
      }
      return !payload.empty();
    }));
    return payload;
  }
  // What the first host is told to forget once it has said this.
  std::vector<Incarnation> forgotten_after(const RankReport& report) {
    client_->messages.clear();
    beats(HostId(0), report);
    EXPECT_TRUE(lab_.until([&] { return client_->messages.size() >= 2; }));
    const auto ack = decode_payload<Ack>(client_->messages.at(1));
    EXPECT_TRUE(ack.ok());
    return ack.ok() ? ack->forget : std::vector<Incarnation>();
  }
  fixtures::Driver& driver() { return driver_; }
  bool until(const std::function<bool()>& done) { return lab_.until(done); }
  const CrewMember& member(RankId rank) const { return driver_.core.facts().member(rank); }

  std::vector<std::pair<HostId, bool>> goodbyes;
  std::vector<std::pair<HostId, VaultReport>> vaults;
  std::vector<RankReport> changes;
  std::vector<std::pair<HostId, std::size_t>> warned;  // and how much of ranks was known by then
  std::vector<RankReport> written;
  std::vector<Term> superseded;
  bool successor = false;  // as the job's folder says
  bool durable = true;     // everything that was decided

 private:
  ZmqLab lab_;
  fixtures::Driver driver_;
  std::uint64_t ticket_ = 0;
  std::uint64_t seq_ = 0;
  std::unique_ptr<RecordedClient> client_;
  std::optional<LinkId> link_of_first_;

 public:
  std::unique_ptr<WorkerLinks> links;  // ends before the loop that it has timers in
};

// An exit code says all; a reason beside it is a sentence of ours.
TEST(WorkerLinks, TellNoSentenceOfAHostAsOurs) {
  Links job(false);
  RankReport report = job.ended(kFirst, true);
  report.end = fixtures::exited(3);
  report.end.detail = "exit code 0, and the disk of v2 is broken";
  job.beats(HostId(0), report);
  ASSERT_EQ(job.changes.size(), 1U);
  EXPECT_EQ(describe_end(job.changes[0].end), "exit code 3");
  RankReport other = job.ended(kOfOther, true);
  other.end = {.kind = EndKind::kNotExecuted, .value = 2, .detail = "exec /bin/none"};
  job.beats(HostId(1), other);
  ASSERT_EQ(job.changes.size(), 2U);
  EXPECT_EQ(describe_end(job.changes[1].end), "could not be executed: exec /bin/none: No such file or directory");
}

TEST(WorkerLinks, TellOfAWarningOnceAndBeforeWhatTheSameBeatSaysOfRanks) {
  Links job;
  const RankReport report = job.ended({MeshId(0), Rank(0)}, true);
  job.says(HostId(0), Beat{.seq = 1, .sent_at = boot_now(), .content = {.ranks = {report}, .warnings = 1}});
  job.says(HostId(0), Beat{.seq = 2, .sent_at = boot_now(), .content = {.ranks = {report}, .warnings = 1}});
  const std::vector<std::pair<HostId, std::size_t>> expected = {{HostId(0), 0U}};
  EXPECT_EQ(job.warned, expected);
  EXPECT_EQ(job.changes.size(), 1U);
}

// Two hosts and a spare, whose time is short.
JobSpec job_of_short_times() {
  JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  spec.supervision.lease = spec.supervision.lost_after = Duration::milliseconds(20);
  return spec;
}
const std::string kBeat = encode_payload(Beat{});

TEST(WorkerLinks, CutOffAHostThatIsAloneWithALaterTerm) {
  Links job(false, job_of_short_times());
  for (int i = 0; i < 3; ++i) job.says(HostId(0), number_of<Beat>(), kBeat, {}, Term(99));
  EXPECT_EQ(job.links->drops().later_term, 3U);
  ASSERT_TRUE(job.until([&] { return !job.driver().told(EventKind::kHostQuarantined).empty(); }));
  EXPECT_TRUE(job.superseded.empty());
  EXPECT_EQ(job.driver().told(EventKind::kHostQuarantined).front(),
            "v1: it speaks for a supervisor of term 99, of which nobody else has heard (this is term 1): it is left "
            "for good");
  EXPECT_EQ(job.driver().host(0).standing, HostStanding::kQuarantined);
  EXPECT_EQ(job.driver().core.placement().host_of(kFirst), HostId(2)) << "a spare is in its place";
  // It goes on with it: that is counted, and costs no record.
  const std::size_t records = job.driver().history.size();
  for (int i = 0; i < 3; ++i) job.says(HostId(0), number_of<Beat>(), kBeat, {}, Term(100));
  EXPECT_EQ(job.links->drops().later_term, 6U);
  EXPECT_EQ(job.driver().history.size(), records);
}

TEST(WorkerLinks, BelieveInASuccessorOfWhichMostHostsHaveHeard) {
  Links job(false, job_of_short_times());
  job.says(HostId(0), number_of<Beat>(), kBeat, {}, Term(2));
  EXPECT_TRUE(job.superseded.empty()) << "one of three";
  job.says(HostId(1), number_of<Beat>(), kBeat, {}, Term(2));
  EXPECT_EQ(job.superseded, std::vector{Term(2)});
}

TEST(WorkerLinks, BelieveInASuccessorThatTheJobsFolderNames) {
  Links job(false, job_of_short_times());
  job.successor = true;
  job.says(HostId(0), number_of<Beat>(), kBeat, {}, Term(2));
  EXPECT_EQ(job.superseded, std::vector{Term(2)});
}

TEST(WorkerLinks, PassAGoodbyeOnAsTheHostsWhoseLinkItIs) {
  Links job;
  job.says(HostId(1), Goodbye{.incarnation = 2, .orderly = true});
  job.says(HostId(0), Goodbye{.incarnation = 1, .orderly = false});
  const std::vector<std::pair<HostId, bool>> expected = {{HostId(1), true}, {HostId(0), false}};
  EXPECT_EQ(job.goodbyes, expected);
}

TEST(WorkerLinks, TakeNoGoodbyeOfAnotherJobOrThatCannotBeRead) {
  Links job;
  JobUuid other;
  other.bytes[0] = 1;
  job.says(HostId(0), Goodbye{}, other);
  job.says(HostId(0), number_of<Goodbye>(), std::string("\xc1"));
  EXPECT_TRUE(job.goodbyes.empty());
  EXPECT_EQ(job.links->drops().foreign_job, 1U);
  EXPECT_EQ(job.links->drops().malformed, 1U);
}

TEST(WorkerLinks, TakeItOnceThatAKeeperIsGone) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4, 4));
  job.says(HostId(0), KeeperGone{.incarnation = 7});
  EXPECT_FALSE(job.driver().host(0).failing) << "it is of another worker";
  EXPECT_EQ(job.links->drops().foreign_worker, 1U);
  for (int i = 0; i < 2; ++i) job.says(HostId(0), KeeperGone{.incarnation = 1});
  EXPECT_TRUE(job.driver().host(0).failing);
  EXPECT_EQ(job.driver().told(EventKind::kHostLost).size(), 1U);
  const auto is_failing = [](const auto& entry) { return std::holds_alternative<WorkerFailing>(entry.first); };
  const auto& history = job.driver().history;
  EXPECT_EQ(std::count_if(history.begin(), history.end(), is_failing), 1) << "a record each";
}

TEST(WorkerLinks, TellOfADaemonThatWasStartedAgain) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4, 4));
  const std::int32_t keeper = job.driver().host(0).keeper_pid;
  for (const std::uint32_t start : {1U, 2U, 2U}) {
    job.says(HostId(0), Hello{.host = 0, .incarnation = 1, .keeper_pid = keeper, .daemon_starts = start});
  }
  const auto told = job.driver().told(EventKind::kHostDaemon);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0], "v1: its daemon had ended, and its keeper has started it again (start 2); its ranks go on");
  job.take_over();
  for (const std::uint32_t start : {2U, 3U, 101U}) {
    job.says(HostId(0), Hello{.host = 0, .incarnation = 1, .keeper_pid = keeper, .daemon_starts = start});
  }
  EXPECT_EQ(job.driver().told(EventKind::kHostDaemon).size(), 2U) << "start 2 is known, and nobody starts so often";
}

TEST(WorkerLinks, TakeNoHelloAndNoGoodbyeOfAWorkerThatWasLaunchedBefore) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4, 4));
  job.driver().step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  ASSERT_EQ(job.driver().host(0).phase, HostPhase::kLaunching);
  job.driver().step(WorkerLaunched{.host = HostId(0), .worker = {.reply = {.public_key = "new", .keeper_pid = 200}}});
  job.says(HostId(0), Hello{.host = 0, .incarnation = 1, .keeper_pid = 100});
  EXPECT_EQ(job.driver().host(0).phase, HostPhase::kLaunched) << "it is not the one that is awaited";
  job.says(HostId(0), Goodbye{.incarnation = 1, .orderly = true});
  EXPECT_TRUE(job.goodbyes.empty());
  EXPECT_EQ(job.links->drops().foreign_worker, 2U);
  job.says(HostId(0), Hello{.host = 0, .incarnation = 9, .keeper_pid = 200});
  EXPECT_EQ(job.driver().host(0).phase, HostPhase::kJoined);
  job.says(HostId(0), Goodbye{.incarnation = 9, .orderly = true});
  EXPECT_EQ(job.goodbyes.size(), 1U);
}

TEST(WorkerLinks, KeepTooManyPortsOutOfTheJournal) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4));
  job.driver().fail_gang(kFirst, fixtures::exited(7));
  ASSERT_EQ(job.driver().gang(0).phase, GangPhase::kReserving);
  Reserved many{.mesh = MeshId(0), .gang = GangId(0), .generation = job.driver().crew(0).generation};
  many.ports.assign(22'000, 29'500);
  job.says(HostId(0), many);
  const auto* told = std::get_if<PortsReserved>(&job.driver().history.back().first);
  ASSERT_NE(told, nullptr) << "the core is told that it is another number";
  EXPECT_EQ(told->reserved.ports.size(), 2U);
}

TEST(WorkerLinks, PassOnWhatABeatSaysOfAVaultAndTellAHostItsTable) {
  Links job;
  job.dial();
  job.says(HostId(0), Beat{.seq = 1, .sent_at = boot_now()});
  ASSERT_EQ(job.vaults.size(), 1U);
  EXPECT_EQ(job.vaults[0], std::pair(HostId(0), VaultReport{})) << "it has none";
  const VaultReport report{.port = 7000, .table = 9, .used = 1U << 20U};
  job.says(HostId(0), Beat{.seq = 2, .sent_at = boot_now(), .content = {.vault = report}});
  ASSERT_EQ(job.vaults.size(), 2U);
  EXPECT_EQ(job.vaults[1], std::pair(HostId(0), report));
  const VaultTable table{.version = 7, .meshes = {{.name = "trainer", .gang_size = 2}}};
  EXPECT_TRUE(job.links->send(HostId(0), table));
  EXPECT_FALSE(job.links->send(HostId(1), table)) << "it has no link";
  const auto told = decode_payload<VaultTable>(job.received(number_of<VaultTable>()));
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(*told, table);
}

TEST(WorkerLinks, HoldTheEndOfAnOutputBackUntilItIsCopied) {
  Links job;
  job.beats(HostId(0), job.ended(kFirst, true));
  ASSERT_EQ(job.changes.size(), 1U);
  EXPECT_FALSE(job.changes[0].output_complete) << "the copy is behind";
  ASSERT_EQ(job.written.size(), 1U);
  EXPECT_TRUE(job.written[0].output_complete) << "how much is to be copied is what the host said";
  const Generation generation = job.written[0].process.generation;
  job.links->on_copied({kFirst, generation});
  ASSERT_EQ(job.changes.size(), 2U);
  EXPECT_TRUE(job.changes[1].output_complete);
  EXPECT_TRUE(job.member(kFirst).output_complete);
  job.links->on_copied({kFirst, generation});
  EXPECT_EQ(job.changes.size(), 2U) << "it is told once";
}

TEST(WorkerLinks, LearnThatAnOutputIsCopiedBeforeItsHostSaysThatItIsComplete) {
  Links job;
  job.beats(HostId(0), job.ended(kFirst, false));
  ASSERT_EQ(job.changes.size(), 1U);
  job.links->on_copied({kFirst, job.changes[0].process.generation});
  EXPECT_EQ(job.changes.size(), 1U) << "its host has not said so";
  job.beats(HostId(0), job.ended(kFirst, true));
  EXPECT_TRUE(job.member(kFirst).output_complete);
}

TEST(WorkerLinks, TakeNoCopyOfAnotherGenerationOrRankForIt) {
  Links job;
  job.beats(HostId(0), job.ended(kFirst, true));
  Generation later = job.changes.at(0).process.generation;
  ++later.counter;
  job.links->on_copied({kFirst, later});
  job.links->on_copied({kOfOther, job.changes[0].process.generation});
  EXPECT_EQ(job.changes.size(), 1U);
  EXPECT_FALSE(job.member(kFirst).output_complete);
}

TEST(WorkerLinks, BelieveAHostWhereNoCopyIsKept) {
  Links job(false);
  job.beats(HostId(0), job.ended(kFirst, true));
  ASSERT_EQ(job.changes.size(), 1U);
  EXPECT_TRUE(job.changes[0].output_complete);
}

TEST(WorkerLinks, TakeNothingThatAHostSaysOfAnothersRank) {
  Links job;
  job.beats(HostId(1), job.ended(kFirst, true));
  EXPECT_TRUE(job.changes.empty());
  EXPECT_TRUE(job.written.empty());
}

TEST(WorkerLinks, TakeWhatIsSaidOfAnEarlierGenerationFromTheHostItRanOnAlone) {
  JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Links job(true, spec);
  job.driver().join(2);
  const RankReport old = job.ended(kFirst, true);
  job.driver().step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = {}});
  job.driver().step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  job.driver().start_again(0);
  ASSERT_EQ(job.driver().core.placement().host_of(kFirst), HostId(2));
  ASSERT_LT(old.process.generation, job.driver().crew(0).generation);
  job.beats(HostId(2), old);
  job.beats(HostId(1), old);
  EXPECT_TRUE(job.written.empty()) << "I23: it never had that generation";
  job.beats(HostId(0), old);
  EXPECT_EQ(job.written.size(), 1U) << "the rest of its output may still come";
}

TEST(WorkerLinks, TellOfProgressOnceAStepIsBeyondThoseOfAllFailures) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4));
  std::uint64_t second = 0;
  std::optional<StepMark> first;
  std::optional<StepMark> past;
  const auto says_step = [&](std::uint64_t step) {
    RankReport report = job.driver().report_of(kFirst, RankPhase::kRunning);
    report.progress.step = step;
    if (!first) first = StepMark{step, job.driver().now};
    if (step > 100 && !past) past = StepMark{step, job.driver().now};
    report.progress.first = first;
    report.progress.past = past;
    report.progress.at = job.driver().now + Duration::seconds(static_cast<std::int64_t>(++second));
    job.beats(HostId(0), report);
  };
  const auto again = [&] {
    if (job.driver().gang(0).phase == GangPhase::kWaiting) job.driver().pass_deadline();
    job.driver().start_again(0);
  };
  job.driver().fail_gang(kFirst, fixtures::exited(7), 100);
  again();
  job.driver().fail_gang(kFirst, fixtures::exited(7), 50);
  again();
  says_step(1);
  EXPECT_EQ(job.driver().gang(0).first_step, 1U);
  says_step(60);
  says_step(100);
  EXPECT_EQ(job.driver().gang(0).failures.size(), 2U) << "it had been there before";
  says_step(101);
  EXPECT_TRUE(job.driver().gang(0).failures.empty());
  says_step(102);
  const auto told = job.driver().told(EventKind::kGangCaughtUp);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("is past step 100, where it was, "), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("; 100 steps were done again"), std::string::npos) << told[0];
}

TEST(WorkerLinks, TellHowFarRanksHadComeOnAHostThatIsLost) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4));
  const auto says_step = [&](std::uint64_t step) {
    RankReport report = job.driver().report_of(kFirst, RankPhase::kRunning);
    report.progress = {.step = step, .at = job.driver().now};
    job.beats(HostId(0), report);
  };
  says_step(339);
  const std::size_t before = job.driver().history.size();
  says_step(520);
  EXPECT_EQ(job.driver().history.size(), before) << "a beat is no record";
  for (int i = 0; i < 2; ++i) job.links->tell_steps(HostId(0));
  EXPECT_EQ(job.driver().gang(0).reached, 520U);
  EXPECT_EQ(job.driver().gang(1).reached, std::nullopt);
  EXPECT_EQ(job.driver().history.size(), before + 1) << "once";
}

TEST(WorkerLinks, TellOfAPauseBetweenTheStepsOfAGang) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4));
  const Instant begun = job.driver().now;
  const auto says_step = [&](std::uint64_t step, Duration since) {
    RankReport report = job.driver().report_of(kFirst, RankPhase::kRunning);
    report.progress.step = step;
    report.progress.first = StepMark{1, begun};
    report.progress.at = begun + since;
    job.driver().now = begun + since;
    job.beats(HostId(0), report);
  };
  for (std::uint64_t step = 1; step <= 20; ++step) {
    says_step(step, Duration::milliseconds(100) * static_cast<std::int64_t>(step));
  }
  const auto still = [&] { return spent_in(job.driver().gang(0).time, TimeBin::kStill, job.driver().now); };
  EXPECT_EQ(still(), Duration::zero());
  says_step(21, Duration::seconds(6));
  EXPECT_NEAR(static_cast<double>(still().count_milliseconds()), 4'000, 20);
}

TEST(WorkerLinks, LetAnEndThatAnotherGenerationFollowsBeForgottenOnceThatIsDurable) {
  Links job(false, fixtures::job_that_recovers(2, 1, 4));
  job.dial();
  RankReport failed = job.ended(kFirst, true);
  failed.end = fixtures::exited(7);
  job.durable = false;
  job.driver().fail_gang(kFirst, fixtures::exited(7));
  ASSERT_GT(job.driver().crew(0).generation, failed.process.generation);
  EXPECT_TRUE(job.forgotten_after(failed).empty()) << "J1: a supervisor that comes back may have to ask for it again";
  job.durable = true;
  EXPECT_EQ(job.forgotten_after(failed), (std::vector<Incarnation>{failed.process}));
}

}  // namespace
}  // namespace monarch

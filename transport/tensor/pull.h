#pragma once

// Pull: a reader's wish for parts of a publication, each in memory of its own layout, which is made once and run as
// often as wanted. A run is a function of the caller's thread: when it returns nothing of it is under way, and nothing
// writes into that memory. It returns one whole version, or says why not; then what is in the memory is undefined.
//
// Thread: one, cancel() any. Lifetime: links and mapped slots are kept from one run to the next.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/core/pull_core.h"
#include "transport/tensor/cuda/device_destination.h"
#include "transport/tensor/destination.h"
#include "transport/tensor/link_ways.h"
#include "transport/tensor/owner_lane.h"
#include "transport/tensor/pull_work.h"
#include "transport/tensor/registrar_finder.h"
#include "transport/tensor/verbs/verbs_destination.h"

namespace monarch::tensor {

// Which version of which gang.
struct PulledVersion {
  std::uint32_t gang = 0;
  VersionId version;
  bool operator==(const PulledVersion&) const = default;
};

struct Pulled {
  PulledVersion version;
  std::uint64_t bytes = 0;
  Duration time;
  std::uint32_t by_shm = 0;  // owners
  std::uint32_t by_verbs = 0;
  std::uint32_t by_tcp = 0;
  std::string why_not_shm;    // of the first of those elsewhere
  std::string why_not_verbs;  // of the first by tcp
};

struct PullFailure {
  PullEnd how = PullEnd::kInvalid;
  std::string text;
  std::optional<std::uint32_t> rank;  // in the mesh, where it is one that failed
  std::uint64_t generation = 0;       // of the gang; 0: none was found
  std::optional<LaneKind> lane;
};

using PullOutcome = std::variant<Pulled, PullFailure>;

struct RunOptions {
  std::optional<PulledVersion> newer_than;
  Duration timeout = Duration::forever();
  bool next_generation = false;  // a gang that ends is no error
  std::uint64_t stream = 0;      // of GPUs that are pulled into: its handle
  // Hears what a run waits for, each time that so much has passed.
  std::function<void(const std::string& words)> waiting = {};
  Duration waiting_every = Duration::seconds(30);
};

class Pull {
 public:
  // `words` is where the finder tells. `devices`: where parts are in memory of GPUs.
  Pull(PullPlace place, std::vector<PullPart> parts, std::unique_ptr<RegistrarFinder> finder, FinderWords words,
       std::unique_ptr<DeviceDestination> devices = nullptr);
  // Of one tensor, which is not fetched: the slot of an owner on this machine that has all of it stays mapped, as it
  // is, until the next run or the end of this.
  Pull(PullPlace place, std::string mapped, std::unique_ptr<RegistrarFinder> finder, FinderWords words);
  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

  PullOutcome run(const RunOptions& options);
  // A run that is under way ends; else the next does.
  void cancel() { (void)words_->put(finder_word::Cancelled{}); }
  // Of the tensor that the last run has mapped; nullptr: it has none.
  const TensorKind* mapped_kind() const;
  const char* mapped() const;
  // Of the generation that was pulled from last; nullptr: there was none.
  const Index* index() const { return gang_ && gang_->index ? &*gang_->index : nullptr; }

 private:
  // A registrar that was found, with all that is known by it.
  struct Gang {
    std::uint64_t local = 0;  // they are counted, as the core's generations
    finder_word::Found found;
    std::unique_ptr<WayDial> dial;
    std::unique_ptr<StreamLink> registrar;  // nullptr: there is no link to it
    std::optional<Index> index;
    std::map<std::uint32_t, Card> cards;
    std::string unknown;  // what it publishes instead
    std::string waits;    // for whom, as the registrar has said last
    PullWork work;
    std::optional<MappedTensor> mapped;
    std::map<std::uint32_t, std::unique_ptr<OwnerLane>> lanes;  // by rank
  };

  Status begin_devices(std::uint64_t stream);
  void begin_run(const RunOptions& options);
  // Copies to GPUs that are under way end, or are given up.
  void settle(const RunOptions& options);
  void fail(PullEnd how, const std::string& words);
  void turn();
  void say_waiting(const RunOptions& options);
  void take_events();
  void perform(const pull_action::AskCard& action);
  void perform(const pull_action::Link& action);
  void perform(const pull_action::Open& action);
  void perform(const pull_action::Fetch& action);
  void perform(const pull_action::LookAtWord& action);
  void perform(const pull_action::SayRead& action);
  void perform(const pull_action::Stop& action);
  void perform(const pull_action::End& action);

  void hear_finder();
  void hear(const finder_word::Found& word);
  // One on this machine, else one of those that are found soon.
  void choose();
  void take(const finder_word::Found& found);
  void hear(const finder_word::Lost& word);
  void hear(const finder_word::Over& word);
  void hear(const finder_word::Cancelled& word);
  void go_on_registrar();
  void hear_registrar();
  void opened(StreamLink::Received& word);
  Status take_index(std::string_view word);
  Status plan();
  void go_on_lanes();
  // `again`: in so long it is to be tried again, since there was no place.
  void failed(const Error& error, std::optional<std::uint32_t> rank, std::optional<Duration> again = {});
  void registrar_failed(ErrorCode code, const std::string& words, std::optional<Duration> again = {});
  void drop_links();
  void set_over();
  void feed(PullEvent event) { events_.push_back(std::move(event)); }
  HelloAsk ask_of(std::uint32_t rank) const;
  std::optional<VersionId> as_opened(const std::optional<VersionId>& newer_than) const;

  const PullPlace place_;
  const std::vector<PullPart> parts_;
  const std::optional<std::string> maps_;  // tensor
  const std::unique_ptr<RegistrarFinder> finder_;
  const FinderWords words_;
  std::unique_ptr<PullCore> core_;  // of the run
  std::deque<PullEvent> events_;
  std::optional<PulledVersion> newer_than_;
  std::optional<VersionId> opens_;        // a version after that one, as the registrar counts them
  DeviceDestination* devices_ = nullptr;  // where that is the destination
  const std::unique_ptr<Destination> destination_;
  VerbsDestination verbs_destination_;
  bool cancelled_ = false;
  std::unique_ptr<Gang> gang_;  // that is pulled from
  // Of each of the core's generations.
  struct Local {
    std::uint32_t gang = 0;
    std::uint64_t generation = 0;
  };
  std::map<std::uint64_t, Local> locals_;
  std::uint64_t next_local_ = 1;
  std::vector<finder_word::Found> candidates_;
  Instant choose_at_ = Instant::never();
  std::map<std::uint32_t, std::uint64_t> over_;  // by gang, generations up to that
  std::set<std::uint32_t> fetching_;             // ranks whose rows are not all here
  std::set<std::uint32_t> begun_;                // ranks that were told that they are read
  std::optional<PullOutcome> outcome_;
  PullFailure failure_;
  Instant begun_at_;
  Instant deadline_;
  Instant say_at_;
};

}  // namespace monarch::tensor

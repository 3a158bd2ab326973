#pragma once

// Gallery: one simulated run of a gang that publishes versions and of readers that pull them, on every lane, through
// kills, freezes, cut links and restarts. The cores are the real ones; what drives them, memory and lanes are models.
// Memory is a stamp in each cell: which rank wrote it, for which version.
//
//   T1  OK means that each cell has the stamp of one version of one generation, which its registrar had offered
//   T2  after a pull has ended no cell of its reader's memory changes
//   T3  what passed the word was not written between its first and its last byte (it is T1, cell by cell)
//   T4  each pull ends once, within its deadline
//   T5  a reader's memory is written by its own pull alone, an owner's by the owner
//   T6  a publisher waits for readers no longer than its patience
//   T7  when faults end, the last version reaches every reader
//   T8  a registrar believes a rank of its gang, and nobody who only says that he is one: a thief has a reader's card,
//       or the secret of another rank, or that of an earlier start
//
// Thread: one simulation's. Lifetime: the run's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/kernel.h"
#include "tests/sim/random.h"
#include "tests/sim/seed_program.h"
#include "tests/sim/tensors/bugs.h"
#include "tests/sim/trace.h"
#include "transport/tensor/core/hello.h"
#include "transport/tensor/core/owner_core.h"
#include "transport/tensor/core/pull_core.h"
#include "transport/tensor/core/registrar_core.h"
#include "transport/tensor/core/slot_word.h"

namespace monarch::sim::tensors {

using namespace monarch::tensor;

struct GalleryOptions {
  std::uint64_t seed = 0;
  Bug bug = Bug::kNone;
  bool print = false;
};

class Gallery {
 public:
  explicit Gallery(const GalleryOptions& options);
  SeedResult run();

 private:
  enum class Lane : std::uint8_t { kShm, kTcp, kVerbs };
  struct Stamp {
    std::uint32_t rank = 0;
    VersionId version;
    bool operator==(const Stamp&) const = default;
  };
  struct Memory {  // of a slot
    std::uint64_t word = 0;
    std::vector<Stamp> cells;
  };
  using MemoryPtr = std::shared_ptr<Memory>;  // owners: the publisher, and who has it mapped

  struct Publisher;
  struct Reader;
  using PublisherPtr = std::shared_ptr<Publisher>;
  using ReaderPtr = std::shared_ptr<Reader>;

  // A connection of a reader to a publisher; what is said on it stays in order.
  struct Link {
    LinkNumber number = 0;
    PublisherPtr publisher;
    ReaderPtr reader;
    Instant to_publisher;  // when what was said last arrives
    Instant to_reader;
    bool ended = false;
    bool knows_index = false;
  };
  using LinkPtr = std::shared_ptr<Link>;

  // One process of a rank of the gang.
  struct Publisher {
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;
    LifePtr life = std::make_shared<Life>();
    std::unique_ptr<OwnerCore> core;
    std::unique_ptr<RegistrarCore> registrar;  // of rank 0
    std::vector<MemoryPtr> slots;
    std::vector<LinkPtr> links;
    std::optional<Instant> began;  // to want a version
    std::uint64_t begins = 0;      // that version
    Duration frozen_before;        // of it
    bool ends = false;
    OwnerSecrets secrets;
    Instant to_registrar;  // when what it told the registrar last arrives
    bool frozen = false;
    Instant frozen_at;
    Duration frozen_for;
  };
  // All processes of a generation.
  struct Gang {
    std::uint64_t generation = 0;
    std::vector<PublisherPtr> publishers;
    std::uint64_t next = 0;  // version
    std::set<std::uint32_t> held;
    bool over = false;
    bool released = false;
  };
  using GangPtr = std::shared_ptr<Gang>;

  // What a lane has under way for one owner.
  struct Fetch {
    std::uint64_t pull = 0;
    std::uint64_t try_number = 0;
    std::uint32_t owner = 0;
    std::uint64_t number = 0;
    LinkPtr link;
    MemoryPtr memory;           // of shm and verbs, once it is known
    std::size_t cells = 0;      // that are here
    std::size_t under_way = 0;  // of verbs
    std::uint64_t early_word = 0;
    std::optional<std::uint64_t> word;  // of tcp, as the owner said it behind the rows
    bool stopped = false;
  };
  using FetchPtr = std::shared_ptr<Fetch>;
  struct Reader {
    std::uint32_t number = 0;
    Lane lane = Lane::kShm;
    LifePtr life = std::make_shared<Life>();
    std::unique_ptr<PullCore> core;
    std::uint64_t pull = 0;                   // counts
    std::uint64_t try_number = 0;             // of fetching within it
    GangPtr gang;                             // whose card it has
    std::optional<std::uint64_t> asks_since;  // it waits for a card
    LinkPtr registrar;
    std::map<std::uint32_t, LinkPtr> links;
    std::map<std::uint32_t, FetchPtr> fetches;
    std::map<std::uint32_t, std::vector<Stamp>> destination;
    std::set<std::uint32_t> wants;  // ranks whose cells it wants
    std::optional<VersionId> seen;
    bool has_last = false;
    bool draining = false;
    Instant deadline;
    bool slowed = false;  // it was frozen in this pull, or killed
    bool frozen = false;
  };

  Instant now() const { return scheduler_.now(); }
  Duration soon() { return random_.skewed(Duration::microseconds(30), Duration::milliseconds(3)); }

  // The gang (gallery.cc).
  void start_gang(std::uint64_t first);
  void publish(const GangPtr& gang, const PublisherPtr& publisher, std::uint64_t number);
  void feed(const GangPtr& gang, const PublisherPtr& publisher, const OwnerEvent& event);
  void feed_registrar(const GangPtr& gang, const RegistrarEvent& event);
  void tick_later(const GangPtr& gang, const PublisherPtr& publisher);
  void write(const GangPtr& gang, const PublisherPtr& publisher, std::size_t slot, std::size_t cell);
  void committed(const GangPtr& gang, const PublisherPtr& publisher, std::uint64_t number);
  void tell_registrar(const GangPtr& gang, const PublisherPtr& publisher, const RegistrarEvent& event);
  void kill(const GangPtr& gang, const PublisherPtr& publisher);
  std::string own_secret(const Publisher& registrar, const HelloAsk& ask) const;
  bool is_believed(const Publisher& registrar, const LinkRank& who, const std::string& secret);
  void steal();
  void give_up_gang(const GangPtr& gang);

  // Readers (gallery_readers.cc).
  void begin_pull(const ReaderPtr& reader);
  void feed(const ReaderPtr& reader, const PullEvent& event);
  void perform(const ReaderPtr& reader, const PullActions& actions);
  void on(const ReaderPtr& reader, const pull_action::AskCard& action);
  void on(const ReaderPtr& reader, const pull_action::Link& action);
  void on(const ReaderPtr& reader, const pull_action::Open& action);
  void on(const ReaderPtr& reader, const pull_action::Fetch& action);
  void on(const ReaderPtr& reader, const pull_action::LookAtWord& action);
  void on(const ReaderPtr& reader, const pull_action::SayRead& action);
  void on(const ReaderPtr& reader, const pull_action::Stop& action);
  void on(const ReaderPtr& reader, const pull_action::End& action);
  void give_cards();
  LinkPtr connect(const ReaderPtr& reader, const PublisherPtr& publisher);
  bool drop(const LinkPtr& link);
  void let_go(const ReaderPtr& reader);
  void end_link(const LinkPtr& link, bool told_reader);
  void to_publisher(const LinkPtr& link, std::function<void()> task);
  void to_reader(const LinkPtr& link, std::function<void()> task);
  void look_at_memory(const ReaderPtr& reader, const FetchPtr& fetch);
  void copy_next(const ReaderPtr& reader, const FetchPtr& fetch);
  void read_next(const ReaderPtr& reader, const FetchPtr& fetch);
  void send_rows(const ReaderPtr& reader, const FetchPtr& fetch, std::size_t slot, std::size_t cell);
  void land(const ReaderPtr& reader, const FetchPtr& fetch, std::size_t cell, const Stamp& stamp);
  void fetched(const ReaderPtr& reader, const FetchPtr& fetch);
  void look_drained(const ReaderPtr& reader);
  bool is_current(const ReaderPtr& reader, const FetchPtr& fetch) const;

  // Faults.
  void strike();
  void heal();
  bool all_have_last() const;

  GalleryOptions options_;
  Random random_;
  Trace trace_;
  Scheduler scheduler_;
  GangPtr gang_;
  std::vector<GangPtr> gangs_;  // all that there were
  std::vector<ReaderPtr> readers_;
  std::vector<LifePtr> lives_;
  std::set<VersionId> offered_;
  std::map<VersionId, std::set<std::uint32_t>> held_;  // by which ranks
  std::size_t ranks_ = 3;
  std::size_t cells_ = 4;
  LinkNumber next_link_ = 1;
  Duration patience_;
  Duration slowest_;  // of a cell that is copied
  bool healed_ = false;
  bool cut_ = false;  // readers and owners do not reach each other
  std::optional<VersionId> last_;
  std::uint64_t pulls_ = 0;
};

}  // namespace monarch::sim::tensors

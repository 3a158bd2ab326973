#pragma once

// RegistrarCore: which version of what a gang publishes is whole, and who waits for it. Each publisher tells it its
// index once and each version that it holds; a version is offered when all hold it. Readers that wait hear which ranks
// are late. At the end the last version is offered on until all readers have it or have gone, and where nobody has read
// any until somebody does, for `linger` at most.
//
// Thread: a value of the owner's, in rank 0 of the gang; pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/time.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

struct RegistrarOptions {
  std::uint64_t generation = 0;
  std::set<std::uint32_t> publishers;  // ranks of the gang, as the mesh counts them
  std::size_t slots = 2;               // versions that a publisher holds
  Duration linger = Duration::seconds(30);
};

namespace registrar_event {

struct Publishes {  // the index of what that rank has, before its first version
  std::uint32_t rank = 0;
  Index index;
};
struct Holds {
  std::uint32_t rank = 0;
  std::uint64_t number = 0;
};
struct Ends {  // it publishes nothing more, and holds what it holds
  std::uint32_t rank = 0;
};
struct PublisherLeft {  // what it holds nobody knows, until it says so again
  std::uint32_t rank = 0;
};
struct Open {  // answered with Opened or Over
  LinkNumber reader = 0;
  std::optional<VersionId> newer_than;
  bool knows_index = false;
};
struct Read {
  LinkNumber reader = 0;
  std::uint64_t number = 0;
};
struct ReaderLeft {
  LinkNumber reader = 0;
};
struct Tick {};

}  // namespace registrar_event

using RegistrarEvent = std::variant<registrar_event::Publishes, registrar_event::Holds, registrar_event::Ends,
                                    registrar_event::PublisherLeft, registrar_event::Open, registrar_event::Read,
                                    registrar_event::ReaderLeft, registrar_event::Tick>;

namespace registrar_action {

struct Opened {
  LinkNumber reader = 0;
  std::uint64_t number = 0;
  bool with_index = false;
};
struct Waits {  // what was opened is not there: for whom it waits, in words; empty: for nobody who is late
  LinkNumber reader = 0;
  std::string text;
};
struct AllHold {  // all publishers hold that version, which is newer than the last such one
  std::uint64_t number = 0;
};
struct Over {  // nothing newer comes
  LinkNumber reader = 0;
};
struct Unfit {  // what that rank has does not fit what others have
  std::uint32_t rank = 0;
  std::string text;
};
struct Release {};  // nobody needs what is held any more

}  // namespace registrar_action

using RegistrarAction = std::variant<registrar_action::AllHold, registrar_action::Opened, registrar_action::Waits,
                                     registrar_action::Over, registrar_action::Unfit, registrar_action::Release>;
using RegistrarActions = std::vector<RegistrarAction>;

class RegistrarCore {
 public:
  explicit RegistrarCore(RegistrarOptions options) : options_(std::move(options)) {}

  // Between two looks at whom those that wait wait for: a version that comes rank by rank is no news.
  static constexpr Duration kWaitsEvery = Duration::milliseconds(500);

  RegistrarActions step(const RegistrarEvent& event, Instant now);
  Instant next_due() const { return released_ ? tell_at_ : std::min(tell_at_, linger_until_); }
  // Of all publishers.
  const Index& index() const { return index_.index(); }
  const std::optional<std::uint64_t>& offered() const { return offered_; }

 private:
  struct Publisher {
    std::deque<std::uint64_t> holds;  // the newest last
    bool ended = false;
  };
  struct Reader {
    std::optional<registrar_event::Open> open;  // that waits
    std::optional<std::uint64_t> read;          // the newest
    bool asks = false;                          // since it was last told
    std::string told;                           // for whom it waits, since it last had a version
  };

  struct Late {
    std::optional<std::uint64_t> version;  // that some hold, and not all; nothing: not all have published
    std::string words;                     // empty: nobody is
  };

  void on(const registrar_event::Publishes& event);
  void on(const registrar_event::Holds& event);
  void on(const registrar_event::Ends& event);
  void on(const registrar_event::PublisherLeft& event);
  void on(const registrar_event::Open& event);
  void on(const registrar_event::Read& event);
  void on(const registrar_event::ReaderLeft& event) { readers_.erase(event.reader); }
  void on(const registrar_event::Tick&) {}
  void look_what_is_whole();
  void answer();
  void tell_who_waits();
  Late who_is_late() const;
  void look_at_the_end();
  bool has_ended() const;

  const RegistrarOptions options_;
  RegistrarActions out_;
  Instant now_;
  IndexBuilder index_;
  std::map<std::uint32_t, Publisher> publishers_;
  std::map<LinkNumber, Reader> readers_;  // all that ever opened, and have not left
  std::optional<std::uint64_t> offered_;
  std::optional<std::uint64_t> told_;  // that all hold
  Instant linger_until_ = Instant::never();
  Instant tell_at_ = Instant::never();  // somebody waits
  bool was_read_ = false;               // some version, by somebody
  bool released_ = false;
};

}  // namespace monarch::tensor

#include "tests/sim/tensors/gallery.h"

#include <algorithm>

#include "tests/sim/violation.h"
#include "transport/base/assert.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch::sim::tensors {

namespace {

constexpr Duration kFaultsFor = Duration::seconds(4);
constexpr Duration kQuietFor = Duration::seconds(20);
constexpr Duration kVerdict = Duration::milliseconds(400);  // a rank that is silent for so long is lost
constexpr const char* kMesh = "trainer";

std::string some_bytes(Random& random) {
  std::string bytes;
  while (bytes.size() < kPersonalSecretBytes) bytes += static_cast<char>(random.below(256));
  return bytes;
}

// What that one says to the registrar of that generation.
HelloAsk publishes_as(const LinkRank& who, std::uint64_t generation) {
  HelloAsk ask;
  ask.reader = who;
  ask.owner = {kMesh, 0, generation};
  ask.purpose = LinkPurpose::kPublishes;
  ask.publication = "weights";
  return ask;
}

}  // namespace

Gallery::Gallery(const GalleryOptions& options) : options_(options), random_(options.seed), trace_(options.print) {}

SeedResult Gallery::run() {
  SeedResult result;
  try {
    ranks_ = 1 + random_.below(3);
    cells_ = 1 + random_.below(5);
    patience_ =
        random_.one_in(3) ? Duration::milliseconds(200) : random_.skewed(Duration(), Duration::milliseconds(20));
    slowest_ = random_.one_in(2) ? Duration::microseconds(300) : Duration::milliseconds(6);
    start_gang(0);
    for (std::uint32_t number = 0; number < 4; ++number) {
      const auto reader = std::make_shared<Reader>();
      reader->number = number;
      reader->lane = static_cast<Lane>(random_.below(3));
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        if (reader->wants.empty() || !random_.one_in(3)) reader->wants.insert(rank);
      }
      lives_.push_back(reader->life);
      readers_.push_back(reader);
      scheduler_.after(soon(), [this, reader] { begin_pull(reader); });
    }
    strike();
    while (!scheduler_.idle() && scheduler_.next() < Instant() + kFaultsFor) scheduler_.run_next();
    heal();
    const Instant end = now() + kQuietFor;
    while (!scheduler_.idle() && scheduler_.next() < end && !all_have_last()) scheduler_.run_next();
    must(all_have_last(), "T7", "the last version does not reach every reader");
    const Instant rest = now() + Duration::seconds(1);  // what lands late lands now
    while (!scheduler_.idle() && scheduler_.next() < rest) scheduler_.run_next();
  } catch (const Violation& violation) {
    result.passed = false;
    result.label = violation.label;
    result.message = violation.message;
    result.last_lines = trace_.last_lines();
  }
  for (const LifePtr& life : lives_) life->end();
  result.hash = trace_.hash();
  result.simulated = now() - Instant();
  result.counted = pulls_;
  for (const GangPtr& gang : gangs_) {
    for (const PublisherPtr& publisher : gang->publishers) publisher->links.clear();
  }
  for (const ReaderPtr& reader : readers_) {
    reader->registrar.reset();
    reader->links.clear();
    reader->fetches.clear();
  }
  return result;
}

// ---- The gang.

void Gallery::start_gang(std::uint64_t first) {
  const auto gang = std::make_shared<Gang>();
  gang->generation = gang_ == nullptr ? 1 : gang_->generation + 1;
  gang->next = first;
  trace_.note(now(), "gang", gang->generation, first);
  RegistrarOptions registrar{.generation = gang->generation, .publishers = {}};
  registrar.linger = Duration::seconds(10);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) registrar.publishers.insert(rank);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const auto publisher = std::make_shared<Publisher>();
    publisher->rank = rank;
    publisher->generation = gang->generation;
    publisher->core = std::make_unique<OwnerCore>(OwnerOptions{.slots = 2, .patience = patience_, .left = 2});
    if (rank == 0) publisher->registrar = std::make_unique<RegistrarCore>(registrar);
    for (int slot = 0; slot < 2; ++slot) {
      publisher->slots.push_back(std::make_shared<Memory>(Memory{.word = 0, .cells = std::vector<Stamp>(cells_)}));
    }
    publisher->secrets = {some_bytes(random_), some_bytes(random_)};
    lives_.push_back(publisher->life);
    gang->publishers.push_back(publisher);
  }
  gang_ = gang;
  gangs_.push_back(gang);
  for (const PublisherPtr& publisher : gang->publishers) {
    scheduler_.after(soon(), [this, gang, publisher] {
      publisher->life->message([this, gang, publisher] {
        const LinkRank self{kMesh, publisher->rank, publisher->generation};
        const Publisher& first_rank = *gang->publishers[0];
        const std::string own = own_secret(first_rank, publishes_as(self, self.generation));
        must(is_believed(first_rank, self, own), "T8", "a rank of the gang is not believed");
        tell_registrar(gang, publisher, registrar_event::Publishes{publisher->rank, {}});
        publish(gang, publisher, gang->next);
      });
    });
  }
  give_cards();
}

void Gallery::publish(const GangPtr& gang, const PublisherPtr& publisher, std::uint64_t number) {
  publisher->began = now();
  publisher->begins = number;
  publisher->frozen_before = publisher->frozen_for;
  feed(gang, publisher, owner_event::Begin{number});
}

void Gallery::feed(const GangPtr& gang, const PublisherPtr& publisher, const OwnerEvent& event) {
  if (!publisher->life->alive()) return;
  for (const OwnerAction& action : publisher->core->step(event, now())) {
    if (const auto* renew = std::get_if<owner_action::Renew>(&action)) {
      publisher->slots[renew->slot] = std::make_shared<Memory>(Memory{.word = 0, .cells = std::vector<Stamp>(cells_)});
    } else if (const auto* wanted = std::get_if<owner_action::Write>(&action)) {
      const Duration waited = now() - *publisher->began - (publisher->frozen_for - publisher->frozen_before);
      must(waited <= patience_ + Duration::milliseconds(5), "T6", text("a publisher has waited for ", to_text(waited)));
      Memory& memory = *publisher->slots[wanted->slot];
      if (options_.bug != Bug::kWordStays) memory.word = 0;
      if (options_.bug == Bug::kWordBeforeCopy) memory.word = word_of(publisher->begins);
      if (options_.bug == Bug::kHeldEarly) {
        tell_registrar(gang, publisher, registrar_event::Holds{publisher->rank, publisher->begins});
      }
      write(gang, publisher, wanted->slot, 0);
    } else if (const auto* refused = std::get_if<owner_action::Refuse>(&action)) {
      must(false, "T6", text("a publisher is refused: ", refused->text));
    } else if (const auto* ends = std::get_if<owner_action::EndLink>(&action)) {
      const auto link = std::find_if(publisher->links.begin(), publisher->links.end(),
                                     [ends](const LinkPtr& one) { return one->number == ends->link; });
      if (link != publisher->links.end()) end_link(LinkPtr(*link), true);
    } else if (const auto* offer = std::get_if<owner_action::Offer>(&action)) {
      committed(gang, publisher, offer->number);
    }
  }
  tick_later(gang, publisher);
}

void Gallery::tick_later(const GangPtr& gang, const PublisherPtr& publisher) {
  const Instant due = publisher->core->next_due();
  if (due == Instant::never() || options_.bug == Bug::kEndlessPatience) return;
  scheduler_.at(due, [this, gang, publisher, due] {
    publisher->life->timer([this, gang, publisher, due] {
      if (publisher->core->next_due() == due) feed(gang, publisher, owner_event::Tick{});
    });
  });
}

// A cell at a time: whoever reads meanwhile finds some of both.
void Gallery::write(const GangPtr& gang, const PublisherPtr& publisher, std::size_t slot, std::size_t cell) {
  const Duration pause = random_.between(Duration::microseconds(10), Duration::microseconds(400));
  send_after(scheduler_, pause, publisher->life, [this, gang, publisher, slot, cell] {
    const MemoryPtr memory = publisher->slots[slot];
    const Stamp stamp{publisher->rank, {publisher->generation, publisher->begins}};
    const bool early = options_.bug == Bug::kWordBeforeCopy && cell + 1 == cells_;
    if (cell < cells_ && !early) {
      memory->cells[cell] = stamp;
      return write(gang, publisher, slot, cell + 1);
    }
    if (early) scheduler_.after(Duration::milliseconds(3), [memory, cell, stamp] { memory->cells[cell] = stamp; });
    memory->word = word_of(publisher->begins);
    feed(gang, publisher, owner_event::Commit{});
  });
}

// The ranks of a gang go in step, as those of a training do.
void Gallery::committed(const GangPtr& gang, const PublisherPtr& publisher, std::uint64_t number) {
  trace_.note(now(), "holds", publisher->generation, publisher->rank, number);
  held_[{publisher->generation, number}].insert(publisher->rank);
  tell_registrar(gang, publisher, registrar_event::Holds{publisher->rank, number});
  gang->held.insert(publisher->rank);
  if (publisher->ends) tell_registrar(gang, publisher, registrar_event::Ends{publisher->rank});
  if (gang->held.size() < ranks_) return;
  gang->held.clear();
  if (publisher->ends) return;
  gang->next = number + 1;
  const bool ends = healed_ && !gang->over;
  if (ends) last_ = VersionId{gang->generation, gang->next};
  for (const PublisherPtr& each : gang->publishers) {
    each->ends = ends;
    scheduler_.after(random_.skewed(Duration::microseconds(200), Duration::milliseconds(60)), [this, gang, each] {
      each->life->message([this, gang, each] { publish(gang, each, gang->next); });
    });
  }
}

void Gallery::tell_registrar(const GangPtr& gang, const PublisherPtr& publisher, const RegistrarEvent& event) {
  publisher->to_registrar = std::max(publisher->to_registrar, now() + soon());
  scheduler_.at(publisher->to_registrar, [this, gang, event] {
    gang->publishers[0]->life->message([this, gang, event] { feed_registrar(gang, event); });
  });
}

// By which posts let that one prove who he is; and by which he is asked to.
std::string Gallery::own_secret(const Publisher& registrar, const HelloAsk& ask) const {
  if (options_.bug == Bug::kPublishesByCard) return registrar.secrets.readers;
  HelloAsk of = ask;
  if (options_.bug == Bug::kSecretOfGang) of.reader.rank = 0;
  return secret_of(registrar.secrets, of);
}

bool Gallery::is_believed(const Publisher& registrar, const LinkRank& who, const std::string& secret) {
  const LinkRank owner{kMesh, registrar.rank, registrar.generation};
  HelloAsk ask = publishes_as(who, registrar.generation);
  ask.nonce.data = some_bytes(random_);
  const std::string expected = own_secret(registrar, ask);
  auto answer = answer_hello(ask, owner, expected, some_bytes(random_));
  MONARCH_ASSERT(answer.ok());
  // A thief passes over whether it is the registrar that answers.
  const auto honest = prove_hello(ask, *answer, secret);
  const auto stolen = prove_hello(ask, answer_hello(ask, owner, secret, answer->nonce.data).value(), secret);
  return is_proven(ask, *answer, honest.ok() ? *honest : *stolen, expected);
}

void Gallery::steal() {
  const Publisher& registrar = *gang_->publishers[0];
  const auto rank = static_cast<std::uint32_t>(random_.below(ranks_));
  const LinkRank whom{kMesh, rank, registrar.generation};
  std::string secret = registrar.secrets.readers;
  std::string has = "a reader's card";
  LinkRank thief = whom;
  switch (random_.below(4)) {
    case 0: break;
    case 1: thief = {kMesh, static_cast<std::uint32_t>((rank + 1) % ranks_), whom.generation}; break;
    case 2: thief = {kMesh, rank, whom.generation - 1}; break;
    default: thief = {"generator", rank, whom.generation}; break;
  }
  if (thief != whom) {
    secret = own_secret(registrar, publishes_as(thief, registrar.generation));
    has = text("the secret of generation ", thief.generation, " of ", thief.name());
  }
  trace_.note(now(), "thief", whom.generation, whom.rank);
  must(!is_believed(registrar, whom, secret), "T8", text(has, " was enough to publish as ", whom.name()));
}

void Gallery::feed_registrar(const GangPtr& gang, const RegistrarEvent& event) {
  const PublisherPtr& first = gang->publishers[0];
  if (!first->life->alive()) return;
  for (const RegistrarAction& action : first->registrar->step(event, now())) {
    const auto link_of = [&](LinkNumber number) {
      const auto found = std::find_if(first->links.begin(), first->links.end(),
                                      [number](const LinkPtr& link) { return link->number == number; });
      return found == first->links.end() ? nullptr : *found;
    };
    if (const auto* opened = std::get_if<registrar_action::Opened>(&action)) {
      const VersionId version{gang->generation, opened->number};
      must(held_[version].size() == ranks_, "T1", "a version is offered that is not whole");
      offered_.insert(version);
      const LinkPtr link = link_of(opened->reader);
      if (link == nullptr) continue;
      link->knows_index = true;
      to_reader(link, [this, link, number = opened->number] {
        if (link->reader->registrar == link) feed(link->reader, pull_event::Opened{number, link->reader->wants});
      });
    } else if (const auto* over = std::get_if<registrar_action::Over>(&action)) {
      if (const LinkPtr link = link_of(over->reader)) {
        to_reader(link, [this, link] {
          if (link->reader->registrar == link) feed(link->reader, pull_event::Over{});
        });
      }
    } else if (const auto* held = std::get_if<registrar_action::AllHold>(&action)) {
      for (const PublisherPtr& publisher : gang->publishers) {
        scheduler_.after(soon(), [this, gang, publisher, number = held->number] {
          publisher->life->message([=, this] { feed(gang, publisher, owner_event::AllHold{number}); });
        });
      }
    } else if (std::holds_alternative<registrar_action::Release>(action)) {
      gang->released = true;
      trace_.note(now(), "released", gang->generation);
    }
  }
}

// ---- Faults.

void Gallery::kill(const GangPtr& gang, const PublisherPtr& publisher) {
  if (!publisher->life->alive()) return;
  trace_.note(now(), "kill", publisher->generation, publisher->rank);
  publisher->life->end();
  for (const LinkPtr& link : std::vector<LinkPtr>(publisher->links)) end_link(link, true);
  if (gang->over || gang != gang_) return;
  // Its keeper sees it at once; the gang goes with it.
  scheduler_.after(random_.between(Duration::milliseconds(1), Duration::milliseconds(30)), [this, gang] {
    for (const PublisherPtr& each : gang->publishers) kill(gang, each);
    give_up_gang(gang);
  });
}

// By the roster. Its processes may live still: those of a host that was silent.
void Gallery::give_up_gang(const GangPtr& gang) {
  if (gang->over) return;
  gang->over = true;
  for (const ReaderPtr& reader : readers_) {
    send_after(scheduler_, soon(), reader->life, [this, reader, gang] {
      if (reader->gang == gang) feed(reader, pull_event::GenerationOver{gang->generation, "its gang has failed"});
    });
  }
  const std::uint64_t back = random_.below(4);  // from a checkpoint
  scheduler_.after(random_.between(Duration::milliseconds(5), Duration::milliseconds(200)),
                   [this, first = gang->next > back ? gang->next - back : 0] { start_gang(first); });
}

void Gallery::strike() {
  if (healed_) return;
  scheduler_.after(random_.skewed(Duration::milliseconds(2), Duration::milliseconds(400)), [this] { strike(); });
  const PublisherPtr publisher = gang_->publishers[random_.below(ranks_)];
  const ReaderPtr reader = readers_[random_.below(readers_.size())];
  switch (random_.below(11)) {
    case 10: return steal();
    case 0: return kill(gang_, publisher);
    case 1:
    case 2: {
      if (publisher->frozen || !publisher->life->alive()) return;
      const Duration time = random_.skewed(Duration::milliseconds(1), Duration::milliseconds(1500));
      trace_.note(now(), "freeze-publisher", publisher->generation, publisher->rank);
      publisher->frozen = true;
      publisher->frozen_at = now();
      publisher->life->freeze();
      scheduler_.after(time, [this, publisher] {
        publisher->frozen = false;
        publisher->frozen_for = publisher->frozen_for + (now() - publisher->frozen_at);
        publisher->life->thaw();
      });
      // It is silent for too long: lost, and on another host again. Then it thaws.
      if (time > kVerdict) {
        scheduler_.after(kVerdict, [this, gang = gang_, publisher] {
          if (gang->over || !publisher->frozen) return;
          for (const PublisherPtr& each : gang->publishers) {
            if (each != publisher) kill(gang, each);
          }
          give_up_gang(gang);
        });
      }
      return;
    }
    case 3:
    case 4:
    case 5: {
      if (reader->frozen) return;
      trace_.note(now(), "freeze-reader", reader->number);
      reader->frozen = reader->slowed = true;
      reader->life->freeze();
      scheduler_.after(random_.skewed(Duration::microseconds(200), Duration::milliseconds(1500)), [reader] {
        reader->frozen = false;
        reader->life->thaw();
      });
      return;
    }
    case 6: {
      if (cut_) return;
      trace_.note(now(), "cut");
      cut_ = true;
      scheduler_.after(random_.skewed(Duration::milliseconds(5), Duration::milliseconds(800)),
                       [this] { cut_ = false; });
      return;
    }
    case 7: return feed(reader, pull_event::Cancel{});
    case 8: {
      // A view for good, for a while.
      const auto link = reader->links.find(publisher->rank);
      if (link == reader->links.end() || link->second->ended || !reader->seen) return;
      const LinkPtr on = link->second;
      const std::uint64_t number = reader->seen->number;
      const GangPtr gang = gang_;
      to_publisher(on, [this, gang, on, number] {
        feed(gang, on->publisher, owner_event::Given{on->number, number});
        feed(gang, on->publisher, owner_event::Mapped{on->number, number});
      });
      scheduler_.after(random_.between(Duration::milliseconds(1), Duration::milliseconds(500)),
                       [this, gang, on, number] {
                         to_publisher(on, [this, gang, on, number] {
                           feed(gang, on->publisher, owner_event::Unmapped{on->number, number});
                         });
                       });
      return;
    }
    default: {
      // A link that its owner lets go, who lives.
      if (publisher->links.empty()) return;
      const LinkPtr link = publisher->links[random_.below(publisher->links.size())];
      return end_link(link, true);
    }
  }
}

void Gallery::heal() {
  trace_.note(now(), "heal");
  healed_ = true;
  cut_ = false;
}

bool Gallery::all_have_last() const {
  return last_ && std::all_of(readers_.begin(), readers_.end(),
                              [this](const ReaderPtr& reader) { return reader->has_last && reader->seen == last_; });
}

}  // namespace monarch::sim::tensors

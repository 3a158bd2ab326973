#include <algorithm>

#include "tests/sim/tensors/gallery.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim::tensors {

void Gallery::begin_pull(const ReaderPtr& reader) {
  if (!reader->life->alive() || (reader->core && !reader->core->has_ended())) return;
  ++pulls_;
  ++reader->pull;
  reader->slowed = reader->frozen;
  reader->draining = false;
  PullOptions options{.publication = "weights of trainer", .newer_than = reader->seen};
  reader->deadline = options.deadline = now() + random_.skewed(Duration::milliseconds(2), Duration::seconds(3));
  options.next_generation = healed_ || random_.one_in(2);
  if (healed_) reader->deadline = options.deadline = now() + Duration::seconds(15);
  trace_.note(now(), "pull", reader->number, reader->pull, static_cast<std::uint64_t>(reader->lane));
  reader->core = std::make_unique<PullCore>(options);
  perform(reader, reader->core->begin(now()));
  if (options_.bug == Bug::kNoTicks) return;
  scheduler_.at(options.deadline, [this, reader, pull = reader->pull] {
    reader->life->timer([this, reader, pull] {
      if (reader->pull == pull) feed(reader, pull_event::Tick{});
    });
  });
}

void Gallery::feed(const ReaderPtr& reader, const PullEvent& event) {
  if (reader->core == nullptr || reader->core->has_ended()) return;
  perform(reader, reader->core->step(event, now()));
}

void Gallery::perform(const ReaderPtr& reader, const PullActions& actions) {
  for (const PullAction& action : actions) std::visit([&](const auto& one) { on(reader, one); }, action);
}

// ---- Cards and links.

void Gallery::on(const ReaderPtr& reader, const pull_action::AskCard& action) {
  reader->asks_since = action.since;
  give_cards();
}

// The posts': whoever waits for a later one gets it.
void Gallery::give_cards() {
  if (gang_->over) return;
  for (const ReaderPtr& reader : readers_) {
    if (!reader->asks_since || gang_->generation <= *reader->asks_since) continue;
    reader->asks_since.reset();
    send_after(scheduler_, soon(), reader->life, [this, reader, gang = gang_, pull = reader->pull] {
      if (reader->pull != pull) return;
      reader->gang = gang;
      feed(reader, pull_event::CardCame{gang->generation});
    });
  }
}

// Where nobody listens any more that is said at once.
Gallery::LinkPtr Gallery::connect(const ReaderPtr& reader, const PublisherPtr& publisher) {
  const auto link = std::make_shared<Link>();
  link->number = next_link_++;
  link->publisher = publisher;
  link->reader = reader;
  if (publisher->life->alive()) {
    publisher->links.push_back(link);
    return link;
  }
  link->ended = true;
  send_after(scheduler_, soon(), reader->life, [this, link] {
    if (drop(link)) feed(link->reader, pull_event::OwnerGone{"its owner has ended"});
  });
  return link;
}

// Whether the reader's pull needs it.
bool Gallery::drop(const LinkPtr& link) {
  const ReaderPtr& reader = link->reader;
  const auto known = reader->links.find(link->publisher->rank);
  const bool is_owners = known != reader->links.end() && known->second == link;
  const bool fetches = is_owners && reader->fetches.contains(link->publisher->rank);
  if (is_owners) reader->links.erase(known);
  return reader->registrar == link || fetches;
}

void Gallery::on(const ReaderPtr& reader, const pull_action::Link&) {
  if (options_.bug != Bug::kGenerationsMixed) let_go(reader);
  if (reader->registrar) end_link(reader->registrar, false);
  reader->registrar = connect(reader, reader->gang->publishers[0]);
  const LinkPtr link = reader->registrar;
  to_publisher(link, [this, link] {
    to_reader(link, [this, link] {
      if (link->reader->registrar == link) feed(link->reader, pull_event::Linked{});
    });
  });
}

void Gallery::let_go(const ReaderPtr& reader) {
  for (const auto& [owner, link] : reader->links) end_link(link, false);
  reader->links.clear();
}

void Gallery::end_link(const LinkPtr& link, bool told_reader) {
  if (std::exchange(link->ended, true)) return;
  std::erase(link->publisher->links, link);
  const GangPtr gang = gang_;
  for (const GangPtr& each : gangs_) {
    if (each->generation != link->publisher->generation) continue;
    send_after(scheduler_, soon(), link->publisher->life, [this, each, link] {
      feed(each, link->publisher, owner_event::LinkLeft{link->number});
      if (link->publisher->registrar) feed_registrar(each, registrar_event::ReaderLeft{link->number});
    });
  }
  if (!told_reader) return;
  // What it said before its end is heard before that.
  const Instant when = std::max(link->to_reader, now() + soon());
  scheduler_.at(when, [this, link] {
    link->reader->life->message([this, link] {
      if (drop(link)) feed(link->reader, pull_event::LinkEnded{"its owner has let it go"});
    });
  });
}

void Gallery::to_publisher(const LinkPtr& link, std::function<void()> task) {
  if (link->ended) return;
  if (cut_) {
    // It stands still until TCP gives up.
    scheduler_.after(Duration::milliseconds(300), [this, link] {
      if (link->ended) return;
      end_link(link, false);
      link->reader->life->message([this, link] {
        if (drop(link)) feed(link->reader, pull_event::Unreached{"no way to its owner"});
      });
    });
    return;
  }
  link->to_publisher = std::max(link->to_publisher, now() + soon());
  scheduler_.at(link->to_publisher, [link, task = std::move(task)] {
    if (!link->ended) link->publisher->life->message([link, task] { task(); });
  });
}

void Gallery::to_reader(const LinkPtr& link, std::function<void()> task) {
  if (link->ended) return;
  link->to_reader = std::max(link->to_reader, now() + soon());
  scheduler_.at(link->to_reader, [link, task = std::move(task)] { link->reader->life->message([task] { task(); }); });
}

void Gallery::on(const ReaderPtr& reader, const pull_action::Open& action) {
  const LinkPtr link = reader->registrar;
  to_publisher(link, [this, link, newer_than = action.newer_than, gang = reader->gang] {
    feed_registrar(gang, registrar_event::Open{link->number, newer_than, link->knows_index});
  });
}

// ---- Lanes.

void Gallery::on(const ReaderPtr& reader, const pull_action::Fetch& action) {
  const auto fetch = std::make_shared<Fetch>();
  fetch->pull = reader->pull;
  fetch->try_number = reader->try_number;
  fetch->owner = action.owner;
  fetch->number = action.number;
  reader->fetches[action.owner] = fetch;
  reader->destination[action.owner].resize(cells_);
  LinkPtr& link = reader->links[action.owner];
  if (link == nullptr || link->ended) link = connect(reader, reader->gang->publishers[action.owner]);
  fetch->link = link;
  to_publisher(link, [this, reader, fetch] { look_at_memory(reader, fetch); });
}

bool Gallery::is_current(const ReaderPtr& reader, const FetchPtr& fetch) const {
  const auto known = reader->fetches.find(fetch->owner);
  return !fetch->stopped && known != reader->fetches.end() && known->second == fetch;
}

// At the owner: who reads is noted, and told where the version lies.
void Gallery::look_at_memory(const ReaderPtr& reader, const FetchPtr& fetch) {
  const PublisherPtr owner = fetch->link->publisher;
  const auto gang = std::find_if(gangs_.begin(), gangs_.end(),
                                 [&](const GangPtr& one) { return one->generation == owner->generation; });
  feed(*gang, owner, owner_event::Reading{fetch->link->number, fetch->number});
  const auto slot = owner->core->slot_of(fetch->number);
  if (!slot) {  // it is written over
    to_reader(fetch->link, [this, reader, fetch] {
      fetch->word = 0;
      if (is_current(reader, fetch)) fetched(reader, fetch);
    });
    return;
  }
  if (reader->lane == Lane::kTcp) return send_rows(reader, fetch, *slot, 0);
  to_reader(fetch->link, [this, reader, fetch, memory = owner->slots[*slot]] {
    if (!is_current(reader, fetch) || reader->draining) return;  // nothing is begun after a stop
    fetch->memory = memory;
    fetch->early_word = memory->word;
    if (reader->lane == Lane::kShm) return copy_next(reader, fetch);
    fetch->under_way = cells_;
    for (std::size_t cell = 0; cell < cells_; ++cell) read_next(reader, fetch);
  });
}

// shm: by the reader's own hand, a cell at a time.
void Gallery::copy_next(const ReaderPtr& reader, const FetchPtr& fetch) {
  scheduler_.after(random_.between(Duration::microseconds(5), slowest_), [this, reader, fetch] {
    reader->life->message([this, reader, fetch] {
      if (!is_current(reader, fetch)) return;
      land(reader, fetch, fetch->cells, fetch->memory->cells[fetch->cells]);
      if (fetch->cells < cells_) return copy_next(reader, fetch);
      fetched(reader, fetch);
    });
  });
}

// verbs: by the NIC, whatever becomes of either process, in an order of its own.
void Gallery::read_next(const ReaderPtr& reader, const FetchPtr& fetch) {
  const std::size_t cell = fetch->cells++;
  scheduler_.after(random_.skewed(Duration::microseconds(20), slowest_), [this, reader, fetch, cell] {
    land(reader, fetch, cell, fetch->memory->cells[cell]);
    --fetch->cells;
    if (--fetch->under_way > 0) return;
    fetch->cells = cells_;
    reader->life->message([this, reader, fetch] {
      if (is_current(reader, fetch)) fetched(reader, fetch);
      look_drained(reader);
    });
  });
}

// tcp: by the owner, who says behind the rows what the word is then.
void Gallery::send_rows(const ReaderPtr& reader, const FetchPtr& fetch, std::size_t slot, std::size_t cell) {
  const PublisherPtr owner = fetch->link->publisher;
  scheduler_.after(random_.between(Duration::microseconds(5), slowest_), [this, reader, fetch, owner, slot, cell] {
    owner->life->message([this, reader, fetch, owner, slot, cell] {
      if (fetch->link->ended) return;
      const Memory& memory = *owner->slots[slot];
      if (cell == 0) fetch->early_word = memory.word;
      if (cell < cells_) {
        to_reader(fetch->link, [this, reader, fetch, cell, stamp = memory.cells[cell]] {
          if (is_current(reader, fetch)) land(reader, fetch, cell, stamp);
        });
        return send_rows(reader, fetch, slot, cell + 1);
      }
      to_reader(fetch->link, [this, reader, fetch, word = memory.word] {
        fetch->word = word;
        if (is_current(reader, fetch)) fetched(reader, fetch);
      });
    });
  });
}

void Gallery::land(const ReaderPtr& reader, const FetchPtr& fetch, std::size_t cell, const Stamp& stamp) {
  must(reader->pull == fetch->pull && !reader->core->has_ended(), "T2", "a cell changes after its pull has ended");
  must(reader->try_number == fetch->try_number, "T5", "a cell is written by what was begun before");
  reader->destination[fetch->owner][cell] = stamp;
  if (reader->lane != Lane::kVerbs) ++fetch->cells;
}

void Gallery::fetched(const ReaderPtr& reader, const FetchPtr& fetch) {
  feed(reader, pull_event::Fetched{fetch->owner});
}

void Gallery::on(const ReaderPtr& reader, const pull_action::LookAtWord& action) {
  const FetchPtr fetch = reader->fetches.at(action.owner);
  const auto tell = [this, reader, fetch](std::uint64_t word) {
    if (options_.bug == Bug::kWordNotLookedAt && fetch->cells == cells_) word = word_of(fetch->number);
    if (options_.bug == Bug::kWordLookedAtEarly && fetch->cells == cells_) word = fetch->early_word;
    if (is_current(reader, fetch)) feed(reader, pull_event::Word{fetch->owner, word});
  };
  if (fetch->word) {
    scheduler_.after(kHop,
                     [reader, tell, word = *fetch->word] { reader->life->message([tell, word] { tell(word); }); });
  } else if (reader->lane == Lane::kShm) {
    tell(fetch->memory->word);
  } else {
    scheduler_.after(
        soon(), [reader, fetch, tell] { reader->life->message([tell, word = fetch->memory->word] { tell(word); }); });
  }
}

void Gallery::on(const ReaderPtr& reader, const pull_action::SayRead& action) {
  if (reader->registrar && action.whole) {
    to_publisher(reader->registrar, [this, link = reader->registrar, gang = reader->gang, number = action.number] {
      feed_registrar(gang, registrar_event::Read{link->number, number});
    });
  }
  for (const auto& [owner, fetch] : reader->fetches) {
    to_publisher(fetch->link, [this, link = fetch->link, gang = reader->gang, number = action.number] {
      feed(gang, link->publisher, owner_event::Read{link->number, number});
    });
  }
}

void Gallery::on(const ReaderPtr& reader, const pull_action::Stop&) {
  reader->draining = true;
  ++reader->try_number;
  for (const auto& [owner, fetch] : reader->fetches) {
    // What is on its way by a stream is not told from what follows it: the stream goes.
    const bool half = reader->lane == Lane::kTcp && !fetch->word;
    if (half) end_link(fetch->link, false);
    if (reader->lane != Lane::kVerbs || options_.bug == Bug::kNoDrain) fetch->stopped = true;
    if (reader->lane == Lane::kVerbs) fetch->try_number = reader->try_number;  // until it is drained
  }
  if (options_.bug == Bug::kNoDrain) {
    reader->fetches.clear();
  }
  look_drained(reader);
}

void Gallery::look_drained(const ReaderPtr& reader) {
  if (!reader->draining) return;
  for (const auto& [owner, fetch] : reader->fetches) {
    if (fetch->under_way > 0) return;
  }
  reader->draining = false;
  for (const auto& [owner, fetch] : reader->fetches) fetch->stopped = true;
  reader->fetches.clear();
  scheduler_.after(kHop, [this, reader, pull = reader->pull] {
    reader->life->message([this, reader, pull] {
      if (reader->pull == pull) feed(reader, pull_event::Stopped{});
    });
  });
}

void Gallery::on(const ReaderPtr& reader, const pull_action::End& action) {
  trace_.note(now(), "end", reader->number, static_cast<std::uint64_t>(action.how), action.version.generation,
              action.version.number);
  must(reader->slowed || now() <= reader->deadline + Duration::milliseconds(10), "T4",
       text("a pull ends ", to_text(now() - reader->deadline), " after its deadline"));
  reader->asks_since.reset();
  if (action.how == PullEnd::kOk) {
    must(offered_.contains(action.version), "T1", "nobody offered that version");
    must(!reader->seen || action.version > *reader->seen, "T1", "it is no newer one");
    for (const std::uint32_t rank : reader->wants) {
      for (const Stamp& stamp : reader->destination[rank]) {
        must(stamp == Stamp{rank, action.version}, "T1",
             text("rank ", rank, ": a cell of version ", stamp.version.number, " of generation ",
                  stamp.version.generation, " in version ", action.version.number, " of generation ",
                  action.version.generation));
      }
    }
    reader->seen = action.version;
    reader->has_last = last_ && reader->seen == last_;
  }
  if (reader->has_last) return;
  scheduler_.after(random_.skewed(Duration::microseconds(100), Duration::milliseconds(30)),
                   [this, reader] { reader->life->message([this, reader] { begin_pull(reader); }); });
}

}  // namespace monarch::sim::tensors

#pragma once

// VaultWorld: some VaultCores with a network between them that tests hold in their hands: what is sent waits until it
// is delivered, lost or said twice, and what a driver would do with memory is done with strings.
//
// Thread: a test's.

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "worker/core/vault/vault_core.h"

namespace monarch {

class VaultWorld {
 public:
  struct Flight {
    HostId from;
    HostId to;
    PeerVia via = PeerVia::kOurs;                 // as who receives it sees it
    std::optional<vault_event::Message> message;  // nothing: a body, or the connection stands
    std::string bytes;
    std::uint64_t number = 0;  // not 0: it goes as the body of that number
  };
  struct Place {
    HostId from;
    PeerVia via = PeerVia::kOurs;
    BlobId blob;
    std::uint64_t offset = 0;
  };
  struct Host {
    std::optional<VaultCore> core;
    std::map<BlobId, std::string> blobs;
    std::map<BlobId, bool> sealed;
    std::map<VaultClient, std::string> handed_over;
    std::map<VaultClient, std::string> answers;
    std::map<VaultClient, std::string> given;
    std::map<std::uint64_t, Place> places;  // of pieces that were asked for, by number
  };

  static std::string digest_of(const std::string& content) { return "sum of " + content; }

  VaultWorld(std::uint32_t hosts, std::uint64_t memory) : memory_(memory) {
    for (std::uint32_t i = 0; i < hosts; ++i) start(HostId(i));
  }

  void start(HostId host) {
    hosts_[host] = Host{};
    hosts_[host].core.emplace(
        VaultOptions{.host = host, .host_name = text('h', host.value()), .memory = memory_, .piece_bytes = 4});
  }
  void new_port(HostId host) { ++ports_[host]; }
  // What is on the way to it and from it is lost.
  void kill(HostId host) {
    hosts_[host].core.reset();
    std::erase_if(flights, [host](const Flight& one) { return one.from == host || one.to == host; });
  }

  // A mesh `m` of gangs of `gang_size`, each with one table for all.
  static VaultTable table_of(std::uint64_t version, std::vector<VaultGang> gangs, std::uint32_t gang_size) {
    VaultTable table{.version = version, .meshes = {{"m", gang_size}}, .gangs = std::move(gangs), .peers = {}};
    return table;
  }
  void tell(HostId host, VaultTable table) {
    if (!hosts_[host].core) return;
    for (const auto& [other, state] : hosts_) {
      if (other != host && state.core)
        table.peers.push_back({other, text('h', other.value()), "127.0.0.1", ports_[other], ""});
    }
    feed(host, vault_event::TableCame{std::move(table)});
  }

  VaultClient save(HostId host, std::uint32_t rank, std::uint64_t generation, std::uint64_t step,
                   const std::string& content) {
    const VaultClient client(next_client_++);
    hosts_[host].handed_over[client] = content;
    feed(host, vault_event::Asked{client,
                                  {.kind = VaultAsks::kSave,
                                   .mesh = "m",
                                   .rank = Rank(rank),
                                   .generation = generation,
                                   .step = step,
                                   .digest = digest_of(content)},
                                  content.size()});
    return client;
  }
  VaultClient load(HostId host, std::uint32_t rank, std::uint64_t generation, std::uint64_t step,
                   const std::string& content, std::vector<HostId> hosts, std::vector<HostId> not_from = {}) {
    const VaultClient client(next_client_++);
    feed(host, vault_event::Asked{client,
                                  {.kind = VaultAsks::kLoad,
                                   .mesh = "m",
                                   .rank = Rank(rank),
                                   .generation = generation,
                                   .step = step,
                                   .digest = digest_of(content),
                                   .hosts = std::move(hosts),
                                   .not_from = std::move(not_from)},
                                  0});
    return client;
  }

  void feed(HostId host, const VaultEvent& event, const std::string& bytes = {}) {
    Host& at = hosts_[host];
    if (!at.core) return;
    for (const VaultAction& action : at.core->step(event, now)) {
      std::visit([&](const auto& one) { perform(host, at, one, bytes); }, action);
    }
    check(at);
  }

  void deliver(std::size_t index) {
    const Flight flight = flights[index];
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
    if (!hosts_[flight.from].core && !flight.message) return;
    if (flight.number != 0) return deliver_body(flight);
    if (!flight.message) return feed(flight.to, vault_event::PeerUp{flight.from});
    feed(flight.to, vault_event::PeerSpoke{flight.from, flight.via, *flight.message}, flight.bytes);
  }
  // A body that is lost is lost with all others of its connection, and that is told.
  void lose(std::size_t index) {
    const Flight flight = flights[index];
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
    if (flight.number == 0) return;
    std::erase_if(flights, [&](const Flight& one) {
      return one.number != 0 && one.from == flight.from && one.to == flight.to && one.via == flight.via;
    });
    feed(flight.to, vault_event::BodiesLost{flight.from, flight.via});
  }
  // Until nothing is on the way any more.
  void deliver_all() {
    while (!flights.empty()) deliver(0);
  }
  void tick(Duration wait) {
    now = now + wait;
    for (auto& [host, state] : hosts_) {
      if (state.core && state.core->next_due() <= now) feed(host, vault_event::Tick{});
    }
  }

  Host& at(std::uint32_t host) { return hosts_[HostId(host)]; }
  VaultCore& core(std::uint32_t host) { return *hosts_[HostId(host)].core; }
  std::string answer(std::uint32_t host, VaultClient client) {
    const auto& answers = hosts_[HostId(host)].answers;
    const auto found = answers.find(client);
    return found == answers.end() ? "" : found->second;
  }

  Instant now = Instant::since_boot(Duration::seconds(100));
  std::deque<Flight> flights;
  bool may_exceed = false;  // what is loaded has a place also on a full host
  bool by_bodies = false;   // pieces go so

 private:
  // What nobody waits for is passed over.
  void deliver_body(const Flight& flight) {
    Host& at = hosts_[flight.to];
    const auto place = at.places.find(flight.number);
    if (place == at.places.end() || place->second.from != flight.from || place->second.via != flight.via) return;
    MONARCH_ASSERT(!at.sealed[place->second.blob]);
    at.blobs.at(place->second.blob).replace(place->second.offset, flight.bytes.size(), flight.bytes);
    at.places.erase(place);
    feed(flight.to, vault_event::PieceCame{flight.from, flight.via, flight.number});
  }
  static void forget_places(Host& at, BlobId blob) {
    std::erase_if(at.places, [blob](const auto& one) { return one.second.blob == blob; });
  }

  // What the core counts is what there is, and never more than it may take.
  void check(const Host& at) const {
    std::uint64_t bytes = 0;
    for (const auto& [blob, content] : at.blobs) bytes += content.size();
    MONARCH_ASSERT(bytes == at.core->used());
    MONARCH_ASSERT(bytes <= memory_ || may_exceed);
  }

  void perform(HostId, Host& at, const vault_action::Answer& action, const std::string&) {
    MONARCH_ASSERT(!at.answers.contains(action.client));
    at.answers[action.client] = action.json;
    at.handed_over.erase(action.client);
    if (!action.blob) return;
    MONARCH_ASSERT(at.sealed.at(*action.blob));
    at.given[action.client] = at.blobs.at(*action.blob);
  }
  void perform(HostId, Host& at, const vault_action::Adopt& action, const std::string&) {
    at.blobs[action.blob] = at.handed_over.at(action.client);
    at.sealed[action.blob] = true;
  }
  void perform(HostId, Host& at, const vault_action::Create& action, const std::string&) {
    at.blobs[action.blob] = std::string(action.bytes, '\0');
  }
  void perform(HostId, Host& at, const vault_action::Write& action, const std::string& bytes) {
    MONARCH_ASSERT(!at.sealed[action.blob]);
    at.blobs.at(action.blob).replace(action.offset, bytes.size(), bytes);
  }
  void perform(HostId, Host& at, const vault_action::Close& action, const std::string&) {
    at.sealed[action.blob] = true;
    forget_places(at, action.blob);
  }
  void perform(HostId, Host& at, const vault_action::Drop& action, const std::string&) {
    forget_places(at, action.blob);
    MONARCH_ASSERT(at.blobs.erase(action.blob) == 1);
  }
  void perform(HostId host, Host&, const vault_action::Dial& action, const std::string&) {
    flights.push_back({.from = action.host, .to = host, .via = PeerVia::kOurs, .message = std::nullopt, .bytes = {}});
  }
  void perform(HostId host, Host& at, const vault_action::Send& action, const std::string&) {
    Flight flight{.from = host,
                  .to = action.to,
                  .via = action.via == PeerVia::kOurs ? PeerVia::kTheirs : PeerVia::kOurs,
                  .message = action.message,
                  .bytes = {}};
    const auto* const ask = std::get_if<VaultAsk>(&action.message);
    if (ask != nullptr && action.blob) at.places[ask->number] = {action.to, action.via, *action.blob, ask->offset};
    if (const auto* const piece = std::get_if<VaultPiece>(&action.message); piece != nullptr && action.blob) {
      flight.bytes = at.blobs.at(*action.blob).substr(piece->offset, piece->length);
      flight.number = by_bodies ? action.number : 0;
      if (flight.number != 0) flight.message.reset();
    }
    flights.push_back(std::move(flight));
  }
  void perform(HostId, Host&, const vault_action::PeersChanged&, const std::string&) {}

  std::uint64_t memory_;
  std::map<HostId, Host> hosts_;
  std::uint64_t next_client_ = 1;
  std::map<HostId, std::uint16_t> ports_;
};

}  // namespace monarch

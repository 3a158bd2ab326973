#pragma once

// VaultCore: what a vault does with checkpoints that ranks hand over, ask for, and other vaults offer. It keeps account
// of the memory and never holds a byte: its driver does, by BlobId.
//
// - A rank saves: the bytes become a blob, and each target of the gang is offered a copy, again until it answers. The
//   rank is answered once all of them have. Targets that leave, or have no room, make it fewer copies, and the rank is
//   told.
// - An offer counts from the host that has the rank, of a gang whose copies come here, by the table; before that says
//   so, it waits. Where memory stays short, who has sent more than an equal part of it loses what goes beyond, to whom
//   has less: nobody keeps others out.
// - A copy is fetched by who wants it, piece by piece, a few on the way at a time; a piece that is lost is asked for
//   again. Each piece that is asked for has a number: it comes beside a message, or by that number in the connection
//   for bodies, whichever its sender takes.
// - A rank loads: from this vault, else from those that have it, one after the other, which fetches a copy.
// - What is given up follows from the supervisor's table (vault_keep.h), whenever that changes or room is needed.
//   Before the first table nothing is answered.
// - A rank of a generation that the table has passed saves nothing (I20 is the supervisor's to hold: it refuses the
//   commit).
//
// Thread: a value of the loop's; pure.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/vault.h"
#include "worker/core/vault/vault_keep.h"
#include "worker/core/vault/vault_question.h"

namespace monarch {

using VaultClient = StrongId<struct VaultClientTag, std::uint64_t>;  // one connection of a rank
using BlobId = StrongId<struct BlobIdTag, std::uint64_t>;            // the bytes of one checkpoint, at the driver's

// Saved again with other bytes a step is another item: which of them counts is known once one is committed.
struct VaultItem {
  VaultKey key;
  std::string digest;
  auto operator<=>(const VaultItem&) const = default;
};

struct VaultOptions {
  HostId host;
  std::string host_name;
  std::uint64_t memory = 0;                      // bytes
  std::uint32_t piece_bytes = kVaultPieceBytes;  // what it asks for at a time
};

namespace vault_event {

// `bytes`: of the descriptor that came with it, which stays the driver's; kSave alone.
struct Asked {
  VaultClient client;
  VaultQuestion question;
  std::uint64_t bytes = 0;
};
struct ClientLeft {
  VaultClient client;
};
struct TableCame {
  VaultTable table;
};
using Message = std::variant<VaultOffer, VaultKept, VaultAsk, VaultPiece>;
struct PeerSpoke {
  HostId from;
  PeerVia via = PeerVia::kOurs;
  Message message;
};
// A piece that was asked for by this number has come as a body, and is written.
struct PieceCame {
  HostId from;
  PeerVia via = PeerVia::kOurs;
  std::uint64_t number = 0;
};
// What was on its way as bodies does not come.
struct BodiesLost {
  HostId from;
  PeerVia via = PeerVia::kOurs;
};
// Our connection to it.
struct PeerUp {
  HostId host;
};
struct BlobFailed {  // its memory could not be had or written
  BlobId blob;
  std::string why;
};
struct Tick {};

}  // namespace vault_event

using VaultEvent = std::variant<vault_event::Asked, vault_event::ClientLeft, vault_event::TableCame,
                                vault_event::PeerSpoke, vault_event::PieceCame, vault_event::BodiesLost,
                                vault_event::PeerUp, vault_event::BlobFailed, vault_event::Tick>;

namespace vault_action {

// The last word to this client; with the bytes, where there is a blob.
struct Answer {
  VaultClient client;
  std::string json;
  std::optional<BlobId> blob = {};
};
struct Adopt {  // what this client handed over becomes the blob
  VaultClient client;
  BlobId blob;
  std::uint64_t bytes = 0;
};
struct Create {
  BlobId blob;
  std::uint64_t bytes = 0;
};
struct Write {  // the bytes that came with the event
  BlobId blob;
  std::uint64_t offset = 0;
};
struct Close {  // it is whole
  BlobId blob;
};
struct Drop {
  BlobId blob;
};
struct Dial {  // unless there is a connection of ours already; PeerUp follows, also then
  HostId host;
};
struct Send {
  HostId to;
  PeerVia via = PeerVia::kOurs;
  vault_event::Message message;
  std::optional<BlobId> blob = {};  // a VaultPiece's bytes are of this, those that a VaultAsk asks for go there
  std::uint64_t number = 0;         // not 0: a VaultPiece may go as the body of that number instead
};
struct PeersChanged {};  // peers(), which the driver lets in, are others now

}  // namespace vault_action

using VaultAction = std::variant<vault_action::Answer, vault_action::Adopt, vault_action::Create, vault_action::Write,
                                 vault_action::Close, vault_action::Drop, vault_action::Dial, vault_action::Send,
                                 vault_action::PeersChanged>;
using VaultActions = std::vector<VaultAction>;

class VaultCore {
 public:
  static constexpr std::uint32_t kPiecesOnTheWay = 4;  // of one checkpoint
  static constexpr std::size_t kFetches = 4;           // at a time; the others wait
  static constexpr std::size_t kOthersAsked = 32;      // beside those that a rank names
  static constexpr std::size_t kQuestions = 1'024;     // that wait; one more is answered with an error
  static constexpr std::size_t kEarlyOffers = 256;     // of a host, that wait for a table; others are made again
  static constexpr std::size_t kOfOneRank = 64;        // checkpoints that are kept for another host
  static constexpr std::size_t kShortOffers = 1'024;   // of which it is known since when there is no room
  static constexpr Duration kAskAgain = Duration::seconds(2);     // an offer, or a piece
  static constexpr Duration kFetchQuiet = Duration::seconds(10);  // without a piece; then a fetch has failed
  static constexpr Duration kAnswerQuiet =
      Duration::seconds(20);  // of a target, without a sign; then it counts as one that has no copy
  static constexpr Duration kFullPatience = Duration::seconds(3);  // the next table may make room; then it is full

  explicit VaultCore(VaultOptions options) : options_(std::move(options)) {}

  VaultActions step(const VaultEvent& event, Instant now);
  // When a Tick is due; never() while nothing is under way.
  Instant next_due() const;

  std::uint64_t used() const { return used_; }
  std::uint64_t table_version() const { return table_.version; }
  const std::vector<PeerAddress>& peers() const { return table_.peers; }

 private:
  struct Blob {
    BlobId id;
    std::uint64_t bytes = 0;
    GangId gang;
    std::optional<HostId> sender;  // whose rank's copy it is; nothing: of a rank here
    bool complete = false;
  };
  // One that is on its way to us.
  struct AskedPiece {
    Instant at;
    std::uint64_t number = 0;
  };
  struct Fetch {
    HostId from;
    PeerVia via = PeerVia::kOurs;
    std::uint64_t next = 0;                          // the offset to ask for next
    std::uint64_t received = 0;                      // bytes
    std::map<std::uint64_t, AskedPiece> on_the_way;  // by offset
    Instant heard;                                   // a piece; or when it began
    bool active = false;
  };
  // One whose copies a rank waits for.
  struct Copying {
    VaultClient client;
    std::uint64_t bytes = 0;
    struct Target {
      Instant offered;
      Instant heard;
      std::optional<Instant> full_since = {};
    };
    std::map<HostId, Target> waiting;
    std::vector<HostId> kept;
    std::vector<std::string> without;  // why others have none
    bool no_room = false;              // of a target
    bool is_new = true;                // nobody was told before that this host has it, so nobody has committed it
  };
  // One that ranks want, and who is asked for it.
  struct Search {
    std::vector<VaultClient> clients;
    std::deque<HostId> left;
    std::set<HostId> named;  // by the rank; the others may have loaded it
    std::optional<HostId> asked;
    Instant asked_at;
    std::vector<std::string> without;
  };
  // One that no table speaks of yet.
  struct EarlyOffer {
    PeerVia via = PeerVia::kTheirs;
    VaultOffer offer;
    Instant since;
  };
  struct Waiting {
    VaultClient client;
    VaultQuestion question;
    std::uint64_t bytes = 0;
    std::optional<Instant> full_since = {};
  };

  void on(const vault_event::Asked& event);
  void on(const vault_event::ClientLeft& event);
  void on(const vault_event::TableCame& event);
  void on(const vault_event::PeerSpoke& event);
  void on(const vault_event::PieceCame& event);
  void on(const vault_event::BodiesLost& event);
  void on(const vault_event::PeerUp& event);
  void on(const vault_event::BlobFailed& event);
  void on(const vault_event::Tick& event);

  // vault_core.cc: ranks and the table
  bool take(Waiting& asked);  // false: it has to wait for another table
  void take_waiting();
  bool save(Waiting& asked, MeshId mesh);
  bool waits_for_room(Waiting& asked) const;
  void begin_copies(const VaultItem& item, const VaultGang& gang);
  void settle(const VaultItem& item);
  bool load(const Waiting& asked, MeshId mesh);
  void give_up_old(VaultRoom room = VaultRoom::kEnough);
  void know_gangs();
  void answer(VaultClient client, std::string json, std::optional<BlobId> blob = {});

  // vault_core_transfers.cc: other vaults
  void offer(const VaultItem& item, HostId target);
  void without(const VaultItem& item, HostId target, const std::string& why);
  void reach_again();
  void search_without(const VaultItem& item, HostId host, const std::string& why);
  void search_next(const VaultItem& item);
  void found(const VaultItem& item);
  void begin_fetch(const VaultItem& item, std::uint64_t bytes, HostId from, PeerVia via,
                   std::optional<HostId> sender = {});
  void activate_fetches();
  std::uint32_t piece_at(const Blob& blob, std::uint64_t offset) const;
  void ask_piece(const VaultItem& item, Fetch& fetch, std::uint64_t offset);
  void ask_pieces(const VaultItem& item, Fetch& fetch);
  void piece_here(const VaultItem& item, Fetch& fetch, std::uint64_t offset);
  void fetch_failed(const VaultItem& item, const std::string& why, bool full = false);
  void on_message(HostId from, PeerVia via, const VaultOffer& message);
  void on_message(HostId from, PeerVia via, const VaultKept& message);
  void on_message(HostId from, PeerVia via, const VaultAsk& message);
  void on_message(HostId from, PeerVia via, const VaultPiece& message);
  void take_offer(HostId from, PeerVia via, const VaultOffer& offer);
  void take_early_offers();
  void judge_early(HostId from, const VaultItem& item);
  bool sends(HostId from, const VaultKey& key) const;
  bool has_enough_of(HostId from, const RankId& rank) const;
  bool give_way(std::optional<HostId> to, std::uint64_t bytes);
  bool is_short_for_long(const VaultItem& item);
  void look_at_fetches();
  void look_at_copies();
  void look_at_searches();

  Blob& add_blob(const VaultItem& item, std::uint64_t bytes, std::optional<HostId> sender = {});
  void drop_blob(const VaultItem& item);
  bool has_whole(const VaultItem& item) const;
  bool fits(std::uint64_t bytes) const { return bytes <= options_.memory - std::min(used_, options_.memory); }
  // Empty: there is room now, after old ones were given up.
  std::string no_room_for(const VaultKey& key, std::uint64_t bytes);
  std::optional<MeshId> mesh_named(const std::string& name) const;
  std::optional<GangId> gang_of(const RankId& rank) const;
  const PeerAddress* peer(HostId host) const;
  std::string name_of(HostId host) const;
  std::string rank_name(const RankId& rank) const;

  VaultOptions options_;
  VaultTable table_;
  VaultGangs gangs_;
  std::map<VaultItem, Blob> blobs_;
  std::map<VaultItem, Fetch> fetches_;
  std::deque<VaultItem> fetch_order_;  // those that are not active yet
  std::map<VaultItem, Copying> copying_;
  // Targets that let a rank wait for nothing, and since which of its checkpoints: no other waits for them until they
  // say something. The newest is offered to them all the same.
  std::map<HostId, VaultItem> silent_;
  std::map<HostId, VaultItem> probes_;
  std::map<VaultItem, Search> searches_;
  std::vector<Waiting> waiting_;
  std::map<HostId, std::map<VaultItem, EarlyOffer>> early_;
  std::map<VaultItem, Instant> short_since_;  // offers for which there was no room
  std::uint64_t used_ = 0;
  std::uint64_t next_blob_ = 1;
  std::uint64_t next_piece_ = 1;
  Instant now_;
  VaultActions out_;
};

}  // namespace monarch

#pragma once

// Admission: who may open a connection, decided without waiting. Pure. A key that the table does not know may belong to
// a worker that the next table names, so it waits a moment; nobody else waits meanwhile.
//
// Thread: a value of the ZAP thread's.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/base/time.h"
#include "transport/zmq/curve.h"

namespace monarch {

struct AllowTable {
  std::map<CurvePublicKey, std::string> users = {};  // the User-Id of each key: 1 to 255 bytes
  std::set<CurvePublicKey> denied = {};              // refused at once, without the wait of an unknown key
};

class Admission {
 public:
  struct Options {
    Duration unknown_key_wait = Duration::seconds(1);
    std::size_t waiting = 1'024;  // unknown keys beyond these are refused at once; their owners come back
  };
  struct Answer {
    std::uint64_t ticket = 0;
    std::optional<std::string> user_id = {};  // none: refused
    bool operator==(const Answer&) const = default;
  };

  explicit Admission(const Options& options) : options_(options) {}

  // Nothing: the answer comes later, from replace() or expire().
  std::optional<Answer> ask(std::uint64_t ticket, const CurvePublicKey& key, Instant now);
  std::vector<Answer> replace(AllowTable table);
  std::vector<Answer> expire(Instant now);
  Instant next_due() const;

 private:
  struct Waiting {
    std::uint64_t ticket;
    CurvePublicKey key;
    Instant until;
  };
  std::optional<Answer> decide(std::uint64_t ticket, const CurvePublicKey& key) const;

  Options options_;
  AllowTable table_;
  std::vector<Waiting> waiting_;  // in the order of asking, which is that of `until`
};

}  // namespace monarch

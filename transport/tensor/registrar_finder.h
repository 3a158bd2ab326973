#pragma once

// RegistrarFinder: tells a pull where the first rank of a gang that publishes is, and when that gang's generation is
// over. How it knows is not the pull's business: ranks of a job ask the post of their host.
//
// Thread: the pull's; words are put by any. Lifetime: the inbox is the pull's, and outlives what is told.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "transport/base/result.h"
#include "transport/loop/inbox.h"
#include "transport/tensor/core/card.h"

namespace monarch::tensor {

namespace finder_word {

struct Found {
  std::uint32_t gangs = 1;  // of the mesh: each is found, if it publishes anything
  std::uint32_t gang = 0;
  std::uint32_t rank = 0;  // of the registrar
  std::uint64_t generation = 0;
  Card card;
};
struct Lost {  // there is none, and will be none
  std::string text;
  bool ended = false;  // in order
};
struct Over {  // that generation of that gang is
  std::uint32_t gang = 0;
  std::uint64_t generation = 0;
  std::string text;
};
struct Cancelled {};  // by whoever wants the pull to end

}  // namespace finder_word

using FinderWord = std::variant<finder_word::Found, finder_word::Lost, finder_word::Over, finder_word::Cancelled>;
using FinderWords = std::shared_ptr<Inbox<FinderWord>>;  // owners: a pull, and who tells it
inline constexpr std::size_t kFinderWords = 4'096;

class RegistrarFinder {
 public:
  RegistrarFinder() = default;
  RegistrarFinder(const RegistrarFinder&) = delete;
  RegistrarFinder& operator=(const RegistrarFinder&) = delete;
  virtual ~RegistrarFinder() = default;

  // Answered with Found, of a gang whose generation is later than the one that is said here to be over, or with Lost.
  // An earlier question is answered no more.
  virtual void ask(const std::map<std::uint32_t, std::uint64_t>& over) = 0;
  virtual void stop_asking() = 0;
  // Who has no card, while there is none.
  virtual std::string nobody() const { return "nobody publishes it"; }
};

}  // namespace monarch::tensor

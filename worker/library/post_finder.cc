#include "worker/library/post_finder.h"

#include <atomic>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

void PostFinder::ask(const std::map<std::uint32_t, std::uint64_t>& over) {
  stop_asking();
  struct Missing {
    std::atomic<std::uint32_t> gangs;
    std::atomic<bool> ended = true;  // all of them
  };
  // Owners: the answers. Only where no gang has one there is none.
  const auto missing = std::make_shared<Missing>();
  missing->gangs = mesh_.gangs;
  for (std::uint32_t gang = 0; gang < mesh_.gangs; ++gang) {
    const auto known = over.find(gang);
    const std::uint32_t rank = gang * mesh_.gang;
    const auto answered = [words = words_, mesh = mesh_.name, gangs = mesh_.gangs, gang, rank,
                           missing](Result<CardAsks::Answer> answer) {
      std::string why;
      if (answer.ok()) {
        auto card = tensor::parse_card(answer->text);
        if (card.ok()) {
          const tensor::finder_word::Found found{gangs, gang, rank, answer->generation, std::move(*card)};
          return (void)words->put(found);  // where it is full, the pull has found others
        }
        why = card.error().message;
      } else {
        why = answer.error().message;
      }
      if (answer.ok() || answer.error().code != ErrorCode::kNotFound) missing->ended = false;
      if (missing->gangs.fetch_sub(1) != 1) return;
      (void)words->put(tensor::finder_word::Lost{text("no publisher at ", mesh, '/', rank, ": ", why), missing->ended});
    };
    questions_.push_back(asks_.ask(mesh_.name, rank, known == over.end() ? 0 : known->second, answered));
  }
}

// A gang is known by its first rank.
std::string PostFinder::nobody() const {
  if (mesh_.gangs == 1) return text("rank 0 of ", mesh_.name, " publishes nothing yet");
  return text("the first ranks of the ", mesh_.gangs, " gangs of ", mesh_.name, " publish nothing yet");
}

void PostFinder::stop_asking() {
  for (const std::uint64_t question : questions_) asks_.take_back(question);
  questions_.clear();
}

}  // namespace monarch

#pragma once

// The bugs that are planted on purpose, each the breach of a rule by which owners, registrars or lanes go: the checks
// have to catch every one.
//
// Thread: constants.

#include <array>
#include <cstdint>

namespace monarch::sim::tensors {

enum class Bug : std::uint8_t {
  kNone,
  kWordNotLookedAt,    // whatever was read is taken for what was asked for
  kWordLookedAtEarly,  // the word is that of before the last byte
  kWordBeforeCopy,     // a slot says that it holds a version whose bytes are not all there
  kWordStays,          // a slot is written while it says that it holds a version
  kHeldEarly,          // a publisher says that it holds a version which it is still writing
  kGenerationsMixed,   // rows come from owners of an earlier generation
  kNoDrain,            // a pull ends while its lane has something under way
  kEndlessPatience,    // a publisher waits for a reader as long as that reads
  kNoTicks,            // time does not pass for a pull
  kPublishesByCard,    // who has a reader's card is believed to publish
  kSecretOfGang,       // the ranks of a gang publish by one secret
};

struct BugName {
  Bug bug;
  const char* name;
};

inline constexpr std::array kBugs = {
    BugName{Bug::kWordNotLookedAt, "word-not-looked-at"},
    BugName{Bug::kWordLookedAtEarly, "word-looked-at-early"},
    BugName{Bug::kWordBeforeCopy, "word-before-copy"},
    BugName{Bug::kWordStays, "word-stays"},
    BugName{Bug::kHeldEarly, "held-early"},
    BugName{Bug::kGenerationsMixed, "generations-mixed"},
    BugName{Bug::kNoDrain, "no-drain"},
    BugName{Bug::kEndlessPatience, "endless-patience"},
    BugName{Bug::kNoTicks, "no-ticks"},
    BugName{Bug::kPublishesByCard, "publishes-by-card"},
    BugName{Bug::kSecretOfGang, "secret-of-gang"},
};

}  // namespace monarch::sim::tensors

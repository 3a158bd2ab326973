#pragma once

// LinkRoom: how many links an owner takes, and which of them ends for another. All of them together, those of strangers
// as well, have half of the files that its process may have open: the other half is the user's. Readers' links have
// several uses, and none takes the places that a pull needs for another: whoever has a link for words finds one for
// rows, where he has begun with the first rank of a gang whose processes may have as many files each.
//
// A link at which nothing happens, since its reader waits for a version or keeps it for his next pull, is lent: it ends
// where another needs its place. The one at which nothing has happened for the longest time ends first.
//
// Thread: a value of the owner's; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "transport/base/time.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

enum class LinkUse : std::uint8_t {
  kWords,      // of a reader, to the registrar
  kRows,       // his first for rows
  kMoreRows,   // the others for rows
  kPublishes,  // of a rank of the gang, to the registrar, or of a member of a group, to the first of it: none is
               // refused for what readers have
};

class LinkRoom {
 public:
  static constexpr std::uint64_t kMostFiles = 16'384;              // more are as many
  static constexpr std::uint64_t kStrangers = 16;                  // at each of two listeners
  static constexpr std::uint32_t kRowLinks = 4;                    // of one reader
  static constexpr Duration kLent = Duration::seconds(2);          // at least, to who does nothing
  static constexpr Duration kAgain = Duration::milliseconds(500);  // then there may be a place

  struct Answer {
    bool has_place = false;
    std::optional<LinkNumber> ends;  // for it
  };

  // As many may be open in this process.
  void set_files(std::uint64_t most);
  // At each listener, who have proven nothing yet.
  std::uint64_t strangers() const;
  // How many links for rows a reader may have who comes now.
  std::uint32_t row_links() const { return is_tight() ? 1 : kRowLinks; }
  Answer ask(LinkUse use, Instant now) const;
  // Why there is no place.
  std::string full() const;

  void enter(LinkNumber link, LinkUse use, Instant now);
  void leave(LinkNumber link) { links_.erase(link); }
  // Something was said on it.
  void moves(LinkNumber link, Instant now);
  // From now on its reader takes a version, or does not any more; the same of one that he keeps mapped.
  void reads(LinkNumber link, bool does, Instant now);
  void maps(LinkNumber link, bool does, Instant now);

 private:
  struct Link {
    LinkUse use = LinkUse::kWords;
    bool reads = false;
    bool maps = false;
    Instant moved;
  };

  std::uint64_t half() const { return files_ / 2; }
  std::uint64_t count(LinkUse use) const;
  std::uint64_t readers() const { return links_.size() - count(LinkUse::kPublishes); }
  // Of readers.
  std::uint64_t places() const;
  std::uint64_t for_more_rows() const { return places() / 8; }
  std::uint64_t for_words() const;
  bool is_tight() const { return readers() >= for_more_rows(); }
  // That one may end, of those of one use or of any.
  std::optional<LinkNumber> idle(std::optional<LinkUse> use, Instant now) const;

  std::uint64_t files_ = kMostFiles;
  std::map<LinkNumber, Link> links_;
};

}  // namespace monarch::tensor

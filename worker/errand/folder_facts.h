#pragma once

// What folders of this host are like: whether they are there and can be written to, by trying, and how much room they
// have; and the token files by which a doctor sees that several hosts have one and the same folder. Each folder is
// looked at within a time: one on a dead file system is told as such, and keeps nobody waiting.
//
// Thread: the only one of its process (it forks). It leaves nothing behind but tokens, until they are removed.

#include <string>
#include <vector>

#include "transport/messages/check.h"

namespace monarch {

// Where it has to be possible to write, a file of a name that no other host thinks of is written there, and removed.
FolderFacts look_at_folder(const FolderNeed& need, Duration patience);

// The nearest folder above that is there, for one that its first user makes.
FolderFacts look_at_place(const FolderNeed& need, Duration patience);

TokenFound write_token(const TokenOrder& order, Duration patience);
TokenFound read_token(const TokenOrder& order, Duration patience);
void remove_token(const TokenOrder& order, Duration patience);
// Those of this user that are older than an hour: of a doctor that was killed.
void remove_old_tokens(const std::string& folder, Duration patience);

}  // namespace monarch

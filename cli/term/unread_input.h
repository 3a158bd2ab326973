#pragma once

// Whether there is something to read where a command does not read: of a file that was redirected, or of a pipe.
//
// Thread: any.

namespace monarch {

// Nothing is read. A terminal has nothing: it is a person's, who may type for the next command.
bool has_unread_input(int fd);

}  // namespace monarch

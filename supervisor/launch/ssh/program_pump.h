#pragma once

// ProgramPump: carries bytes between a socket of this machine and a program that runs on a host, until the program or
// the connection has ended. Both ways are bounded: what one side does not take is not read from the other.
//
// Thread: the session's, which stays in carry(). Lifetime: shorter than the session's.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/ssh/session/raw_session.h"
#include "supervisor/launch/ssh/session/ssh_channel.h"
#include "supervisor/launch/ssh/ssh_program.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct PumpOptions {
  int cancel = -1;
  Duration ask_after;
  Duration dead_after;
};

class ProgramPump {
 public:
  static constexpr std::size_t kWordsBytes = 4U << 10U;  // of standard error; the last ones are kept

  // `heard` and `words`: what came of the program before this.
  ProgramPump(RawSession& session, std::unique_ptr<SshChannel> channel, UniqueFd socket, std::string heard,
              std::string words)
      : session_(session),
        channel_(std::move(channel)),
        socket_(std::move(socket)),
        inward_(std::move(heard)),
        words_(std::move(words)) {}

  SshProgramEnd carry(const PumpOptions& options);

 private:
  bool carry_in();
  bool carry_out();
  void keep_words(const std::string& more);
  SshProgramEnd ended(std::string why, const PumpOptions& options);
  void watch(std::vector<pollfd>& watched) const;

  RawSession& session_;
  std::unique_ptr<SshChannel> channel_;
  UniqueFd socket_;
  std::string inward_;   // of the program, not taken here yet
  std::string outward_;  // for the program, not taken there yet
  std::string words_;
  std::string broken_;          // why the connection cannot go on
  bool program_ended_ = false;  // nothing more comes of it
  bool unread_ = false;         // nobody reads here any more
  bool input_ended_ = false;    // nothing more comes from here
  bool told_ = false;           // and the program knows
};

}  // namespace monarch

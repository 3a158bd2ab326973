#pragma once

// InputDesk: the standard input of ranks on its way from the viewer that reads it to their keepers. There is one piece
// of it at a time: it is sent to each rank that reads, again until its keeper has said that the pipe has it, and then
// the viewer is answered, which reads the next. So nothing is kept but that piece, whoever is slow. A rank that is
// started again goes on where the piece is that is being given. Where no viewer gives input, the ranks are given its
// end.
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct InputDeskOptions {
  std::function<void(HostId, const Input&)> send;          // best effort
  std::function<void(Instant, std::function<void()>)> at;  // calls then
  std::function<Instant()> now;
  std::function<void()> on_end;  // nobody gives input any more, and its end is given
};

class InputDesk {
 public:
  using Answer = std::function<void(Result<std::string>)>;
  static constexpr Duration kAgain = Duration::milliseconds(300);
  // Until the viewer that reads input is missed: it may be coming back to a supervisor that was started again.
  static constexpr Duration kPatience = Duration::seconds(15);

  InputDesk(const JobCore& core, InputDeskOptions options);

  // kInvalid: no rank gets input, or so much at a time. kNotFound: nobody reads it any more.
  void give(std::uint64_t viewer, InputRequest request, Answer answer);
  void left(std::uint64_t viewer);
  void taken(HostId host, const InputTaken& taken);

 private:
  enum class Reader : std::uint8_t { kNotYet, kHere, kGone };
  struct Given {
    std::uint64_t offset = 0;
    bool over = false;
  };
  Reader reader(RankId id) const;
  Generation generation_of(RankId id) const;
  void go_on(bool send);
  void again_later();
  void end_where_nobody_gives();
  void answer(Result<std::string> with);

  const JobCore& core_;
  InputDeskOptions options_;
  std::vector<RankId> ranks_;
  std::map<Incarnation, Given> given_;
  std::optional<InputRequest> piece_;
  Answer answer_;
  std::uint64_t done_ = 0;    // all that read have it up to here
  bool over_ = false;         // and the end
  std::uint64_t viewer_ = 0;  // who gives it; 0: nobody
  bool again_ = false;        // is to come
};

}  // namespace monarch

#pragma once

// OutputLosses: what no file of a host took of its ranks' output, from what its beats say: a word when it begins and
// when it is over, so many of a host within a minute, and an account for the verdict.
//
// Thread: its owner's.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/health/word_budget.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

struct OutputLossNote {
  bool begins = false;  // else it is over
  std::string message;
};

class OutputLosses {
 public:
  // `lost_bytes`: of its daemon, in all, which begins at 0 when it is started again. `failure`: why bytes are lost now,
  // with the file; empty: they are not.
  std::optional<OutputLossNote> note(HostId host, const std::string& name, std::uint64_t lost_bytes,
                                     const std::string& failure, Instant now);
  // Of one host, while it loses; empty: it does not.
  std::string failure(HostId host) const;
  // A line for each host that has lost something.
  std::vector<std::string> account() const;

 private:
  struct Host {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t of_daemon = 0;
    std::string failure;
    std::string last_failure;
    bool told = false;             // that it begins
    std::uint64_t told_bytes = 0;  // of those
    WordBudget budget;
  };
  std::map<HostId, Host> hosts_;
};

}  // namespace monarch

#pragma once

// WaitGraph: which actors of this rank wait for which, each for as long as it takes. A ring of them would wait for
// ever.
//
// Thread: a value.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace monarch {

class WaitGraph {
 public:
  // The ring that this would close, from `who` on, without the second `who`; then it does not wait.
  std::optional<std::vector<std::string>> begin(const std::string& who, const std::string& for_whom);

 private:
  bool find_way(const std::string& from, const std::string& to, std::vector<std::string>& way,
                std::set<std::string>& seen) const;

  std::map<std::string, std::set<std::string>> waits_;
};

}  // namespace monarch

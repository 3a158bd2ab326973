#include "supervisor/core/accounts/host_names.h"

#include <string>

#include "supervisor/core/spec/placement.h"

namespace monarch {

void HostNames::take(HostId id) {
  if (!basis_.spec.is_on_request(id)) return;
  const std::string& name = basis_.host(id).name;
  mine_[id.value()] = name.empty() ? pool_of(basis_.spec)[id.value()] : PoolHost{.name = name, .address = ""};
}

void HostNames::learn_address(HostId id) {
  constexpr std::size_t kLongest = 64;
  const std::string& told = basis_.host(id).address;
  const bool may_be_one =
      told.size() <= kLongest && told.find_first_not_of("0123456789abcdefABCDEF.:%") == std::string::npos;
  if (mine_[id.value()].address.empty() && may_be_one) mine_[id.value()].address = told;
}

void HostNames::restored() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    take(HostId(i));
    learn_address(HostId(i));
  }
}

}  // namespace monarch

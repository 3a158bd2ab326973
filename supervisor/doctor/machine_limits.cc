#include "supervisor/doctor/machine_limits.h"

#include <sys/resource.h>

#include "transport/base/text.h"
#include "transport/messages/check.h"
#include "transport/process/read_small.h"

namespace monarch::doctor {

static_assert(RLIM_INFINITY == kUnlimited);

std::string limit_text(std::uint64_t limit) { return limit == kUnlimited ? "unlimited" : text(limit); }

std::string bytes_limit_text(std::uint64_t limit) { return limit == kUnlimited ? "unlimited" : size_text(limit); }

}  // namespace monarch::doctor

#include "transport/tensor/verbs/verbs_destination.h"

#include <algorithm>

#include "transport/base/assert.h"

namespace monarch::tensor {

namespace {

// Spans that touch are one: parts of one array may lie within each other.
std::vector<VerbsDestination::Span> joined(std::vector<VerbsDestination::Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const auto& one, const auto& other) { return one.start < other.start; });
  std::vector<VerbsDestination::Span> out;
  for (const VerbsDestination::Span& span : spans) {
    if (span.bytes == 0) continue;
    if (out.empty() || span.start > out.back().start + out.back().bytes) {
      out.push_back(span);
      continue;
    }
    VerbsDestination::Span& last = out.back();
    last.bytes = std::max(last.bytes, static_cast<std::uint64_t>(span.start - last.start) + span.bytes);
  }
  return out;
}

}  // namespace

Status VerbsDestination::know() {
  if (known_) return *known_;
  known_ = Status();
  for (const Span& span : joined(spans_)) {
    auto memory = end_.device->know(span.start, span.bytes, VerbsAccess::kFilledHere);
    if (!memory.ok()) {
      known_ = memory.error();
      memory_.clear();
      break;
    }
    memory_[span.start + (span.bytes - 1)] = std::move(*memory);
  }
  return *known_;
}

std::uint32_t VerbsDestination::key_of(const char* at) const {
  const auto found = memory_.lower_bound(at);
  MONARCH_ASSERT(found != memory_.end());
  return found->second->local_key();
}

}  // namespace monarch::tensor

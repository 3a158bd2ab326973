#include "cli/away/viewer_outbox.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

void ViewerOutbox::put(ViewerFrameKind kind, std::string_view payload) {
  std::string frame = encode_frame(kind, payload);
  if (!is_counted(kind)) {
    other_.push_back(std::move(frame));
    return;
  }
  kept_bytes_ += frame.size();
  kept_.push_back(std::move(frame));
}

std::string_view ViewerOutbox::unsent() {
  if (written_ == writing_.size()) {
    written_ = 0;
    writing_.clear();
    if (!other_.empty()) {
      writing_ = std::move(other_.front());
      other_.pop_front();
    } else if (!held_ && next_ < kept_.size()) {
      writing_ = kept_[next_++];
      most_ = std::max(most_, first_ + next_);
    }
  }
  return std::string_view(writing_).substr(written_);
}

void ViewerOutbox::sent(std::size_t bytes) { written_ += bytes; }

Status ViewerOutbox::taken(std::uint64_t count) {
  if (count < first_ || count > most_) {
    return Error{ErrorCode::kInvalid, text(count, " frames are said to have come, and ", most_, " were sent")};
  }
  for (; first_ < count; ++first_) {
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
    if (next_ > 0) --next_;
  }
  return {};
}

void ViewerOutbox::renumber() {
  first_ = most_ = 0;
  start_again();
}

void ViewerOutbox::start_again() {
  next_ = 0;
  other_.clear();
  writing_.clear();
  written_ = 0;
}

}  // namespace monarch

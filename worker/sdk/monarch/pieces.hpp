#pragma once

// How values leave a plugin: as the pieces of which their writer has them, which the host copies once; or in one, for a
// host that knows no pieces.
//
// Thread: any.

#include <string>
#include <string_view>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/codec.hpp>
#include <monarch/host.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

namespace detail {

// What is written, as a host takes it. It lives in the writer.
class Pieces {
 public:
  Pieces(const monarch_host_v1& host, const codec::Writer& written) {
    if (written.is_one()) {
      whole_ = {written.one().data(), written.one().size()};
      return;
    }
    for (const std::string_view piece : written.pieces()) pieces_.push_back({piece.data(), piece.size()});
    if (knows_pieces(host)) return;
    for (const monarch_bytes_v1& piece : pieces_) joined_.append(static_cast<const char*>(piece.data), piece.size);
    whole_ = {joined_.data(), joined_.size()};
    pieces_.clear();
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  void put_into(monarch_call_v1& call) const {
    call.arguments = whole_;
    call.pieces = pieces_.data();
    call.piece_count = pieces_.size();
  }
  // The arguments have been read, but for what is held of them.
  void reply(const monarch_host_v1& host, monarch_delivery_v1* delivery) const {
    if (!knows_pieces(host)) return host.reply(delivery, whole_);
    const bool one = pieces_.empty();
    const monarch_reply_v1 result{.struct_size = sizeof result,
                                  .flags = MONARCH_REPLY_HAS_READ,
                                  .pieces = one ? &whole_ : pieces_.data(),
                                  .piece_count = one ? 1 : pieces_.size()};
    host.reply_with(delivery, &result);
  }

 private:
  monarch_bytes_v1 whole_{"", 0};
  std::vector<monarch_bytes_v1> pieces_;  // none: it is in one
  std::string joined_;
};

// What has been written of a value, which has to stay as long as that.
template <class T>
codec::Writer written_of(const T& value) {
  codec::Writer writer;
  writer.note_large();
  codec::write(writer, value);
  return writer;
}

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch

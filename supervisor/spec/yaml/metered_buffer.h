#pragma once

// A text as a stream, in small pieces and without a copy, which ends early if too much of it is read without an
// event(): so a parser that hoards what it reads cannot hoard more than that.
//
// Thread: the one that reads the stream. The text must outlive it.

#include <algorithm>
#include <cstddef>
#include <streambuf>
#include <string_view>

namespace monarch {

class MeteredBuffer final : public std::streambuf {
 public:
  MeteredBuffer(std::string_view view, std::size_t most_between_events)
      : rest_(view), most_between_events_(most_between_events) {}

  void event() { since_event_ = 0; }
  bool ran_out() const { return ran_out_; }

 protected:
  int_type underflow() override {
    constexpr std::size_t kPiece = 2048;
    const std::size_t size = std::min(kPiece, rest_.size());
    ran_out_ = ran_out_ || since_event_ + size > most_between_events_;
    if (size == 0 || ran_out_) return traits_type::eof();
    since_event_ += size;
    char* begin = const_cast<char*>(rest_.data());  // a get area is only read
    setg(begin, begin, begin + size);
    rest_.remove_prefix(size);
    return traits_type::to_int_type(*begin);
  }

 private:
  std::string_view rest_;
  std::size_t most_between_events_;
  std::size_t since_event_ = 0;
  bool ran_out_ = false;
};

}  // namespace monarch

#pragma once

// Writer and Reader: MessagePack, one item at a time. The Reader is total: it answers false on anything that is not
// what was asked for, reads nothing beyond its input, and bounds depth and number of items; it never allocates for a
// length that the input does not hold. The Writer counts depth as the Reader does, and copies what it writes, or notes
// where large bytes lie. Types are codec.hpp's business.
//
// Thread: values, used by one thread at a time. Lifetime: a Reader and the views it hands out live in its input, the
// pieces of a Writer in it and in what it has noted.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monarch/fields.hpp"

namespace monarch {
namespace codec MONARCH_INSIDE {

struct DecodeError {
  std::string what;        // what is wrong
  std::size_t offset = 0;  // of the byte where it was seen
};

struct DecodeLimits {
  unsigned depth = 32;              // containers within containers
  std::size_t items = 1U << 20U;    // elements of all containers together, but for those of lists of numbers
  std::size_t numbers = 1U << 20U;  // the same, of lists of numbers
};

// Values of users: what calls carry. A struct that holds another by a list, a map or a variant is two or three
// containers, so that 256 levels of such structs pass. Numbers are bounded by the bytes of the body alone.
inline constexpr DecodeLimits kValueLimits{
    .depth = 1'024, .items = 1U << 24U, .numbers = std::numeric_limits<std::size_t>::max()};

// Who has the input of a Reader, where what is read from it may go on being read after the Reader's owner is done.
struct Keeper {
  std::shared_ptr<const void> (*keep)(const void* of) = nullptr;  // nullptr: it cannot be kept
  const void* of = nullptr;
};

// An integer as MessagePack knows it: any of int64 and uint64.
struct Integer {
  bool negative = false;
  std::uint64_t bits = 0;  // two's complement when negative
};

class Writer {
 public:
  static constexpr std::size_t kNotedBytes = 16U << 10U;

  explicit Writer(unsigned depth = kValueLimits.depth) : most_(depth) {}

  // From now on texts and bytes of kNotedBytes and more are not copied: they have to stay where they are until the
  // pieces of this writer have been used.
  void note_large() { notes_ = true; }

  // What is written while this lives is copied: it may be gone before the pieces are used.
  class Copying {
   public:
    explicit Copying(Writer& writer) : writer_(writer), before_(std::exchange(writer.notes_, false)) {}
    Copying(const Copying&) = delete;
    Copying& operator=(const Copying&) = delete;
    ~Copying() { writer_.notes_ = before_; }

   private:
    Writer& writer_;
    const bool before_;
  };

  // A container whose items are written next. The writer leaves it where the scope of this value ends.
  class Inside {
   public:
    explicit Inside(Writer& writer) : writer_(writer) {
      if (writer_.depth_ >= writer_.most_) {
        throw std::length_error("nested too deeply: a value has at most " + std::to_string(writer_.most_) +
                                " containers within each other");
      }
      ++writer_.depth_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { --writer_.depth_; }

   private:
    Writer& writer_;
  };

  void nil() { byte(0xc0); }
  void boolean(bool value) { byte(value ? 0xc3 : 0xc2); }

  void unsigned_integer(std::uint64_t value) {
    if (value < 0x80) return byte(static_cast<unsigned>(value));
    if (value <= 0xff) return tagged<std::uint8_t>(0xcc, value);
    if (value <= 0xffff) return tagged<std::uint16_t>(0xcd, value);
    if (value <= 0xffff'ffff) return tagged<std::uint32_t>(0xce, value);
    tagged<std::uint64_t>(0xcf, value);
  }

  void signed_integer(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (value >= 0) return unsigned_integer(bits);
    if (value >= -32) return byte(static_cast<unsigned>(bits & 0xffU));
    if (value >= std::numeric_limits<std::int8_t>::min()) return tagged<std::uint8_t>(0xd0, bits);
    if (value >= std::numeric_limits<std::int16_t>::min()) return tagged<std::uint16_t>(0xd1, bits);
    if (value >= std::numeric_limits<std::int32_t>::min()) return tagged<std::uint32_t>(0xd2, bits);
    tagged<std::uint64_t>(0xd3, bits);
  }

  void real(float value) { tagged<std::uint32_t>(0xca, std::bit_cast<std::uint32_t>(value)); }
  void real(double value) { tagged<std::uint64_t>(0xcb, std::bit_cast<std::uint64_t>(value)); }

  // Throws std::length_error beyond 4 GiB, which MessagePack cannot say; so do the containers beyond 2^32 elements.
  void string(std::string_view value) {
    const std::uint64_t size = checked(value.size());
    if (size < 32) {
      byte(0xa0U | static_cast<unsigned>(size));
    } else if (size <= 0xff) {
      tagged<std::uint8_t>(0xd9, size);
    } else {
      long_header(0xda, size);
    }
    append(value);
  }

  void binary(std::string_view value) {
    const std::uint64_t size = checked(value.size());
    if (size <= 0xff) {
      tagged<std::uint8_t>(0xc4, size);
    } else {
      long_header(0xc5, size);
    }
    append(value);
  }

  // Followed by `count` items. Throws std::length_error where it is nested too deeply.
  Inside array(std::size_t count) {
    header(0x90, 0xdc, count);
    return Inside(*this);
  }

  // Followed by `count` pairs of key and value.
  Inside map(std::size_t count) {
    header(0x80, 0xde, count);
    return Inside(*this);
  }

  // For what is written next.
  void reserve(std::size_t bytes) { out_.reserve(out_.size() + bytes); }

  // What is written, in one.
  std::string take() {
    if (noted_.empty()) return std::exchange(out_, {});
    std::string whole;
    whole.reserve(size());
    for (const std::string_view piece : pieces()) whole += piece;
    out_.clear();
    noted_.clear();
    return whole;
  }
  bool is_one() const { return noted_.empty(); }
  // What is written, where is_one().
  std::string_view one() const { return out_; }
  // What is written, one after the other; valid until this writes again.
  std::vector<std::string_view> pieces() const {
    std::vector<std::string_view> pieces;
    std::size_t from = 0;
    for (const Noted& noted : noted_) {
      if (noted.at > from) pieces.push_back(std::string_view(out_).substr(from, noted.at - from));
      pieces.push_back(noted.bytes);
      from = noted.at;
    }
    if (out_.size() > from) pieces.push_back(std::string_view(out_).substr(from));
    return pieces;
  }
  std::size_t size() const {
    std::size_t size = out_.size();
    for (const Noted& noted : noted_) size += noted.bytes.size();
    return size;
  }

 private:
  struct Noted {
    std::size_t at = 0;  // how much of out_ is before it
    std::string_view bytes;
  };

  void append(std::string_view value) {
    if (!notes_ || value.size() < kNotedBytes) return (void)out_.append(value);
    noted_.push_back({out_.size(), value});
  }
  static std::uint64_t checked(std::size_t size) {
    if (size > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("monarch: too long for MessagePack");
    return size;
  }

  void byte(unsigned value) { out_.push_back(static_cast<char>(static_cast<unsigned char>(value))); }

  // At once: lists of numbers are long, and not everybody has his compiler optimise.
  template <class Unsigned>
  void tagged(unsigned tag, std::uint64_t value) {
    constexpr unsigned kWidth = sizeof(Unsigned);
    char bytes[1 + kWidth];
    bytes[0] = static_cast<char>(static_cast<unsigned char>(tag));
    for (unsigned i = kWidth; i > 0; --i, value >>= 8U) bytes[i] = static_cast<char>(value & 0xffU);
    out_.append(bytes, sizeof bytes);
  }

  void header(unsigned short_tag, unsigned long_tag, std::size_t count) {
    if (checked(count) < 16) return byte(short_tag | static_cast<unsigned>(count));
    long_header(long_tag, count);
  }

  // The 16-bit form is `tag`, the 32-bit form the next.
  void long_header(unsigned tag, std::uint64_t size) {
    if (size <= 0xffff) return tagged<std::uint16_t>(tag, size);
    tagged<std::uint32_t>(tag + 1, size);
  }

  std::string out_;
  std::vector<Noted> noted_;
  bool notes_ = false;
  unsigned depth_ = 0;
  const unsigned most_;
};

class Reader {
 public:
  explicit Reader(std::string_view input, DecodeLimits limits = {}, Keeper keeper = {})
      : input_(input), limits_(limits), keeper_(keeper) {}

  // The input stays where it is as long as somebody has this; nullptr: it does not.
  std::shared_ptr<const void> keep() const { return keeper_.keep == nullptr ? nullptr : keeper_.keep(keeper_.of); }

  bool at_end() const { return offset_ == input_.size(); }
  std::size_t remaining() const { return input_.size() - offset_; }
  const DecodeError& error() const { return error_; }

  // Notes the first error and answers false, so that a caller can `return reader.fail("...")`.
  bool fail(std::string_view what) {
    if (error_.what.empty()) error_ = DecodeError{std::string(what), offset_};
    return false;
  }

  bool next_is_nil() const { return !at_end() && peek() == 0xc0; }

  bool nil() {
    if (!next_is_nil()) return fail("nil expected");
    ++offset_;
    return true;
  }

  bool boolean(bool& value) {
    if (at_end()) return fail("the input ends early");
    if (peek() != 0xc2 && peek() != 0xc3) return fail("a boolean expected");
    value = peek() == 0xc3;
    ++offset_;
    return true;
  }

  bool next_is_integer() const {
    if (at_end()) return false;
    const unsigned tag = peek();
    return tag < 0x80 || tag >= 0xe0 || (tag >= 0xcc && tag <= 0xd3);
  }

  bool integer(Integer& value) {
    if (at_end()) return fail("the input ends early");
    if (!next_is_integer()) return fail("an integer expected");
    const unsigned tag = peek();
    ++offset_;
    if (tag < 0x80) return set(value, static_cast<std::int64_t>(tag));
    if (tag >= 0xe0) return set(value, static_cast<std::int64_t>(tag) - 0x100);
    std::uint64_t bits = 0;
    const unsigned width = 1U << (tag & 3U);  // cc to cf and d0 to d3 are 1, 2, 4 and 8 bytes
    if (!big_endian(width, bits)) return false;
    if (tag <= 0xcf) {
      value = Integer{.negative = false, .bits = bits};
      return true;
    }
    const unsigned unused = 64 - width * 8;
    return set(value, static_cast<std::int64_t>(bits << unused) >> unused);
  }

  // Either width; an integer is taken too where a double holds it exactly.
  bool real(double& value) {
    if (at_end()) return fail("the input ends early");
    std::uint64_t bits = 0;
    if (peek() == 0xca) {
      ++offset_;
      if (!big_endian(4, bits)) return false;
      value = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      return true;
    }
    if (peek() == 0xcb) {
      ++offset_;
      if (!big_endian(8, bits)) return false;
      value = std::bit_cast<double>(bits);
      return true;
    }
    if (!next_is_integer()) return fail("a number expected");
    Integer whole;
    if (!integer(whole)) return false;
    const std::uint64_t magnitude = whole.negative ? ~whole.bits + 1 : whole.bits;
    if (magnitude > (std::uint64_t{1} << 53U)) return fail("the integer has no exact floating point value");
    value = whole.negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
    return true;
  }

  bool string(std::string_view& value) {
    if (at_end()) return fail("the input ends early");
    const unsigned tag = peek();
    if (tag >= 0xa0 && tag <= 0xbf) {
      ++offset_;
      return take(tag & 0x1fU, value);
    }
    if (tag < 0xd9 || tag > 0xdb) return fail("a string expected");
    ++offset_;
    std::uint64_t size = 0;
    return big_endian(1U << (tag - 0xd9), size) && take(size, value);
  }

  bool binary(std::string_view& value) {
    if (at_end()) return fail("the input ends early");
    const unsigned tag = peek();
    if (tag < 0xc4 || tag > 0xc6) return fail("binary data expected");
    ++offset_;
    std::uint64_t size = 0;
    return big_endian(1U << (tag - 0xc4), size) && take(size, value);
  }

  // A container whose items are read next. The reader leaves it where the scope of this value ends, however it ends.
  class Inside {
   public:
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      if (reader_ != nullptr) --reader_->depth_;
    }
    // False: there is none, and the reader's error says why.
    explicit operator bool() const { return reader_ != nullptr; }
    // Items of an array, pairs of a map.
    std::size_t count() const { return count_; }

   private:
    friend class Reader;
    Inside(Reader* reader, std::size_t count) : reader_(reader), count_(count) {}
    Reader* const reader_;
    const std::size_t count_;
  };

  Inside array() { return array_of(Of::kAnything); }
  // What is in it is read as numbers, each of which has a byte at least.
  Inside array_of_numbers() { return array_of(Of::kNumbers); }

  Inside map() {
    const unsigned tag = at_end() ? 0 : peek();
    if (tag >= 0x80 && tag <= 0x8f) return enter_short(tag & 0xfU, 2);
    if (tag == 0xde || tag == 0xdf) return enter_long(2U << (tag - 0xde), 2);
    return outside(at_end() ? "the input ends early" : "a map expected");
  }

  // Over one item of any kind, with all that is in it.
  bool skip() {
    if (at_end()) return fail("the input ends early");
    const unsigned tag = peek();
    if (tag == 0xc1) return fail("a byte that MessagePack does not use");
    if ((tag >= 0x90 && tag <= 0x9f) || tag == 0xdc || tag == 0xdd) return skip_items(array(), 1);
    if ((tag >= 0x80 && tag <= 0x8f) || tag == 0xde || tag == 0xdf) return skip_items(map(), 2);
    return skip_scalar(tag);
  }

 private:
  unsigned peek() const { return static_cast<unsigned char>(input_[offset_]); }

  static bool set(Integer& value, std::int64_t number) {
    value = Integer{.negative = number < 0, .bits = static_cast<std::uint64_t>(number)};
    return true;
  }

  bool big_endian(unsigned width, std::uint64_t& value) {
    if (remaining() < width) return fail("the input ends early");
    const char* const bytes = input_.data() + offset_;
    value = 0;
    for (unsigned i = 0; i < width; ++i) value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
    offset_ += width;
    return true;
  }

  bool take(std::uint64_t size, std::string_view& value) {
    if (size > remaining()) return fail("a length reaches beyond the input");
    value = input_.substr(offset_, static_cast<std::size_t>(size));
    offset_ += static_cast<std::size_t>(size);
    return true;
  }

  Inside outside(std::string_view why) {
    fail(why);
    return {nullptr, 0};
  }

  enum class Of : std::uint8_t { kAnything, kNumbers };

  Inside array_of(Of what) {
    const unsigned tag = at_end() ? 0 : peek();
    if (tag >= 0x90 && tag <= 0x9f) return enter_short(tag & 0xfU, 1, what);
    if (tag == 0xdc || tag == 0xdd) return enter_long(2U << (tag - 0xdc), 1, what);
    return outside(at_end() ? "the input ends early" : "an array expected");
  }

  Inside enter_short(std::size_t length, unsigned items_each, Of what = Of::kAnything) {
    ++offset_;
    return enter(length, items_each, what);
  }

  Inside enter_long(unsigned width, unsigned items_each, Of what = Of::kAnything) {
    ++offset_;
    std::uint64_t length = 0;
    if (!big_endian(width, length)) return {nullptr, 0};
    return enter(length, items_each, what);
  }

  Inside enter(std::uint64_t length, unsigned items_each, Of what) {
    const std::uint64_t items = length * items_each;                                  // below 2^33
    if (items > remaining()) return outside("a container reaches beyond the input");  // an item has at least one byte
    std::size_t& before = what == Of::kNumbers ? numbers_ : items_;
    const std::size_t most = what == Of::kNumbers ? limits_.numbers : limits_.items;
    if (items > most - before) return outside(what == Of::kNumbers ? "too many numbers" : "too many items");
    if (depth_ >= limits_.depth) return outside("nested too deeply");
    before += static_cast<std::size_t>(items);
    ++depth_;
    return {this, static_cast<std::size_t>(length)};
  }

  // Recursive, but no deeper than the limit.
  bool skip_items(const Inside& inside, unsigned items_each) {
    if (!inside) return false;
    for (std::size_t i = 0; i < inside.count() * items_each; ++i) {
      if (!skip()) return false;
    }
    return true;
  }

  bool skip_scalar(unsigned tag) {
    std::string_view ignored;
    if (tag == 0xc0) return nil();
    if (next_is_integer() || tag == 0xca || tag == 0xcb) {
      double number = 0;
      Integer whole;
      return next_is_integer() ? integer(whole) : real(number);
    }
    if (tag == 0xc2 || tag == 0xc3) {
      bool value = false;
      return boolean(value);
    }
    if (tag >= 0xc4 && tag <= 0xc6) return binary(ignored);
    if ((tag >= 0xa0 && tag <= 0xbf) || (tag >= 0xd9 && tag <= 0xdb)) return string(ignored);
    ++offset_;
    if (tag >= 0xd4 && tag <= 0xd8) return take((std::uint64_t{1} << (tag - 0xd4)) + 1, ignored);  // fixext
    std::uint64_t size = 0;
    return big_endian(1U << (tag - 0xc7), size) && take(size + 1, ignored);  // ext: a type byte, then the data
  }

  std::string_view input_;
  DecodeLimits limits_;
  Keeper keeper_;
  std::size_t offset_ = 0;
  std::size_t items_ = 0;
  std::size_t numbers_ = 0;  // in lists of them
  unsigned depth_ = 0;
  DecodeError error_;
};

}  // namespace MONARCH_INSIDE
}  // namespace monarch

#include "monarch/codec.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace user {

enum class Color : std::int8_t { kRed, kGreen };
constexpr Color monarch_enum_max(Color) { return Color::kGreen; }
enum class Free : std::uint16_t { kAny };

struct Point {
  int x = 0;
  int y = 0;
  auto operator<=>(const Point&) const = default;
};
MONARCH_FIELDS(Point, x, y)

struct Grown {
  int old = 1;
  int added = 2;
  Point also;
  bool operator==(const Grown&) const = default;
};
MONARCH_FIELDS(Grown, old, added, also)
MONARCH_ADDED_FIELDS(Grown, 2)

// Declares no fields of its own.
struct Point3 : Point {
  int z = 0;
};

struct Nothing {
  auto operator<=>(const Nothing&) const = default;
};
MONARCH_FIELDS(Nothing)

struct Everything {
  bool yes = false;
  std::int8_t small = 0;
  std::uint64_t large = 0;
  float single = 0;
  double twice = 0;
  std::string text;
  std::vector<std::uint8_t> raw;
  monarch::codec::Bytes bytes;
  std::vector<Point> points;
  std::vector<bool> bits;
  std::array<int, 3> three{};
  std::map<std::string, Point> named;
  std::optional<Point> maybe;
  std::variant<std::monostate, int, std::string> one_of;
  Color color = Color::kRed;
  Free free = Free::kAny;
  std::pair<int, std::string> pair;
  std::tuple<int, double, std::string> tuple;
  Nothing nothing;
  bool operator==(const Everything&) const = default;
};
MONARCH_FIELDS(Everything, yes, small, large, single, twice, text, raw, bytes, points, bits, three, named, maybe,
               one_of, color, free, pair, tuple, nothing)

struct Tree {
  int value = 0;
  std::vector<Tree> children;
};
MONARCH_FIELDS(Tree, value, children)

struct Own {
  std::vector<int> numbers;
};
void codec_write(monarch::codec::Writer& writer, const Own& own) {
  writer.array(own.numbers.size());
  for (const int number : own.numbers) writer.signed_integer(number);
}
bool codec_read(monarch::codec::Reader& reader, Own& own) {
  const auto array = reader.array();
  own.numbers.resize(array.count());
  for (int& number : own.numbers) {
    if (!monarch::codec::read(reader, number)) return false;
  }
  return static_cast<bool>(array);
}

class Private {
 public:
  MONARCH_FIELDS_INSIDE(secret_, name_)
  void set(int secret) { secret_ = secret; }
  int secret() const { return secret_; }

 private:
  int secret_ = 0;
  std::string name_ = "n";
};

// A class that travels in a form of its own.
class Celsius {
 public:
  Celsius() = default;
  explicit Celsius(double degrees) : kelvin_(degrees + 273.15) {}
  double kelvin() const { return kelvin_; }
  friend void codec_write(monarch::codec::Writer& writer, const Celsius& value) { writer.real(value.kelvin_); }
  friend bool codec_read(monarch::codec::Reader& reader, Celsius& value) {
    return reader.real(value.kelvin_) && (value.kelvin_ >= 0 || reader.fail("below absolute zero"));
  }

 private:
  double kelvin_ = 0;
};

struct Forty {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24,
      f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40;
};
MONARCH_FIELDS(Forty, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21,
               f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40)

}  // namespace user

namespace monarch::codec {
namespace {

template <class T>
std::string decoding_error(std::string_view input, DecodeLimits limits = {}) {
  T value{};
  DecodeError error;
  if (decode(input, value, error, limits)) return "";
  EXPECT_LE(error.offset, input.size());
  return error.what;
}

template <class T>
void expect_same(const T& value) {
  T back{};
  DecodeError error;
  ASSERT_TRUE(decode(encode(value), back, error)) << error.what << " at " << error.offset;
  EXPECT_EQ(back, value);
}

template <class T>
std::string bytes_of(const T& value) {
  return encode(value);
}

std::string raw(std::initializer_list<unsigned> bytes) {
  std::string out;
  for (const unsigned byte : bytes) out.push_back(static_cast<char>(byte));
  return out;
}

TEST(Codec, ValuesAreTheSameAfterTheWire) {
  user::Everything all;
  expect_same(all);
  all.yes = true;
  all.small = -128;
  all.large = std::numeric_limits<std::uint64_t>::max();
  all.single = -0.1F;
  all.twice = 1e300;
  all.text = std::string("z\0\xff", 3);
  all.raw = {0, 255, 7};
  all.bytes.data = std::string(70'000, 'b');
  all.points = {{1, 2}, {-3, 70'000}};
  all.bits = {true, false, true};
  all.three = {1, 2, 3};
  all.named = {{"a", {1, 1}}, {"", {2, 2}}};
  all.maybe = user::Point{5, 6};
  all.one_of = "text";
  all.color = user::Color::kGreen;
  all.free = static_cast<user::Free>(65'535);
  all.pair = {9, "nine"};
  all.tuple = {1, 0.5, "half"};
  expect_same(all);
  expect_same(std::vector<std::string>(70'000, "x"));
  expect_same(std::vector<std::vector<std::optional<int>>>{{}, {std::nullopt, 4}});
}

TEST(Codec, IntegersTakeTheShortestFormAndKeepTheirValueAtEveryEdge) {
  EXPECT_EQ(bytes_of(0), raw({0x00}));
  EXPECT_EQ(bytes_of(127), raw({0x7f}));
  EXPECT_EQ(bytes_of(128), raw({0xcc, 0x80}));
  EXPECT_EQ(bytes_of(256), raw({0xcd, 0x01, 0x00}));
  EXPECT_EQ(bytes_of(65'536), raw({0xce, 0, 1, 0, 0}));
  EXPECT_EQ(bytes_of(std::int64_t{1} << 32U), raw({0xcf, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(bytes_of(-1), raw({0xff}));
  EXPECT_EQ(bytes_of(-32), raw({0xe0}));
  EXPECT_EQ(bytes_of(-33), raw({0xd0, 0xdf}));
  EXPECT_EQ(bytes_of(-129), raw({0xd1, 0xff, 0x7f}));
  EXPECT_EQ(bytes_of(-32'769), raw({0xd2, 0xff, 0xff, 0x7f, 0xff}));
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (std::uint64_t near = 0; near < 3; ++near) {
      const std::uint64_t value = (std::uint64_t{1} << shift) - 1 + near;
      expect_same(value);
      expect_same(static_cast<std::int64_t>(value));
      expect_same(static_cast<std::int64_t>(~value));
    }
  }
}

TEST(Codec, IntegersOutOfRangeAreRefused) {
  EXPECT_EQ(decoding_error<std::uint8_t>(bytes_of(255)), "");
  EXPECT_EQ(decoding_error<std::uint8_t>(bytes_of(256)), "an integer is out of range");
  EXPECT_EQ(decoding_error<std::int8_t>(bytes_of(-128)), "");
  EXPECT_EQ(decoding_error<std::int8_t>(bytes_of(-129)), "an integer is out of range");
  EXPECT_EQ(decoding_error<std::int8_t>(bytes_of(128)), "an integer is out of range");
  EXPECT_EQ(decoding_error<std::uint64_t>(bytes_of(-1)), "an integer is out of range");
  EXPECT_EQ(decoding_error<std::int64_t>(bytes_of(std::uint64_t{1} << 63U)), "an integer is out of range");
  EXPECT_EQ(decoding_error<std::int64_t>(bytes_of(std::numeric_limits<std::int64_t>::min())), "");
}

TEST(Codec, LongerFormsThanNeededAreTaken) {
  EXPECT_EQ(decoding_error<int>(raw({0xcf, 0, 0, 0, 0, 0, 0, 0, 7})), "");
  EXPECT_EQ(decoding_error<unsigned>(raw({0xd3, 0, 0, 0, 0, 0, 0, 0, 7})), "");
  EXPECT_EQ(decoding_error<std::int8_t>(raw({0xd1, 0xff, 0xff})), "");
  EXPECT_EQ(decoding_error<std::string>(raw({0xdb, 0, 0, 0, 1, 'x'})), "");
  EXPECT_EQ(decoding_error<Bytes>(raw({0xc6, 0, 0, 0, 1, 'x'})), "");
  EXPECT_EQ(decoding_error<std::vector<int>>(raw({0xdd, 0, 0, 0, 1, 5})), "");
  EXPECT_EQ((decoding_error<std::map<std::string, int>>(raw({0xdf, 0, 0, 0, 1, 0xa1, 'k', 5}))), "");
}

TEST(Codec, NumbersConvertOnlyWhereNothingIsLost) {
  double number = 0;
  DecodeError error;
  ASSERT_TRUE(decode(bytes_of(1.5F), number, error));
  EXPECT_EQ(number, 1.5);
  ASSERT_TRUE(decode(bytes_of(-3), number, error));
  EXPECT_EQ(number, -3.0);
  ASSERT_TRUE(decode(bytes_of(std::uint64_t{1} << 53U), number, error));
  EXPECT_NE(decoding_error<double>(bytes_of((std::uint64_t{1} << 53U) + 1)), "");
  EXPECT_NE(decoding_error<double>(bytes_of(std::numeric_limits<std::int64_t>::min())), "");
  EXPECT_EQ(decoding_error<float>(bytes_of(0.5)), "");
  EXPECT_NE(decoding_error<float>(bytes_of(0.1)), "");
  EXPECT_NE(decoding_error<float>(bytes_of(1e300)), "");
  EXPECT_NE(decoding_error<int>(bytes_of(1.0)), "");
  EXPECT_NE(decoding_error<double>(bytes_of(std::string("1"))), "");
  float single = 0;
  ASSERT_TRUE(decode(bytes_of(std::numeric_limits<double>::infinity()), single, error));
  EXPECT_TRUE(std::isinf(single));
  ASSERT_TRUE(decode(bytes_of(std::numeric_limits<double>::quiet_NaN()), single, error));
  EXPECT_TRUE(std::isnan(single));
}

TEST(Codec, TypesAreNotMixedUp) {
  EXPECT_NE(decoding_error<bool>(bytes_of(1)), "");
  EXPECT_NE(decoding_error<int>(bytes_of(true)), "");
  EXPECT_NE(decoding_error<std::string>(bytes_of(Bytes{"x"})), "");
  EXPECT_NE(decoding_error<Bytes>(bytes_of(std::string("x"))), "");
  EXPECT_NE(decoding_error<std::vector<int>>(raw({0x81, 1, 1})), "");
  EXPECT_NE((decoding_error<std::map<std::string, int>>(raw({0x91, 1}))), "");
  EXPECT_NE(decoding_error<int>(raw({0xc0})), "");
  EXPECT_NE(decoding_error<std::monostate>(raw({0x01})), "");
}

TEST(Codec, TrailingBytesAreAnError) { EXPECT_EQ(decoding_error<int>(raw({1, 2})), "bytes follow the value"); }

TEST(Codec, EveryCutIsRefused) {
  user::Everything all;
  all.points = {{1, 2}};
  all.named = {{"k", {3, 4}}};
  all.one_of = 70'000;
  all.bytes.data = "data";
  const std::string whole = encode(all);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(decoding_error<user::Everything>(std::string_view(whole).substr(0, size)), "") << size;
  }
}

TEST(Codec, LengthsBeyondTheInputAreRefusedWithoutAllocating) {
  for (const unsigned tag : {0xdbU, 0xc6U, 0xddU, 0xdfU}) {
    const std::string huge = raw({tag, 0xff, 0xff, 0xff, 0xff, 0x01});
    EXPECT_NE(decoding_error<std::string>(huge), "");
    EXPECT_NE(decoding_error<Bytes>(huge), "");
    EXPECT_NE(decoding_error<std::vector<user::Everything>>(huge), "");
    EXPECT_NE((decoding_error<std::map<std::string, int>>(huge)), "");
  }
  EXPECT_EQ(decoding_error<std::vector<int>>(raw({0x93, 1, 2})), "a container reaches beyond the input");
  EXPECT_EQ(decoding_error<std::string>(raw({0xa3, 'a', 'b'})), "a length reaches beyond the input");
}

// A type of its own that enters a container is left however its reading ends.
TEST(Codec, ATypeOfItsOwnIsReadAsOftenAsItIsThere) {
  for (const std::size_t count : {1U, 100U, 100'000U}) {
    const std::vector<user::Own> many(count, user::Own{{1, 2, 3}});
    std::vector<user::Own> back;
    DecodeError error;
    ASSERT_TRUE(decode(encode(many), back, error)) << error.what << " of " << count;
    EXPECT_EQ(back.size(), count);
  }
  Reader reader("\x91\x91\x01\x02");
  {
    const auto outer = reader.array();
    ASSERT_TRUE(outer);
    std::string_view text;
    const auto inner = reader.array();
    EXPECT_FALSE(reader.string(text));
  }
  Integer number;
  EXPECT_TRUE(reader.integer(number));
}

TEST(Codec, DepthIsBounded) {
  user::Tree chain;
  for (int i = 0; i < 14; ++i) {  // each level is a struct and a vector
    user::Tree parent;
    parent.children.push_back(std::move(chain));
    chain = std::move(parent);
  }
  EXPECT_EQ(decoding_error<user::Tree>(encode(chain)), "");
  EXPECT_EQ(decoding_error<user::Tree>(encode(chain), {.depth = 20}), "nested too deeply");
  // In what is skipped as well.
  const std::string deep = raw({0x93, 1, 2}) + std::string(100'000, '\x91') + raw({0});
  EXPECT_EQ(decoding_error<user::Point>(deep), "nested too deeply");
}

user::Tree chain_of(int levels) {
  user::Tree chain;
  for (int i = 1; i < levels; ++i) {
    user::Tree parent;
    parent.children.push_back(std::move(chain));
    chain = std::move(parent);
  }
  return chain;
}

TEST(Codec, PackingCountsDepthAsReadingDoes) {
  for (const int levels : {1, 16, 256, 512}) {
    EXPECT_EQ(decoding_error<user::Tree>(encode(chain_of(levels)), kValueLimits), "") << levels;
  }
  for (const int levels : {513, 5'000}) {
    try {
      (void)encode(chain_of(levels));
      ADD_FAILURE() << levels;
    } catch (const std::length_error& error) {
      EXPECT_STREQ(error.what(), "nested too deeply: a value has at most 1024 containers within each other");
    }
  }
  // Depth is left with each container, also of maps, variants and tuples.
  EXPECT_EQ(decoding_error<std::vector<user::Everything>>(encode(std::vector<user::Everything>(5'000))), "");
}

TEST(Codec, ListsOfNumbersAreBoundedByTheirBytesAlone) {
  const auto takes = [](const auto& numbers) {
    auto back = numbers;
    DecodeError error;
    ASSERT_TRUE(decode(encode(numbers), back, error, kValueLimits)) << error.what;
    EXPECT_TRUE(back == numbers);
  };
  constexpr std::size_t kMany = 3'000'000;
  takes(std::vector<float>(kMany, 0.25F));
  takes(std::vector<double>(kMany, -1e300));
  takes(std::vector<int>(kMany, 70'000));
  takes(std::vector<std::vector<std::int8_t>>(3, std::vector<std::int8_t>(kMany, -5)));
  EXPECT_EQ(decoding_error<std::vector<int>>(encode(std::vector<int>(kMany)), {}), "too many numbers");
  EXPECT_EQ(decoding_error<std::vector<float>>(raw({0xdd, 0xff, 0xff, 0xff, 0xff, 1}), kValueLimits),
            "a container reaches beyond the input");
}

TEST(Codec, ItemsAreBounded) {
  const std::string many = encode(std::vector<bool>(1000));
  EXPECT_EQ(decoding_error<std::vector<bool>>(many, {.items = 1000}), "");
  EXPECT_EQ(decoding_error<std::vector<bool>>(many, {.items = 999}), "too many items");
}

TEST(Codec, AStructTakesLaterFieldsAndMissesNoneOfItsOwn) {
  for (const std::string& later : {raw({0x93, 1, 2, 3}), raw({0x93, 1, 2, 0x81, 0xa1, 'k', 0xd4, 1, 2}),
                                   raw({0x95, 1, 2, 0xc0, 0xc2, 0xca, 0, 0, 0, 0}), raw({0x93, 1, 2, 0xc7, 1, 9, 9})}) {
    EXPECT_EQ(decoding_error<user::Point>(later), "");
  }
  EXPECT_EQ(decoding_error<user::Point>(raw({0x91, 1})), "a struct misses fields");
  EXPECT_NE(decoding_error<user::Point>(raw({0x93, 1, 2, 0xc1})), "");
  EXPECT_NE(decoding_error<user::Point>(raw({0x93, 1, 2, 0xc7, 0xff, 9})), "");
  EXPECT_NE(decoding_error<user::Point>(raw({0x93, 1, 2, 0xd8, 9})), "");
}

TEST(Codec, FieldsThatWereAddedMayBeMissing) {
  const auto read = [](std::string_view input) {
    user::Grown value;
    DecodeError error;
    return decode(input, value, error) ? std::optional(value) : std::nullopt;
  };
  EXPECT_EQ(read(raw({0x91, 5})), (user::Grown{5, 2, {}}));
  EXPECT_EQ(read(raw({0x92, 5, 6})), (user::Grown{5, 6, {}}));
  EXPECT_EQ(read(raw({0x94, 5, 6, 0x92, 7, 8, 9})), (user::Grown{5, 6, {7, 8}}));
  EXPECT_EQ(read(raw({0x92, 5, 0xc1})), std::nullopt);
  EXPECT_EQ(decoding_error<user::Grown>(raw({0x90})), "a struct misses fields");
  EXPECT_EQ(decoding_error<std::vector<user::Grown>>(raw({0x92, 0x91, 5, 0x92, 5, 6})), "");
}

TEST(Codec, ArraysAndTuplesHaveTheirLengthExactly) {
  EXPECT_NE((decoding_error<std::array<int, 2>>(raw({0x93, 1, 2, 3}))), "");
  EXPECT_NE((decoding_error<std::pair<int, int>>(raw({0x91, 1}))), "");
  EXPECT_NE((decoding_error<std::tuple<int, int>>(raw({0x93, 1, 2, 3}))), "");
}

TEST(Codec, AKeyIsThereOnce) {
  EXPECT_EQ((decoding_error<std::map<std::string, int>>(raw({0x82, 0xa1, 'k', 1, 0xa1, 'k', 2}))),
            "a key is there twice");
}

TEST(Codec, EnumeratorsAreBoundedWhereTheirMaximumIsKnown) {
  EXPECT_EQ(decoding_error<user::Color>(bytes_of(1)), "");
  EXPECT_EQ(decoding_error<user::Color>(bytes_of(2)), "an enumerator is out of range");
  EXPECT_EQ(decoding_error<user::Color>(bytes_of(-1)), "an enumerator is out of range");
  EXPECT_EQ(decoding_error<user::Free>(bytes_of(65'535)), "");
  EXPECT_NE(decoding_error<user::Free>(bytes_of(65'536)), "");
}

TEST(Codec, AVariantHasTheAlternativesItHas) {
  using Either = std::variant<int, std::string>;
  EXPECT_EQ(decoding_error<Either>(raw({0x92, 1, 0xa1, 'x'})), "");
  EXPECT_EQ(decoding_error<Either>(raw({0x92, 2, 0xa1, 'x'})), "a variant has no such alternative");
  EXPECT_NE(decoding_error<Either>(raw({0x92, 0, 0xa1, 'x'})), "");
  EXPECT_NE(decoding_error<Either>(raw({0x91, 0})), "");
}

TEST(Codec, ClassesMayTravelInFormsOfTheirOwn) {
  user::Celsius back;
  DecodeError error;
  ASSERT_TRUE(decode(encode(user::Celsius(20)), back, error));
  EXPECT_EQ(back.kelvin(), 293.15);
  EXPECT_EQ(decoding_error<user::Celsius>(bytes_of(-1.0)), "below absolute zero");
  user::Private hidden;
  hidden.set(42);
  user::Private found;
  ASSERT_TRUE(decode(encode(std::vector{hidden}).substr(1), found, error)) << error.what;
  EXPECT_EQ(found.secret(), 42);
}

TEST(Codec, ADerivedClassDoesNotTravelAsItsBase) {
  EXPECT_TRUE(detail::FieldsOutside<user::Point>);
  EXPECT_FALSE(detail::FieldsOutside<user::Point3>);
}

TEST(Codec, AStructMayHaveFortyFields) {
  user::Forty forty{};
  forty.f1 = 1;
  forty.f40 = 40;
  user::Forty back{};
  DecodeError error;
  ASSERT_TRUE(decode(encode(forty), back, error));
  EXPECT_EQ(back.f1, 1);
  EXPECT_EQ(back.f40, 40);
  EXPECT_EQ(encode(forty).substr(0, 3), raw({0xdc, 0, 40}));
}

TEST(Codec, AnErrorNamesTheByte) {
  user::Point point;
  DecodeError error;
  ASSERT_FALSE(decode(raw({0x92, 1, 0xa1, 'x'}), point, error));
  EXPECT_EQ(error.what, "an integer expected");
  EXPECT_EQ(error.offset, 2U);
}

}  // namespace
}  // namespace monarch::codec

// A Writer that notes where large bytes lie instead of copying them.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <monarch/codec.hpp>

namespace user {

struct Photo {
  std::string name;
  monarch::codec::Bytes pixels;
};
MONARCH_FIELDS(Photo, name, pixels)

// Writes what is gone when it returns.
struct Made {
  std::size_t size = 0;
};
inline void codec_write(monarch::codec::Writer& writer, const Made& made) {
  const std::string text(made.size, 'm');
  writer.string(text);
}
inline bool codec_read(monarch::codec::Reader& reader, Made& made) {
  std::string_view text;
  if (!reader.string(text)) return false;
  made.size = text.size();
  return true;
}

}  // namespace user

namespace monarch {
namespace {

constexpr std::size_t kLarge = codec::Writer::kNotedBytes;

std::string joined(const codec::Writer& writer) {
  std::string whole;
  for (const std::string_view piece : writer.pieces()) whole += piece;
  return whole;
}

template <class T>
codec::Writer noted(const T& value) {
  codec::Writer writer;
  writer.note_large();
  codec::write(writer, value);
  return writer;
}

TEST(Writer, NotesLargeBytesWhereTheyLie) {
  const std::vector<user::Photo> photos{{"small", {std::string(kLarge - 1, 'a')}},
                                        {std::string(kLarge, 'n'), {std::string(3 * kLarge, 'b')}},
                                        {"", {std::string(kLarge, 'c')}}};
  const codec::Writer writer = noted(photos);
  const auto pieces = writer.pieces();
  ASSERT_EQ(pieces.size(), 6U);
  EXPECT_EQ(pieces[1].data(), photos[1].name.data());
  EXPECT_EQ(pieces[3].data(), photos[1].pixels.data.data());
  EXPECT_EQ(pieces[5].data(), photos[2].pixels.data.data());
  EXPECT_EQ(joined(writer), codec::encode(photos));
  EXPECT_EQ(writer.size(), codec::encode(photos).size());
  EXPECT_FALSE(writer.is_one());
}

TEST(Writer, GivesWhatItNotedInOneAsWell) {
  const std::vector<user::Photo> photos{{"x", {std::string(kLarge, 'b')}}};
  codec::Writer writer = noted(photos);
  EXPECT_EQ(writer.take(), codec::encode(photos));
  EXPECT_TRUE(writer.is_one());
  EXPECT_EQ(writer.size(), 0U);
}

TEST(Writer, CopiesWhatIsSmallAndWhatAClassMakesOfItself) {
  const std::string small(kLarge - 1, 's');
  EXPECT_TRUE(noted(small).is_one());
  const codec::Writer made = noted(user::Made{kLarge});
  EXPECT_TRUE(made.is_one());
  EXPECT_EQ(made.one(), codec::encode(std::string(kLarge, 'm')));
  const std::pair both(std::vector<user::Made>(1, user::Made{kLarge}), std::string(kLarge, 't'));
  const codec::Writer mixed = noted(both);
  EXPECT_EQ(mixed.pieces().size(), 2U) << "what follows a class is noted again";
  EXPECT_EQ(joined(mixed), codec::encode(both));
}

}  // namespace
}  // namespace monarch

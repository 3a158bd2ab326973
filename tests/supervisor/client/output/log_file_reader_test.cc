#include "supervisor/client/output/log_file_reader.h"

#include <gtest/gtest.h>

#include "tests/supervisor/client/scratch.h"

namespace monarch {

TEST(LogFileReader, ReadsAFileFromOffsetZero) {
  const Scratch scratch;
  const auto file = LogFileReader::open(scratch.write("a.out", "hello"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->first(), 0U);
  EXPECT_EQ(file->end(), 5U);
  EXPECT_EQ(file->read(1, 3), "ell");
  EXPECT_EQ(file->read(1, 300), "ello");
}

TEST(LogFileReader, SaysThatThereIsNone) {
  const Scratch scratch;
  EXPECT_EQ(LogFileReader::open(scratch.path() + "/a.out").error().code, ErrorCode::kNotFound);
}

TEST(LogFileReader, MapsOffsetsOfARotatedFile) {
  const Scratch scratch;
  const std::string path = scratch.write("a.out", "new");
  scratch.write("a.out.1", "older");
  scratch.write("a.out.start", "1000\n");
  const auto file = LogFileReader::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->first(), 995U);
  EXPECT_EQ(file->end(), 1003U);
  EXPECT_EQ(file->read(995, 100), "older");
  EXPECT_EQ(file->read(998, 100), "er");
  EXPECT_EQ(file->read(1000, 100), "new");
}

TEST(LogFileReader, KnowsARotationThatHasNotMovedTheFileYet) {
  const Scratch scratch;
  const std::string path = scratch.write("a.out", "still here");
  scratch.write("a.out.start", "0 10\n");
  const auto file = LogFileReader::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->first(), 0U);
  EXPECT_EQ(file->end(), 10U);
}

TEST(LogFileReader, KnowsARotationThatHasMovedTheFile) {
  const Scratch scratch;
  scratch.write("a.out.1", "moved away");
  scratch.write("a.out.start", "0 10\n");
  for (const bool new_file : {false, true}) {
    const std::string path = new_file ? scratch.write("a.out", "") : scratch.path() + "/a.out";
    const auto file = LogFileReader::open(path);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->first(), 0U);
    EXPECT_EQ(file->end(), 10U);
    EXPECT_EQ(file->read(6, 10), "away");
  }
}

TEST(LogFileReader, RefusesAStartThatContradictsTheFiles) {
  const Scratch scratch;
  const std::string path = scratch.write("a.out", "new");
  scratch.write("a.out.1", "longer than its end");
  scratch.write("a.out.start", "5\n");
  EXPECT_EQ(LogFileReader::open(path).error().code, ErrorCode::kInvalid);
  scratch.write("a.out.start", "nonsense");
  EXPECT_EQ(LogFileReader::open(path).error().code, ErrorCode::kInvalid);
}

}  // namespace monarch

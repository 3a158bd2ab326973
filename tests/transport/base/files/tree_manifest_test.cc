#include "transport/base/files/tree_manifest.h"

#include <gtest/gtest.h>

#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using namespace std::string_literals;

TreeEntry folder(std::string path) {
  TreeEntry entry;
  entry.path = std::move(path);
  entry.kind = TreeEntryKind::kFolder;
  return entry;
}

TreeEntry file(std::string path, std::string_view content) {
  TreeEntry entry;
  entry.path = std::move(path);
  entry.size = content.size();
  entry.sha256 = sha256(content);
  return entry;
}

TreeEntry link(std::string path, std::string target) {
  TreeEntry entry;
  entry.path = std::move(path);
  entry.kind = TreeEntryKind::kLink;
  entry.target = std::move(target);
  return entry;
}

// Of a manifest whose first entry is the folder `d`.
std::string error_of(const std::string& entries) {
  const auto parsed = parse_manifest("monarch-tree 1\nd d\0"s + entries);
  return parsed.ok() ? "" : parsed.error().message;
}

std::string a_file(std::string_view path) { return text("f - 3 ", sha256("abc"), ' ', path, '\0'); }
std::string a_link(std::string_view path, std::string_view target) { return text("l ", path, '\0', target, '\0'); }

TEST(TreeManifest, IsReadAsItWasWritten) {
  TreeManifest manifest;
  manifest.entries = {folder("a"), file("a/run.sh", "x"), link("a/to", "../b/c"),
                      folder("b"), file("b/c", ""),       file("caf\xc3\xa9 \\ 'n", "y")};
  manifest.entries[1].executable = true;
  const std::string bytes = encode_manifest(manifest);
  const auto parsed = parse_manifest(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, manifest);
  EXPECT_EQ(encode_manifest(*parsed), bytes);
  EXPECT_TRUE(parse_manifest(encode_manifest({})).ok()) << "a tree may be empty";
}

TEST(TreeManifest, HasEachContentOnce) {
  TreeManifest manifest;
  manifest.entries = {file("a", "same"), folder("b"), file("b/c", "other"), file("b/d", "same")};
  const std::vector<TreeBlob> blobs = blobs_of(manifest);
  ASSERT_EQ(blobs.size(), 2U);
  EXPECT_EQ(blobs[0], (TreeBlob{.sha256 = sha256("same"), .size = 4, .offset = 0}));
  EXPECT_EQ(blobs[1], (TreeBlob{.sha256 = sha256("other"), .size = 5, .offset = 4}));
}

TEST(TreeManifest, NamesNothingOutside) {
  const std::string long_name(256, 'n');
  std::string deep = "d";
  for (int i = 0; i < 64; ++i) deep += "/d";
  const std::vector<std::string> paths = {"/etc/passwd",
                                          "..",
                                          "../x",
                                          "d/..",
                                          "d/../x",
                                          "d/../../x",
                                          "./x",
                                          ".",
                                          "d/.",
                                          "d//x",
                                          "d/",
                                          "/",
                                          "//x",
                                          "",
                                          "x\ny",
                                          "x\x1b[2J",
                                          "x\ty",
                                          "x\x7f",
                                          "x\ry",
                                          "d/x/..",
                                          "....//../x/",
                                          "d/./x",
                                          std::string(1025, 'p'),
                                          long_name,
                                          deep,
                                          "nofolder/x",
                                          "d/x/y",
                                          "e/../d/x"};
  for (const std::string& path : paths) {
    EXPECT_NE(error_of(a_file(path)), "") << printable(path);
    EXPECT_NE(error_of(text("d ", path, '\0')), "") << "as a folder: " << printable(path);
    EXPECT_NE(error_of(a_link(path, "x")), "") << "as a link: " << printable(path);
  }
  // What only looks like it.
  for (const char* path : {"d/...", "d/..x", "d/x..", "d/-rf", "d/~", "d/$(reboot)", "d/%2e%2e", "d/..\\x"}) {
    EXPECT_EQ(error_of(a_file(path)), "") << path;
  }
}

TEST(TreeManifest, LinksLeadNowhereElse) {
  for (const char* target : {"/etc", "/", "../..", "../x/../..", "x/../../y", "./../../d", "../../d/x", "", "x\ny",
                             "x/./..", "//", "../d/../x"}) {
    EXPECT_NE(error_of(a_link("d/l", target)), "") << target;
  }
  EXPECT_EQ(error_of(a_link("d/l", "..")), "") << "the tree itself";
  EXPECT_NE(error_of(a_link("d/l", "m/..")), "") << "m may be a link that leads upwards";
  for (const char* target : {"x", "../x", "./x/y", "../d/l", "x/...", "x//y"}) {
    EXPECT_EQ(error_of(a_link("d/l", target)), "") << target;
  }
  // Nothing is written through one, nor through a file.
  EXPECT_NE(error_of(a_link("d/l", "..") + a_file("d/l/x")), "");
  EXPECT_NE(error_of(a_file("d/f") + a_file("d/f/x")), "");
}

TEST(TreeManifest, EachPathIsThereOnceInItsPlace) {
  EXPECT_EQ(error_of(a_file("d/a") + a_file("d/b")), "");
  EXPECT_NE(error_of(a_file("d/a") + a_file("d/a")), "");
  EXPECT_NE(error_of(a_file("d/a") + a_link("d/a", "b")), "");
  EXPECT_NE(error_of(text("d d", '\0')), "");
  EXPECT_NE(error_of(a_file("d/b") + a_file("d/a")), "");
}

TEST(TreeManifest, IsTotal) {
  const std::string hash = sha256("abc");
  for (const std::string& entry :
       {text("f - 3 ", hash, " d/x"), text("f - 03 ", hash, " d/x", '\0'), text("f - -3 ", hash, " d/x", '\0'),
        text("f - 99999999999999999999 ", hash, " d/x", '\0'), text("f - 1099511627777 ", hash, " d/x", '\0'),
        text("f w 3 ", hash, " d/x", '\0'), text("f - 3 ", hash.substr(1), " d/x", '\0'),
        text("f - 3 ", "../../../../../../../../../../../../../../../../../../../../../x", " d/x", '\0'),
        text("f - 3 ", std::string(64, 'A'), " d/x", '\0'), std::string("b d/x\0", 6), std::string("f\0", 2),
        std::string("\0", 1), std::string("d"), a_file("d/x") + text("f - 4 ", hash, " d/y", '\0')}) {
    EXPECT_NE(error_of(entry), "") << printable(entry);
  }
  EXPECT_FALSE(parse_manifest("").ok());
  EXPECT_FALSE(parse_manifest("monarch-tree 2\n").ok());
  EXPECT_FALSE(parse_manifest(std::string(TreeManifest::kBytes + 1, 'x')).ok());
}

TEST(TreeManifest, ABadPathIsPrintedWithoutItsEscapes) {
  EXPECT_EQ(error_of(a_file("d/\x1b[2J")), "entry 2 of the tree: `d/\\x1b[2J` has a control character");
}

}  // namespace
}  // namespace monarch

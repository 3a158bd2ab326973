#pragma once

// TreeManifest: what a tree of files consists of, without their bytes: what is sent to a host before it is asked which
// of them it lacks. Its text is canonical: the same tree has the same bytes wherever it was looked at, and their hash
// names the tree.
//
// Whoever parses one has it from a stranger. A parsed manifest names nothing outside of its tree: its paths are
// relative and have no dots as parts, what lies in a folder has that folder before it, and a link leads to a place
// within.
//
// Thread: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

enum class TreeEntryKind : std::uint8_t { kFile, kFolder, kLink };

struct TreeEntry {
  std::string path;  // relative, "a/b"
  TreeEntryKind kind = TreeEntryKind::kFile;
  bool executable = false;  // kFile
  std::uint64_t size = 0;   // kFile
  std::string sha256;       // kFile
  std::string target;       // kLink
  bool operator==(const TreeEntry&) const = default;
};

struct TreeManifest {
  static constexpr std::size_t kEntries = 100'000;
  static constexpr std::size_t kPathBytes = 1'024;
  static constexpr std::size_t kDepth = 64;
  static constexpr std::size_t kBytes = 32U << 20U;            // of its text
  static constexpr std::uint64_t kFileBytes = 1ULL << 40U;     // of one file
  static constexpr std::uint64_t kContentBytes = 1ULL << 44U;  // of all

  std::vector<TreeEntry> entries;  // by path, as bytes; a folder comes before what lies in it
  bool operator==(const TreeManifest&) const = default;
};

// Files of the same content are one blob.
struct TreeBlob {
  std::string sha256;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  // where all blobs lie one after the other
  bool operator==(const TreeBlob&) const = default;
};

// Each once, in the order of the first entry that has it.
std::vector<TreeBlob> blobs_of(const TreeManifest& manifest);

std::string encode_manifest(const TreeManifest& manifest);
// kInvalid says which entry is wrong, and how.
Result<TreeManifest> parse_manifest(std::string_view bytes);

// Why a path cannot be in a tree: "has a control character"; empty: it can.
std::string objection_to_path(std::string_view path);
// The same of a link at `path` that leads to `target`. Dots lead upwards only at the beginning of a target, where they
// are counted from a folder that is no link itself: no chain of links leads out.
std::string objection_to_link(std::string_view path, std::string_view target);

}  // namespace monarch

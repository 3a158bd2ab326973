#include "transport/base/files/tree_manifest.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kHeader = "monarch-tree 1\n";
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kNameBytes = 255;

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

bool is_hash(std::string_view digits) {
  return digits.size() == kHashDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Error wrong(std::size_t number, std::string_view what) {
  return Error{ErrorCode::kInvalid, text("entry ", number, " of the tree: ", what)};
}

// The field up to `end`, which is taken away with it.
bool take(std::string_view& rest, char end, std::string_view& field) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return false;
  field = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return true;
}

// Written in one way only, or one tree had two manifests.
bool parse_size(std::string_view digits, std::uint64_t& size) {
  if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  return error == std::errc{} && end == digits.data() + digits.size();
}

std::string take_file(std::string_view& rest, TreeEntry& entry) {
  std::string_view mode;
  std::string_view size;
  std::string_view hash;
  if (!take(rest, ' ', mode) || !take(rest, ' ', size) || !take(rest, ' ', hash)) return "is cut off";
  if (mode != "x" && mode != "-") return "has no mode";
  if (!parse_size(size, entry.size)) return "has no size";
  if (entry.size > TreeManifest::kFileBytes) return "is too large";
  if (!is_hash(hash)) return "has no sha256";
  entry.executable = mode == "x";
  entry.sha256 = hash;
  return "";
}

// What is wrong with it; empty: nothing.
std::string take_entry(std::string_view& rest, TreeEntry& entry) {
  std::string_view kind;
  if (!take(rest, ' ', kind) || kind.size() != 1) return "has no kind";
  if (kind == "f") {
    entry.kind = TreeEntryKind::kFile;
    if (std::string objection = take_file(rest, entry); !objection.empty()) return objection;
  } else if (kind == "d" || kind == "l") {
    entry.kind = kind == "d" ? TreeEntryKind::kFolder : TreeEntryKind::kLink;
  } else {
    return "has no kind that is known";
  }
  std::string_view path;
  if (!take(rest, '\0', path)) return "is cut off";
  entry.path = path;
  if (std::string objection = objection_to_path(path); !objection.empty()) {
    return text("`", printable(path), "` ", objection);
  }
  if (entry.kind != TreeEntryKind::kLink) return "";
  std::string_view target;
  if (!take(rest, '\0', target)) return "is cut off";
  entry.target = target;
  const std::string objection = objection_to_link(path, target);
  return objection.empty() ? "" : text("the link `", printable(path), "` ", objection);
}

// Of entries that came before.
class Seen {
 public:
  std::string add(const TreeEntry& entry) {
    if (!last_.empty() && entry.path <= last_) {
      return text("`", printable(entry.path), entry.path == last_ ? "` is there twice" : "` is not in its place");
    }
    const std::size_t slash = entry.path.rfind('/');
    // Of which a file or a link cannot be one: nothing is ever written through it.
    if (slash != std::string::npos && !folders_.contains(entry.path.substr(0, slash))) {
      return text("`", printable(entry.path), "` lies in no folder of the tree");
    }
    last_ = entry.path;
    if (entry.kind == TreeEntryKind::kFolder) folders_.insert(entry.path);
    bytes_ += entry.size;
    if (bytes_ > TreeManifest::kContentBytes) return "makes the tree too large";
    if (entry.kind != TreeEntryKind::kFile) return "";
    const bool same = sizes_.emplace(entry.sha256, entry.size).first->second == entry.size;
    return same ? "" : text("`", printable(entry.path), "` has a size that another of its content has not");
  }

 private:
  std::string last_;
  std::set<std::string, std::less<>> folders_;
  std::map<std::string, std::uint64_t> sizes_;  // by hash
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::vector<TreeBlob> blobs_of(const TreeManifest& manifest) {
  std::vector<TreeBlob> blobs;
  std::set<std::string_view> seen;
  std::uint64_t offset = 0;
  for (const TreeEntry& entry : manifest.entries) {
    if (entry.kind != TreeEntryKind::kFile || !seen.insert(entry.sha256).second) continue;
    blobs.push_back({.sha256 = entry.sha256, .size = entry.size, .offset = offset});
    offset += entry.size;
  }
  return blobs;
}

std::string encode_manifest(const TreeManifest& manifest) {
  std::string out(kHeader);
  for (const TreeEntry& entry : manifest.entries) {
    switch (entry.kind) {
      case TreeEntryKind::kFile:
        out += text("f ", entry.executable ? "x " : "- ", entry.size, ' ', entry.sha256, ' ', entry.path, '\0');
        break;
      case TreeEntryKind::kFolder: out += text("d ", entry.path, '\0'); break;
      case TreeEntryKind::kLink: out += text("l ", entry.path, '\0', entry.target, '\0'); break;
    }
  }
  return out;
}

Result<TreeManifest> parse_manifest(std::string_view bytes) {
  if (bytes.size() > TreeManifest::kBytes) {
    return Error{ErrorCode::kInvalid,
                 text("a tree's manifest of ", bytes.size(), " bytes; at most ", TreeManifest::kBytes)};
  }
  if (!bytes.starts_with(kHeader)) return Error{ErrorCode::kInvalid, "this is no manifest of a tree"};
  bytes.remove_prefix(kHeader.size());
  TreeManifest manifest;
  Seen seen;
  while (!bytes.empty()) {
    const std::size_t number = manifest.entries.size() + 1;
    if (number > TreeManifest::kEntries) return wrong(number, text("more than ", TreeManifest::kEntries));
    TreeEntry entry;
    if (const std::string objection = take_entry(bytes, entry); !objection.empty()) return wrong(number, objection);
    if (const std::string objection = seen.add(entry); !objection.empty()) return wrong(number, objection);
    manifest.entries.push_back(std::move(entry));
  }
  return manifest;
}

std::string objection_to_path(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.front() == '/') return "is no relative path";
  if (path.size() > TreeManifest::kPathBytes) return text("has more than ", TreeManifest::kPathBytes, " bytes");
  if (std::any_of(path.begin(), path.end(), is_control)) return "has a control character";
  std::size_t depth = 0;
  for (std::size_t begin = 0; begin <= path.size(); ++depth) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return text("has the part `", part, "`");
    if (part.size() > kNameBytes) return text("has a part of more than ", kNameBytes, " bytes");
    begin = end + 1;
  }
  if (depth > TreeManifest::kDepth) return text("is more than ", TreeManifest::kDepth, " folders deep");
  return "";
}

std::string objection_to_link(std::string_view path, std::string_view target) {
  if (target.empty()) return "leads nowhere";
  if (target.size() > TreeManifest::kPathBytes) return "is too long";
  if (std::any_of(target.begin(), target.end(), is_control)) return "leads to a name with a control character";
  std::string outside = text("leads out of the tree, to `", printable(target), "`");
  if (target.front() == '/') return outside;
  auto above = std::count(path.begin(), path.end(), '/');
  bool began = false;  // a part that is not ..
  for (std::size_t begin = 0; begin <= target.size();) {
    const std::size_t end = std::min(target.find('/', begin), target.size());
    const std::string_view part = target.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      began = true;
    } else if (began || --above < 0) {
      return outside;
    }
  }
  return "";
}

}  // namespace monarch

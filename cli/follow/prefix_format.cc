#include "cli/follow/prefix_format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/term/ranges_text.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostHosts = 4;
constexpr std::size_t kLongestFormat = 256;

const std::vector<std::string>& placeholder_names() {
  // In the order of PrefixFormat::Field, behind kLiteral.
  static const std::vector<std::string> names = {"job",  "mesh",       "rank",   "host", "generation",
                                                 "gang", "local_rank", "stream", "time", "count"};
  return names;
}

std::string host_names_text(const std::set<std::string>& hosts) {
  const std::vector<std::string> all(hosts.begin(), hosts.end());
  if (all.size() <= kMostHosts) return join(all, ",");
  return text(join({all.begin(), all.begin() + kMostHosts}, ","), ",…");
}

std::string generations_text(const std::set<std::uint64_t>& generations) {
  std::vector<std::string> all;
  for (const std::uint64_t generation : generations) all.push_back(text(generation));
  return join(all, ",");
}

Error wrong_format(std::string_view format, std::size_t at, const std::string& what) {
  return Error{ErrorCode::kInvalid, text("`", printable(format), "`, column ", at + 1, ": ", what)};
}

std::string unknown_placeholder(std::string_view name) {
  const auto near = nearest(std::string(name), placeholder_names());
  return text("there is no {", printable(name), "}; ",
              near ? text("did you mean {", *near, "}?") : text("there are: {", join(placeholder_names(), "} {"), "}"));
}

}  // namespace

void LineSources::add(const LineSource& source) {
  ranks.insert(source.rank);
  gangs.insert(source.gang);
  local_ranks.insert(source.local_rank);
  generations.insert(source.generation);
  hosts.insert(source.host);
}

std::string fold_mark(const LineSources& sources) {
  return sources.folded() ? text("×", sources.ranks.size(), " (", ranges_text(sources.ranks), ") ") : std::string();
}

Result<PrefixFormat> PrefixFormat::parse(std::string_view format) {
  PrefixFormat made;
  made.written_ = true;
  if (format.size() > kLongestFormat) {
    return Error{ErrorCode::kInvalid, text("a format of ", format.size(), " bytes; at most ", kLongestFormat)};
  }
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) made.parts_.push_back({.field = Field::kLiteral, .literal = std::exchange(literal, {})});
  };
  bool has_rank = false;
  bool has_count = false;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if (printable(format.substr(i, 1)).starts_with("\\x") && static_cast<unsigned char>(c) < 0x80) {
      return wrong_format(format, i, "a control character");
    }
    const bool doubled = i + 1 < format.size() && format[i + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      literal.push_back(c);
      ++i;
    } else if (c == '}') {
      return wrong_format(format, i, "this } closes nothing; }} stands for one");
    } else if (c == '{') {
      const std::size_t close = format.find('}', i);
      if (close == std::string_view::npos) return wrong_format(format, i, "this { is never closed; {{ stands for one");
      const std::string_view name = format.substr(i + 1, close - i - 1);
      const auto& names = placeholder_names();
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) return wrong_format(format, i, unknown_placeholder(name));
      end_literal();
      const auto field = static_cast<Field>(found - names.begin() + 1);
      made.parts_.push_back({.field = field, .literal = ""});
      made.has_time_ = made.has_time_ || field == Field::kTime;
      has_rank = has_rank || field == Field::kRank;
      has_count = has_count || field == Field::kCount;
      i = close;
    } else {
      literal.push_back(c);
    }
  }
  end_literal();
  made.names_fold_ = has_rank && has_count;
  for (const Part& part : made.parts_) {
    if (printable(part.literal) == part.literal) continue;
    return Error{ErrorCode::kInvalid, text("`", printable(format), "` holds bytes that are no text")};
  }
  return made;
}

std::string PrefixFormat::value(Field field, const LineSources& sources, WallTime time) {
  switch (field) {
    case Field::kLiteral: return "";
    case Field::kJob: return sources.first.job;
    case Field::kMesh: return sources.first.mesh;
    case Field::kRank: return ranges_text(sources.ranks);
    case Field::kHost: return host_names_text(sources.hosts);
    case Field::kGeneration: return generations_text(sources.generations);
    case Field::kGang: return ranges_text(sources.gangs);
    case Field::kLocalRank: return ranges_text(sources.local_ranks);
    case Field::kStream: return sources.first.stream == OutputStream::kStdout ? "stdout" : "stderr";
    case Field::kTime: return to_text(time);
    case Field::kCount: return text(sources.ranks.size());
  }
  return "";
}

std::string PrefixFormat::expand(const LineSources& sources, WallTime time) const {
  if (!written_) {
    const std::string host = sources.hosts.size() == 1 ? text("@", *sources.hosts.begin()) : std::string();
    const std::string count = sources.folded() ? text(" ×", sources.ranks.size()) : std::string();
    return text("[", sources.first.mesh, "/", ranges_text(sources.ranks), host, count, "] ");
  }
  std::string out;
  for (const Part& part : parts_) {
    out += part.field == Field::kLiteral ? part.literal : value(part.field, sources, time);
  }
  return names_fold_ ? out : out + fold_mark(sources);
}

}  // namespace monarch

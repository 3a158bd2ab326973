#include "cli/away/viewer_frames.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kNameBytes = 4096;  // of a file, PATH_MAX
constexpr std::size_t kNameParts = 5;
constexpr std::size_t kWords = 256;
constexpr std::size_t kVariables = 64;
constexpr std::int64_t kVersion = 1;

void append_number(std::string& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>((number >> shift) & 0xFFU));
}

std::uint64_t number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) number = number << 8U | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

bool is_known(std::uint8_t kind) {
  constexpr auto kFirstThere = static_cast<std::uint8_t>(ViewerFrameKind::kWelcome);
  return (kind >= static_cast<std::uint8_t>(ViewerFrameKind::kOrder) &&
          kind <= static_cast<std::uint8_t>(ViewerFrameKind::kPing)) ||
         (kind >= kFirstThere && kind <= static_cast<std::uint8_t>(ViewerFrameKind::kPong));
}

Error unreadable(std::string_view what) { return {ErrorCode::kInvalid, text(what, " that cannot be read")}; }

// An object of version 1.
Result<Json> parse_object(std::string_view payload, std::string_view what) {
  auto parsed = parse_json(payload, {.bytes = kViewerPayloadBytes, .depth = 6});
  if (!parsed.ok() || !parsed->is_object()) return unreadable(what);
  if (parsed->get_int64("v") != kVersion) {
    return Error{ErrorCode::kUnsupported, text(what, " of another version of monarch")};
  }
  return std::move(*parsed);
}

bool is_file_name(const std::string& name) {
  if (name == kReportFileName) return true;
  if (!name.starts_with(kArtifactsFolder) || name.size() > kNameBytes || printable(name) != name) return false;
  std::string_view rest = std::string_view(name).substr(kArtifactsFolder.size());
  for (std::size_t parts = 1; parts < kNameParts; ++parts) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part.front() == '.') return false;
    if (slash == std::string_view::npos) return true;
    rest.remove_prefix(slash + 1);
  }
  return false;
}

}  // namespace

bool is_counted(ViewerFrameKind kind) {
  switch (kind) {
    case ViewerFrameKind::kSignal:
    case ViewerFrameKind::kWindow:
    case ViewerFrameKind::kClosed:
    case ViewerFrameKind::kOut:
    case ViewerFrameKind::kErr:
    case ViewerFrameKind::kFile:
    case ViewerFrameKind::kFileBytes:
    case ViewerFrameKind::kEnd: return true;
    case ViewerFrameKind::kOrder:
    case ViewerFrameKind::kTaken:
    case ViewerFrameKind::kPing:
    case ViewerFrameKind::kWelcome:
    case ViewerFrameKind::kRefused:
    case ViewerFrameKind::kPong: return false;
  }
  return false;
}

std::string encode_frame(ViewerFrameKind kind, std::string_view payload) {
  MONARCH_ASSERT(payload.size() <= kViewerPayloadBytes);
  std::string frame(1, static_cast<char>(kind));
  append_number(frame, payload.size());
  frame.append(payload);
  return frame;
}

Result<std::optional<ViewerFrame>> ViewerFrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.empty()) return std::optional<ViewerFrame>();
  const auto kind = static_cast<std::uint8_t>(rest.front());
  if (!is_known(kind)) return Error{ErrorCode::kInvalid, text("a frame of the unknown kind ", static_cast<int>(kind))};
  if (rest.size() < kViewerHeaderBytes) return std::optional<ViewerFrame>();
  const std::uint64_t size = number_at(rest, 1);
  if (size > kViewerPayloadBytes) {
    return Error{ErrorCode::kInvalid,
                 text("a frame of ", size, " bytes, of which ", kViewerPayloadBytes, " are the most")};
  }
  if (rest.size() < kViewerHeaderBytes + size) return std::optional<ViewerFrame>();
  ViewerFrame frame{.kind = static_cast<ViewerFrameKind>(kind),
                    .payload = std::string(rest.substr(kViewerHeaderBytes, size))};
  begin_ += kViewerHeaderBytes + size;
  // Moving the rest costs as much as copying it: not at every frame.
  if (begin_ == bytes_.size() || begin_ > kViewerPayloadBytes) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  return std::optional<ViewerFrame>(std::move(frame));
}

std::string encode_order(const ViewerOrder& order) {
  Json words = Json::array();
  for (const std::string& word : order.words) words.append(word);
  Json variables = Json::array();
  for (const auto& [name, value] : order.variables) variables.append(Json::array({name, value}));
  return to_json(Json::object({{"v", kVersion},
                               {"words", std::move(words)},
                               {"job", order.job},
                               {"variables", std::move(variables)},
                               {"terminal", order.terminal},
                               {"junit", order.junit},
                               {"artifacts", order.artifacts},
                               {"lingers", order.lingers},
                               {"token", order.token},
                               {"taken", order.taken}}));
}

Result<ViewerOrder> decode_order(std::string_view payload) {
  MONARCH_ASSIGN(const Json json, parse_object(payload, "an order"));
  ViewerOrder order{.job = json.get_string("job").value_or(""),
                    .terminal = json.get_string("terminal").value_or(""),
                    .junit = json.get_bool("junit").value_or(false),
                    .artifacts = json.get_bool("artifacts").value_or(false),
                    .lingers = std::min(json.get_uint64("lingers").value_or(0), kViewerLingersMost),
                    .token = json.get_string("token").value_or(""),
                    .taken = json.get_uint64("taken").value_or(0)};
  const Json* words = json.find("words");
  const Json* variables = json.find("variables");
  if (words == nullptr || variables == nullptr || words->items().size() > kWords ||
      variables->items().size() > kVariables) {
    return unreadable("an order");
  }
  for (const Json& item : words->items()) {
    auto word = item.as_string();
    if (!word || word->find('\0') != std::string::npos) return unreadable("an order");
    order.words.push_back(std::move(*word));
  }
  for (const Json& item : variables->items()) {
    if (item.items().size() != 2) return unreadable("an order");
    auto name = item.items()[0].as_string();
    auto value = item.items()[1].as_string();
    const bool usable = name && value && !name->empty() &&
                        name->find_first_of(std::string_view("=\0", 2)) == name->npos &&
                        value->find('\0') == value->npos;
    if (!usable) return unreadable("an order");
    order.variables.emplace_back(std::move(*name), std::move(*value));
  }
  return order;
}

std::string encode_welcome(const ViewerWelcome& welcome) {
  return to_json(Json::object(
      {{"v", kVersion}, {"token", welcome.token}, {"heard", welcome.heard}, {"version", welcome.version}}));
}

Result<ViewerWelcome> decode_welcome(std::string_view payload) {
  MONARCH_ASSIGN(const Json json, parse_object(payload, "a welcome"));
  ViewerWelcome welcome{.token = json.get_string("token").value_or(""),
                        .heard = json.get_uint64("heard").value_or(0),
                        .version = json.get_string("version").value_or("")};
  return welcome;
}

std::string encode_file(const ViewerFile& file) {
  return to_json(Json::object({{"v", kVersion}, {"name", file.name}, {"size", file.size}}));
}

Result<ViewerFile> decode_file(std::string_view payload) {
  MONARCH_ASSIGN(const Json json, parse_object(payload, "the beginning of a file"));
  const auto name = json.get_string("name");
  const auto size = json.get_uint64("size");
  if (!name || !size) return unreadable("the beginning of a file");
  if (!is_file_name(*name)) {
    return Error{ErrorCode::kInvalid, text("a file called `", printable(std::string_view(*name).substr(0, 256)),
                                           "`, which is none that was asked for")};
  }
  return ViewerFile{.name = *name, .size = *size};
}

std::string encode_end(const ViewerEnd& end) {
  return to_json(Json::object(
      {{"v", kVersion}, {"exit_code", end.exit_code}, {"signal", end.signal}, {"job", glance_json(end.job)}}));
}

Result<ViewerEnd> decode_end(std::string_view payload) {
  MONARCH_ASSIGN(const Json json, parse_object(payload, "an end"));
  const std::int64_t exit_code = json.get_int64("exit_code").value_or(-1);
  const std::int64_t signal = json.get_int64("signal").value_or(-1);
  if (exit_code < 0 || exit_code > 255 || signal < 0 || signal > 64) return unreadable("an end");
  ViewerEnd end{.exit_code = static_cast<int>(exit_code), .signal = static_cast<int>(signal), .job = {}};
  if (const Json* job = json.find("job")) end.job = glance_of(*job);
  return end;
}

std::string encode_numbers(std::initializer_list<std::uint64_t> numbers) {
  std::string payload;
  for (const std::uint64_t number : numbers) append_number(payload, number);
  return payload;
}

Result<std::vector<std::uint64_t>> decode_numbers(std::string_view payload, std::size_t count) {
  if (payload.size() != count * kNumberBytes) return unreadable("a number");
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = 0; at < payload.size(); at += kNumberBytes) numbers.push_back(number_at(payload, at));
  return numbers;
}

}  // namespace monarch

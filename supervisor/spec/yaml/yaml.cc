#include "supervisor/spec/yaml/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <istream>
#include <set>
#include <utility>

#include "supervisor/spec/yaml/metered_buffer.h"
#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/spans.h"
#include "transport/base/base64.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kBinary = "tag:yaml.org,2002:binary";  // written `!!binary`
constexpr std::size_t kMostNodes = 20'000;  // more values are refused: yaml-cpp's time and memory grow with them

// Ends the parse from within an event; the reason has been reported.
struct ParseStopped {};

// WARNING: yaml-cpp 0.7 keeps every token of a bracket until it is closed, since it might be a key: some 250 bytes for
// each byte of text, and no event before. So the text ends early if too much of it is read without an event.
constexpr std::size_t kMostBetweenEvents = 128U << 10U;

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view source, MeteredBuffer& meter, Report& report, std::uint32_t number)
      : source_(source), meter_(meter), report_(report), number_(number) {}

  Place end_of_text() const {
    const std::size_t end = source_.find_last_not_of(" \t\r\n");
    if (end == std::string_view::npos) return whole();
    const std::string_view before = source_.substr(0, end);
    const std::size_t line_start = before.rfind('\n') + 1;  // 0 if there is none before
    return {static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1),
            static_cast<std::uint32_t>(end - line_start + 1), 1, number_};
  }
  Place whole() const { return {.source = number_}; }
  Place last_event() const { return last_event_.line == 0 ? whole() : last_event_; }
  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    report_.error(
        "E0007", place_of(mark, 3),
        {.message = "a second document", .label = "starts here", .help = "a file holds one document: split it"});
    throw ParseStopped{};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    if (!check_properties(mark, "?", anchor)) node.kind = YamlNode::Kind::kRefused;
    node.place = place_of(mark, plain_span(rest_of_line(mark), ""));
    add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse_alias(mark);
    YamlNode node;
    node.kind = YamlNode::Kind::kRefused;
    node.place = place_of(mark, 1);
    add(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node;
    if (tag == kBinary && anchor == 0) return add_bytes(mark, value);
    node.kind = check_properties(mark, tag, anchor) ? YamlNode::Kind::kScalar : YamlNode::Kind::kRefused;
    node.quoted = tag != "?";
    node.place = place_of(mark, node.quoted ? quoted_span(rest_of_line(mark)) : plain_span(rest_of_line(mark), value));
    node.text = value;
    if (node.quoted) check_closed(mark);
    if (node.quoted) check_escapes(node);
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  void refuse_alias(const YAML::Mark& mark) {
    report_.error("E0004", place_of(mark, word_span(rest_of_line(mark))),
                  {.message = "an alias",
                   .label = "aliases are not taken",
                   .help = "write the value out, or put a text that starts with `*` in quotes"});
  }

  Place place_of(const YAML::Mark& mark, std::size_t length) const {
    return {static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1),
            static_cast<std::uint32_t>(std::max<std::size_t>(1, length)), number_};
  }

 private:
  struct Open {
    YamlNode node;
    std::set<std::string, std::less<>> seen;  // keys of a map
    bool has_key = false;                     // the next node is the value of the last key
    bool refused = false;                     // read on for further faults, then dropped
  };

  std::string_view rest(const YAML::Mark& mark) const {
    const auto at = static_cast<std::size_t>(std::max(0, mark.pos));
    return at < source_.size() ? source_.substr(at) : std::string_view();
  }

  std::string_view rest_of_line(const YAML::Mark& mark) const {
    constexpr std::size_t kLongestMarked = 1024;  // looked at for each value: a whole line would make this quadratic
    std::string_view line = rest(mark).substr(0, kLongestMarked);
    line = line.substr(0, line.find('\n'));
    return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  }

  // WARNING: yaml-cpp 0.7 takes the end of the file for the closing quote, and all before it for the text.
  void check_closed(const YAML::Mark& mark) {
    const std::string_view here = rest(mark);
    const bool quotes = here.starts_with('"') || here.starts_with('\'');
    if (!quotes || end_of_quoted(here) != std::string_view::npos) return;
    report_.error("E0001", place_of(mark, 1),
                  {.message = "this is not YAML", .label = "these quotes are not closed", .help = "close them"});
    throw ParseStopped{};
  }

  void add_bytes(const YAML::Mark& mark, const std::string& value) {
    YamlNode node{
        .kind = YamlNode::Kind::kScalar, .place = place_of(mark, word_span(rest_of_line(mark))), .quoted = true};
    if (auto bytes = from_base64(value)) {
      node.text = std::move(*bytes);
    } else {
      node.kind = YamlNode::Kind::kRefused;
      report_.error("E0005", node.place, {.message = "`!!binary` without base64", .label = "what follows is none"});
    }
    add(std::move(node));
  }

  // WARNING: yaml-cpp 0.7 makes single bytes of the escapes \N and \_, which are no UTF-8.
  void check_escapes(const YamlNode& node) {
    if (is_utf8(node.text)) return;
    report_.error("E0008", node.place,
                  {.message = "an escape that yields no UTF-8",
                   .label = "`\\N` or `\\_`",
                   .help = "write the character itself, or \"\\u0085\" and \"\\u00a0\""});
  }

  // WARNING: yaml-cpp 0.7 gives a quoted scalar the tag "!", as it does for one that is written so, and drops a
  // verbatim tag `!<?>`; what stands in the text at the mark tells them apart. False: with a tag, the value means
  // something that nobody here knows.
  bool check_properties(const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor) {
    const std::string_view here = rest(mark);
    const char first = here.empty() ? ' ' : here[0];
    if (anchor != 0 || first == '&') {
      report_.error("E0004", place_of(mark, word_span(rest_of_line(mark))),
                    {.message = "an anchor",
                     .label = "anchors are not taken",
                     .help = "remove it, or put a text that starts with `&` in quotes"});
      return true;
    }
    if (first != '!' && (tag == "?" || tag == "!")) return true;
    report_.error("E0005", place_of(mark, word_span(rest_of_line(mark))),
                  {.message = "a tag",
                   .label = "tags are not taken",
                   .help = "remove it, or put a text that starts with `!` in quotes"});
    return false;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor) {
    const bool refused = !check_properties(mark, tag, anchor);
    if (stack_.size() >= limits::kSpecDepth) {
      report_.error("E0003", place_of(mark, 1),
                    {.message = text("nested deeper than ", limits::kSpecDepth, " levels")});
      throw ParseStopped{};
    }
    count(mark);
    Open opened;
    opened.refused = refused;
    opened.node.kind = kind;
    opened.node.place = place_of(mark, word_length_of_opening(mark));
    stack_.push_back(std::move(opened));
  }

  std::size_t word_length_of_opening(const YAML::Mark& mark) const {
    const std::string_view here = rest(mark);
    const bool bracket = !here.empty() && (here[0] == '[' || here[0] == '{' || here[0] == '-');
    return bracket ? 1 : word_span(rest_of_line(mark));
  }

  void count(const YAML::Mark& mark) {
    meter_.event();
    last_event_ = place_of(mark, 1);
    if (++nodes_ <= kMostNodes) return;
    report_.error("E0012", place_of(mark, 1),
                  {.message = text("more than ", kMostNodes, " values"), .help = "data belongs into files of its own"});
    throw ParseStopped{};
  }

  void close() {
    YamlNode node = std::move(stack_.back().node);
    if (stack_.back().refused) node = {.kind = YamlNode::Kind::kRefused, .place = node.place};
    stack_.pop_back();
    place(std::move(node));
  }

  void add(YamlNode node) {
    YAML::Mark mark;
    mark.line = static_cast<int>(node.place.line) - 1;
    mark.column = static_cast<int>(node.place.column) - 1;
    count(mark);
    place(std::move(node));
  }

  void place(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::kMap && !parent.has_key) {
      take_key(parent, std::move(node));
      return;
    }
    parent.has_key = false;
    parent.node.items.push_back(std::move(node));
    if (parent.node.kind == YamlNode::Kind::kMap) drop_refused_entry(parent.node);
  }

  void take_key(Open& parent, YamlNode node) {
    parent.has_key = true;
    YamlKey key{std::move(node.text), node.place};
    if (node.kind != YamlNode::Kind::kScalar) {
      if (node.kind != YamlNode::Kind::kRefused) {
        report_.error("E0104", node.place,
                      {.message = "a key that is not a text", .label = text("is ", kind_name(node))});
      }
      key.place.line = 0;
    } else if (!is_utf8(key.text)) {
      report_.error("E0104", node.place, {.message = "a key that is not a text", .label = "its bytes are not UTF-8"});
      key.place.line = 0;
    } else if (key.text == "<<" && !node.quoted) {
      report_.error("E0006", key.place,
                    {.message = "a merge key", .label = "merge keys are not taken", .help = "write the keys out"});
      key.place.line = 0;
    } else if (!parent.seen.insert(key.text).second) {
      const Place first = parent.node.find_key(key.text)->place;
      report_.error("E0102", key.place,
                    {.message = text("duplicate key `", key.text, "`"),
                     .label = text("written before, in line ", first.line),
                     .help = "keep one of the two"});
      key.place.line = 0;
    }
    parent.node.keys.push_back(std::move(key));
  }

  // A key that was refused (line 0) takes its value with it: nobody checks it further.
  static void drop_refused_entry(YamlNode& map) {
    if (map.keys.back().place.line != 0) return;
    map.keys.pop_back();
    map.items.pop_back();
  }

  std::string_view source_;
  MeteredBuffer& meter_;
  Report& report_;
  std::uint32_t number_;
  Place last_event_;
  YamlNode root_;
  std::vector<Open> stack_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

struct Wording {
  std::string_view theirs;
  std::string_view label;
  std::string_view help;
};

void report_parse_error(const YAML::ParserException& error, TreeBuilder& builder, std::string_view source,
                        Report& report) {
  const Place place = error.mark.is_null() ? builder.whole() : builder.place_of(error.mark, 1);
  const auto at = static_cast<std::size_t>(std::max(0, error.mark.pos));
  if (error.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR) || (at < source.size() && source[at] == '*')) {
    builder.refuse_alias(error.mark);
    return;
  }
  static const Wording kWordings[] = {
      {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab in the indentation", "YAML indents with spaces"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "the `{` is not closed before this", "close it with `}`"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "the `[` is not closed before this", "close it with `]`"},
      {YAML::ErrorMsg::FLOW_END, "closes a bracket that is not open", "remove it, or put the text in quotes"},
      {YAML::ErrorMsg::END_OF_MAP, "does not line up with the keys above it",
       "the keys of one map start in the same column, and a list does not go on as a map"},
      {YAML::ErrorMsg::END_OF_SEQ, "does not line up with the `-` above it",
       "the items of one list start in the same column"},
      {YAML::ErrorMsg::MAP_VALUE, "a `:` where no key can end",
       "put a text that contains `: ` in quotes, or end the key of the line before with `:`"},
      {YAML::ErrorMsg::MAP_KEY, "a key where none can be", ""},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a `-` where no list can start",
       "start the list on a line of its own, or write `[a, b]`"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "the quotes are not closed", "close them"},
      {YAML::ErrorMsg::DOC_IN_SCALAR, "the quotes are not closed before this line", "close them"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "no value starts like this", "put the text in quotes"},
      {YAML::ErrorMsg::CHAR_IN_BLOCK, "does not belong behind `|` or `>`", "start the text on the next line"},
  };
  Fault fault{.message = "this is not YAML", .label = error.msg, .help = ""};
  const bool flow = error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
  if (flow && source.find_first_not_of(" \t\r\n", at) == std::string_view::npos) {
    fault.label = "the text ends, and a bracket or a quote is still open";
    // WARNING: yaml-cpp 0.7 gives the end of a text without a last newline the line and column of its beginning.
    const bool lost = error.mark.line == 0 && error.mark.column == 0;
    report.error("E0001", lost ? builder.end_of_text() : place, std::move(fault));
    return;
  }
  for (const Wording& wording : kWordings) {
    if (error.msg != wording.theirs) continue;
    fault.label = wording.label;
    fault.help = wording.help;
  }
  report.error("E0001", place, std::move(fault));
}

std::nullopt_t report_too_long(const TreeBuilder& builder, Report& report) {
  report.error("E0014", builder.last_event(),
               {.message = text("more than ", kMostBetweenEvents, " bytes in a single text, comment or bracket"),
                .label = builder.last_event().line == 0 ? "" : "behind this",
                .help = "write long lists with one `- item` per line"});
  return std::nullopt;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  if (kind != Kind::kMap) return nullptr;
  for (std::size_t i = 0; i < keys.size() && i < items.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) {
  return const_cast<YamlNode*>(std::as_const(*this).find(key));  // this node is not const, so no part of it is
}

const YamlKey* YamlNode::find_key(std::string_view key) const {
  for (const YamlKey& candidate : keys) {
    if (candidate.text == key) return &candidate;
  }
  return nullptr;
}

std::string_view kind_name(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNothing: return "nothing";
    case YamlNode::Kind::kScalar: return "a single value";
    case YamlNode::Kind::kList: return "a list";
    case YamlNode::Kind::kMap: return "a map";
    case YamlNode::Kind::kRefused: return "a refused value";
  }
  return "nothing";
}

std::optional<YamlNode> read_yaml(std::string_view source, Report& report, std::uint32_t number) {
  if (!check_source(source, report, number)) return std::nullopt;
  MeteredBuffer buffer(source, kMostBetweenEvents);
  std::istream stream(&buffer);
  TreeBuilder builder(source, buffer, report, number);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    parser.HandleNextDocument(builder);  // reports a second document if there is one
    if (buffer.ran_out()) return report_too_long(builder, report);
  } catch (const ParseStopped&) {
    return std::nullopt;
  } catch (const YAML::ParserException& error) {
    if (buffer.ran_out()) return report_too_long(builder, report);
    report_parse_error(error, builder, source, report);
    return std::nullopt;
  } catch (const std::exception& error) {
    report.error("E0001", {.source = number}, {.message = text("this is not YAML: ", error.what())});
    return std::nullopt;
  }
  return builder.take_root();
}

}  // namespace monarch

#include "supervisor/spec/hosts/hosts_file.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/yaml_tree.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

struct Word {
  std::string_view text;
  Place place;
};

std::vector<Word> words_of(std::string_view line, std::uint32_t number, std::uint32_t source) {
  std::vector<Word> words;
  for (std::size_t begin = 0;;) {
    begin = line.find_first_not_of(kBlanks, begin);
    if (begin == std::string_view::npos || line[begin] == '#') return words;
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back({.text = line.substr(begin, end - begin),
                     .place = {.line = number,
                               .column = static_cast<std::uint32_t>(begin + 1),
                               .length = static_cast<std::uint32_t>(end - begin),
                               .source = source}});
    begin = end;
  }
}

bool is_ranks(std::string_view key) { return key == "slots" || key == "max_slots" || key == "max-slots"; }

// One of "address=10.0.0.7"; false: reported.
bool take_option(YamlNode& host, const Word& word, Report& report) {
  const std::size_t sign = std::min(word.text.find('='), word.text.size());
  const std::string_view key = word.text.substr(0, sign);
  const bool known = key == "address" || key == "user" || key == "port";
  if (known && sign < word.text.size() && host.find(key) == nullptr) {
    Place place = word.place;
    place.column += static_cast<std::uint32_t>(sign + 1);
    place.length = std::max<std::uint32_t>(1, place.length - static_cast<std::uint32_t>(sign + 1));
    append_key(host, std::string(key), scalar_node(std::string(word.text.substr(sign + 1)), place));
    return true;
  }
  std::string help = "behind a host stand address=, user= and port=";
  if (known && sign < word.text.size()) help = text("`", key, "=` is there twice: keep one");
  if (is_ranks(key)) help = "leave it out: `dims` of a mesh say how many ranks a host has";
  if (sign == word.text.size() && is_host_name(word.text)) help = "write each host on a line of its own, or `a,b`";
  report.error("E0221", word.place,
               {.message = "a file of hosts has one host, or one list of hosts, on each line",
                .label = "is not understood",
                .help = std::move(help)});
  return false;
}

}  // namespace

YamlNode read_hosts_file(std::string_view text_of_it, Report& report, std::uint32_t number) {
  YamlNode list{.kind = YamlNode::Kind::kList, .place = {.line = 1, .column = 1, .length = 1, .source = number}};
  if (!is_utf8(text_of_it)) {
    report.error(
        "E0008", {.source = number},
        {.message = "the file of hosts is not plain UTF-8 text", .label = "", .help = "write one host on each line"});
    list.kind = YamlNode::Kind::kRefused;
    return list;
  }
  std::uint32_t line_number = 0;
  while (!text_of_it.empty()) {
    const std::size_t end = std::min(text_of_it.find('\n'), text_of_it.size());
    const std::vector<Word> words = words_of(text_of_it.substr(0, end), ++line_number, number);
    text_of_it.remove_prefix(std::min(end + 1, text_of_it.size()));
    if (words.empty()) continue;
    if (words[0].text.find(':') != std::string::npos && numeric_address(words[0].text) != NumericAddress::kNone) {
      report.error("E0208", words[0].place,
                   {.message = "a file of hosts begins each line with the name of a host, not with its address",
                    .label = "an address of IPv6 is no name",
                    .help = text("did you mean `gpu1 address=", words[0].text, "`?")});
      continue;
    }
    YamlNode name = scalar_node(std::string(words[0].text), words[0].place);
    if (words.size() == 1) {
      list.items.push_back(std::move(name));
      continue;
    }
    YamlNode host{.kind = YamlNode::Kind::kMap, .place = words[0].place};
    append_key(host, "name", std::move(name));
    bool fine = true;
    for (std::size_t i = 1; i < words.size(); ++i) fine = take_option(host, words[i], report) && fine;
    if (fine) list.items.push_back(std::move(host));
  }
  return list;
}

}  // namespace monarch

#include "supervisor/spec/yaml/yaml_text.h"

#include <algorithm>
#include <cctype>

#include "supervisor/spec/yaml/source_text.h"
#include "transport/base/base64.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

bool is_plain_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  constexpr std::string_view kSafe = "_./@%+=-$()~^;<>*";  // no comma, colon, bracket, quote, # or blank
  return std::isalnum(byte) != 0 || kSafe.find(c) != std::string_view::npos;
}

bool is_plain(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain_character)) return false;
  for (const std::string_view nothing : {"~", "null", "Null", "NULL", "-", "--", "---", "...", "=", "<<"}) {
    if (text == nothing) return false;
  }
  constexpr std::string_view kIndicators = "@%*><~=;";  // of YAML, or of what people take for it
  return kIndicators.find(text.front()) == std::string_view::npos;
}

std::string in_double_quotes(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out.push_back(kHexDigits[byte / 16]);
      out.push_back(kHexDigits[byte % 16]);
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

}  // namespace

std::string yaml_scalar(std::string_view text) { return is_plain(text) ? std::string(text) : yaml_quoted(text); }

std::string yaml_quoted(std::string_view text) {
  if (!is_utf8(text)) return "!!binary " + to_base64(text);
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
  });
  if (control) return in_double_quotes(text);
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out.push_back(c);  // doubled within single quotes
    out.push_back(c);
  }
  return out + "'";
}

std::string yaml_list(const std::vector<std::string>& items) {
  std::vector<std::string> written;
  for (const std::string& item : items) written.push_back(yaml_scalar(item));
  return text("[", join(written, ", "), "]");
}

std::string yaml_flow(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNothing:
    case YamlNode::Kind::kRefused: return "null";
    case YamlNode::Kind::kScalar: return yaml_scalar(node.text);
    case YamlNode::Kind::kList:
    case YamlNode::Kind::kMap: break;
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string value = yaml_flow(node.items[i]);
    parts.push_back(node.is(YamlNode::Kind::kMap) ? text(yaml_scalar(node.keys[i].text), ": ", value) : value);
  }
  return node.is(YamlNode::Kind::kMap) ? text("{", join(parts, ", "), "}") : text("[", join(parts, ", "), "]");
}

}  // namespace monarch

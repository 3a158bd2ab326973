#include "supervisor/spec/yaml/yaml_writer.h"

#include <algorithm>

#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestLine = 100;  // of a list or map on one line

// A text in quotes stays in quotes: to a plugin that gets it, "1" is no number.
std::string scalar_text(const YamlNode& node) {
  if (node.is(YamlNode::Kind::kNothing)) return "null";
  return node.quoted ? yaml_quoted(node.text) : yaml_scalar(node.text);
}

bool is_leaf(const YamlNode& node) {
  return node.is(YamlNode::Kind::kScalar) || node.is(YamlNode::Kind::kNothing) || node.items.empty();
}

// Whether `text` may stand as it is behind `|`: its lines are whole, and no reader takes a part of it for indentation.
bool is_block_text(std::string_view text) {
  const std::size_t newline = text.find('\n');
  if (newline == std::string_view::npos || newline + 1 == text.size()) return false;
  if (text.front() == ' ' || text.front() == '\n' || text.ends_with("\n\n") || !is_utf8(text)) return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7F;
  });
}

class Writer {
 public:
  std::string take() { return std::move(out_); }

  void write_map(const YamlNode& map, std::size_t indent, bool at_indent) {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      if (!at_indent) out_.append(indent, ' ');
      at_indent = false;
      out_ += yaml_scalar(map.keys[i].text) + ":";
      write_value(map.items[i], indent);
    }
  }

 private:
  // Behind `key:`; ends its line.
  void write_value(const YamlNode& node, std::size_t indent) {
    if (node.is(YamlNode::Kind::kScalar) && is_block_text(node.text)) {
      out_ += " ";
      return write_block_text(node.text, indent + 2);
    }
    const std::string line = one_line(node);
    if (!line.empty()) {
      out_ += text(" ", line, "\n");
    } else if (node.is(YamlNode::Kind::kMap)) {
      out_ += "\n";
      write_map(node, indent + 2, false);
    } else {
      out_ += "\n";
      write_list(node, indent + 2, false);
    }
  }

  void write_list(const YamlNode& list, std::size_t indent, bool at_indent) {
    for (const YamlNode& item : list.items) {
      if (!at_indent) out_.append(indent, ' ');
      at_indent = false;
      out_ += "- ";
      if (item.is(YamlNode::Kind::kScalar) && is_block_text(item.text)) {
        write_block_text(item.text, indent + 2);
        continue;
      }
      const std::string line = one_line(item);
      if (!line.empty()) {
        out_ += line + "\n";
      } else if (item.is(YamlNode::Kind::kMap)) {
        write_map(item, indent + 2, true);
      } else {
        write_list(item, indent + 2, true);
      }
    }
  }

  void write_block_text(std::string_view text, std::size_t indent) {
    out_ += text.ends_with('\n') ? "|\n" : "|-\n";
    if (text.ends_with('\n')) text.remove_suffix(1);
    while (true) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (end > 0) out_.append(indent, ' ');
      out_ += text.substr(0, end);
      out_ += "\n";
      if (end == text.size()) return;
      text.remove_prefix(end + 1);
    }
  }

  // Empty: it needs lines of its own.
  static std::string one_line(const YamlNode& node) {
    const bool list = node.is(YamlNode::Kind::kList);
    if (!list && !node.is(YamlNode::Kind::kMap)) return scalar_text(node);
    std::string out(1, list ? '[' : '{');
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      if (!is_leaf(node.items[i]) || is_block_text(node.items[i].text)) return "";
      if (i > 0) out += ", ";
      if (!list) out += yaml_scalar(node.keys[i].text) + ": ";
      out += one_line(node.items[i]);
      if (out.size() > kLongestLine) return "";
    }
    return out + (list ? "]" : "}");
  }

  std::string out_;
};

}  // namespace

std::string write_yaml(const YamlNode& root) {
  if (!root.is(YamlNode::Kind::kMap) || root.items.empty()) return "{}\n";
  Writer writer;
  writer.write_map(root, 0, false);
  return writer.take();
}

}  // namespace monarch

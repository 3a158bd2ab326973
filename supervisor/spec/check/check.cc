#include "supervisor/spec/check/check.h"

#include <optional>
#include <string>
#include <utility>

#include "supervisor/spec/check/check_value.h"
#include "supervisor/spec/check/suggest_shape.h"
#include "supervisor/spec/hosts/ssh_hosts.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/schema/suggest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// A value on its way through the schema.
struct Visit {
  const YamlNode& node;
  const KeyRow& row;
  std::string path;      // as the spec has it: "meshes.trainer.stop.grace"
  std::string row_path;  // as the schema has it: "meshes.*.stop.grace"
  Place key;
  bool quiet = false;  // below something that is refused as a whole: say nothing more about what is not built
};

class SchemaChecker {
 public:
  SchemaChecker(const Schema& schema, Report& report, UnbuiltKeys unbuilt)
      : schema_(schema), report_(report), unbuilt_(unbuilt) {}

  void check_map(const YamlNode& map, const std::string& path, const std::string& row_path, Place where, bool quiet) {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const YamlKey& key = map.keys[i];
      const KeyRow* row = schema_.find_child(row_path, key.text);
      if (row == nullptr) {
        report_.error(
            "E0107", key.place,
            {.message = text("unknown key `", key.text, "`"),
             .label = path.empty() ? text("not a key of ", schema_.parts().called) : text("not a key of `", path, "`"),
             .help = suggest_key(schema_, row_path, key.text)});
        continue;
      }
      const bool own = schema_.find_row(child_path(row_path, key.text)) == row;
      const std::string next = own ? child_path(row_path, key.text) : child_path(row_path, "*");
      check({map.items[i], *row, child_path(path, key.text), next, key.place, quiet});
    }
    for (const std::string_view key : schema_.keys_below(row_path)) {
      const KeyRow* row = schema_.find_row(child_path(row_path, key));
      if (row == nullptr || !row->required || map.find_key(key) != nullptr) continue;
      report_.error("E0101", where,
                    {.message = text("`", child_path(path, key), "` is missing"),
                     .label = "",
                     .help = text("`", key, "`: ", row->doc)});
    }
  }

 private:
  void check(Visit visit) {
    if (visit.node.is(YamlNode::Kind::kRefused)) return;
    const std::size_t before = report_.count();
    switch (visit.row.type) {
      case ValueType::kMap: check_fixed_map(visit); break;
      case ValueType::kNamedMap: check_named_map(visit); break;
      case ValueType::kList: check_list(visit); break;
      case ValueType::kHosts: (void)read_ssh_hosts(visit.node, visit.path, {}, report_); break;
      case ValueType::kAny: break;
      default: check_single(visit);
    }
    if (report_.count() == before && !visit.quiet) check_built(visit);
  }

  bool is_whole_unbuilt(const Visit& visit) const {
    return visit.row.unbuilt == "*" && visit.row.default_value.empty();
  }

  void check_fixed_map(const Visit& visit) {
    if (!expect(visit, YamlNode::Kind::kMap)) return;
    check_map(visit.node, visit.path, visit.row_path, visit.key,
              visit.quiet || (is_whole_unbuilt(visit) && !is_taken(visit.row, unbuilt_)));
  }

  void check_named_map(const Visit& visit) {
    if (!expect(visit, YamlNode::Kind::kMap) || !check_length(visit, visit.node.keys.size())) return;
    for (std::size_t i = 0; i < visit.node.keys.size(); ++i) {
      const YamlKey& key = visit.node.keys[i];
      if (visit.row.names == NameRule::kName) {
        check_name(key.text, key.place, report_);
      } else {
        check_variable(key.text, key.place, report_);
      }
      const KeyRow* row = schema_.find_child(visit.row_path, key.text);
      const bool own = row != nullptr && schema_.find_row(child_path(visit.row_path, key.text)) == row;
      const std::string next = child_path(visit.row_path, own ? std::string_view(key.text) : "*");
      const bool quiet = visit.quiet || visit.row.unbuilt == "*";
      if (row != nullptr) check({visit.node.items[i], *row, child_path(visit.path, key.text), next, key.place, quiet});
    }
  }

  void check_list(const Visit& visit) {
    if (visit.node.is(YamlNode::Kind::kScalar)) {
      report_.error("E0103", visit.node.place,
                    {.message = text("`", visit.path, "` takes a list, not a single value"),
                     .label = "a single value",
                     .help = suggest_shape(schema_, visit.node, visit.row, visit.row_path)});
      return;
    }
    if (!expect(visit, YamlNode::Kind::kList) || !check_length(visit, visit.node.items.size())) return;
    const std::string next = child_path(visit.row_path, "[]");
    const KeyRow* row = schema_.find_row(next);
    const bool quiet = visit.quiet || visit.row.unbuilt == "*";
    for (std::size_t i = 0; i < visit.node.items.size(); ++i) {
      const YamlNode& item = visit.node.items[i];
      check({item, *row, text(visit.path, "[", i, "]"), next, item.place, quiet});
    }
  }

  void check_single(const Visit& visit) {
    if (visit.row.or_map && visit.node.is(YamlNode::Kind::kMap)) {
      check_map(visit.node, visit.path, visit.row_path, visit.key, visit.quiet || visit.row.unbuilt == "*");
      return;
    }
    if (!expect(visit, YamlNode::Kind::kScalar)) return;
    check_scalar(visit.node, visit.row, visit.path, report_);
  }

  bool expect(const Visit& visit, YamlNode::Kind kind) {
    if (visit.node.is(kind)) return true;
    const YamlNode wanted{.kind = kind};
    const bool empty = visit.node.is(YamlNode::Kind::kNothing);
    const std::string_view what = kind_name(wanted);
    std::string help;
    if (empty && kind == YamlNode::Kind::kMap) help = "an empty map is written `{}`";
    if (empty && kind == YamlNode::Kind::kList && visit.row.least == 0) help = "an empty list is written `[]`";
    if (empty && kind == YamlNode::Kind::kScalar) {
      help = visit.row.type == ValueType::kText && visit.row.least == 0 ? "an empty text is written `\"\"`"
                                                                        : "leave the key out to get the default";
    }
    if (visit.path == "launch" && visit.node.is(YamlNode::Kind::kScalar) &&
        schema_.find_child("launch", visit.node.text) != nullptr) {
      help = text("did you mean `{", visit.node.text, ": {}}`?");
    }
    if (help.empty()) help = suggest_shape(schema_, visit.node, visit.row, visit.row_path);
    report_.error("E0103", empty ? visit.key : visit.node.place,
                  {.message = text("`", visit.path, "` takes ", what, ", not ", kind_name(visit.node)),
                   .label = empty ? "has no value" : std::string(kind_name(visit.node)),
                   .help = std::move(help)});
    return false;
  }

  bool check_length(const Visit& visit, std::size_t length) {
    const auto signed_length = static_cast<std::int64_t>(length);
    if (signed_length >= visit.row.least && signed_length <= visit.row.most) return true;
    const std::string label = length == 0 ? "empty" : text(length, " entries");
    const std::string bound =
        signed_length < visit.row.least ? text("at least ", visit.row.least) : text("at most ", visit.row.most);
    report_.error("E0206", visit.node.place,
                  {.message = text("`", visit.path, "` has ", bound,
                                   signed_length < visit.row.least && visit.row.least == 1 ? " entry" : " entries"),
                   .label = label,
                   .help = text("`", last_key(visit.path), "`: ", visit.row.doc)});
    return false;
  }

  void check_built(const Visit& visit) {
    if (is_taken(visit.row, unbuilt_) || is_built(schema_, visit.node, visit.row)) return;
    const KeyRow& row = visit.row;
    const bool at_key = is_whole_unbuilt(visit) || !visit.node.is(YamlNode::Kind::kScalar);
    std::string label = text("`", visit.path, "` is not built");
    std::string help = text("leave `", last_key(visit.path), "` out");
    if (row.unbuilt != "*") {
      label = text("`", visit.node.text, "` is not built");
      help = "write one of the other values that it takes";
    } else if (!row.default_value.empty()) {
      label = "only the default is built";
      help = text("leave it out, or write the default, `", row.default_value, "`");
    }
    if (!row.built.empty()) help += text("; `", row.built, "` is built, too");
    report_.error("E0401", at_key ? visit.key : visit.node.place,
                  {.message = text("this build cannot do that yet: `", visit.path, "`"),
                   .label = std::move(label),
                   .help = std::move(help)});
  }

  const Schema& schema_;
  Report& report_;
  UnbuiltKeys unbuilt_;
};

}  // namespace

void check_against_schema(const Schema& schema, const YamlNode& root, Report& report, UnbuiltKeys unbuilt) {
  if (!root.is(YamlNode::Kind::kMap)) {
    if (root.is(YamlNode::Kind::kRefused)) return;
    report.error("E0103", root.place,
                 {.message = text(schema.parts().called, " is a map, not ", kind_name(root)),
                  .label = "",
                  .help = std::string(schema.parts().start)});
    return;
  }
  SchemaChecker(schema, report, unbuilt).check_map(root, "", "", {}, false);
}

}  // namespace monarch

#include <algorithm>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/commands.h"
#include "cli/job/spec_input.h"
#include "cli/term/table.h"
#include "supervisor/drill/scenario/drill_schema.h"
#include "supervisor/spec/effective.h"
#include "supervisor/spec/schema/explain.h"
#include "supervisor/spec/schema/json_schema.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/suggest.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kWidth = 96;

// Lines that fit the terminal and are not too long to read, each behind `indent`.
std::string wrapped(std::string_view words, std::string_view indent, const Terminal& terminal) {
  const std::size_t width = terminal.out_columns == 0 ? kWidth : std::min(kWidth, terminal.out_columns);
  std::string out;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) out += text(indent, line, "\n");
    line.clear();
  };
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (!line.empty() && indent.size() + line.size() + 1 + end > width) flush();
    line += text(line.empty() ? "" : " ", words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  flush();
  return out;
}

std::string indented(std::string_view lines, std::string_view indent) {
  std::string out;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    out += text(indent, lines.substr(0, end), "\n");
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

// What a spec says of a key.
struct InSpec {
  std::string file;  // what it is called as a whole
  std::vector<SpecText> sources;
  std::vector<EffectiveValue> values;
  std::vector<std::string> notes;  // where a value acts otherwise than it says
};

std::string place_text(const Place& place, const InSpec& spec) {
  const SpecText& source = spec.sources.at(place.source);
  // A flag is one line, and says more than its number.
  const bool flag = source.text.starts_with("--") || source.text.starts_with("MONARCH_OPT_");
  return flag ? printable(source.text) : text(printable(source.name), ":", place.line);
}

std::string source_text(const EffectiveValue& value, const InSpec& spec) {
  switch (value.source) {
    case EffectiveValue::Source::kWritten: return place_text(value.place, spec);
    case EffectiveValue::Source::kTopLevel:
      return text("`supervision` at the top level, ", place_text(value.place, spec));
    case EffectiveValue::Source::kDefault: return "default";
    case EffectiveValue::Source::kDerived: return "default, as the dimensions of the meshes make it";
    case EffectiveValue::Source::kNone: return "not written, and no default";
  }
  return "";
}

std::string_view source_name(EffectiveValue::Source source) {
  switch (source) {
    case EffectiveValue::Source::kWritten: return "written";
    case EffectiveValue::Source::kTopLevel: return "top_level";
    case EffectiveValue::Source::kDefault: return "default";
    case EffectiveValue::Source::kDerived: return "derived";
    case EffectiveValue::Source::kNone: return "none";
  }
  return "";
}

Json value_json(const EffectiveValue& value, const InSpec& spec) {
  Json out = Json::object({{"path", value.path}, {"source", source_name(value.source)}});
  if (value.source != EffectiveValue::Source::kNone) out.set("value", value.value);
  if (value.place.line > 0) out.set("file", spec.sources.at(value.place.source).name).set("line", value.place.line);
  return out;
}

Json key_json(const Schema& schema, const std::string& path, const std::string& row_path, const InSpec* spec) {
  const KeyRow& row = *schema.find_row(row_path);
  const KeyHelp* help = schema.find_help(row_path);
  Json words = Json::array();
  for (const std::string& word : split_words(row.words)) words.append(word);
  Json keys = Json::array();
  for (const std::string& key : paths_below(schema, row_path)) keys.append(explained_path(schema, key));
  Json out = Json::object({{"v", 1},
                           {"type", "key"},
                           {"path", path},
                           {"takes", takes_text(schema, row)},
                           {"words", std::move(words)},
                           {"required", row.required},
                           {"built", built_text(schema, row_path)},
                           {"doc", doc_of(schema, row_path)},
                           {"more", help == nullptr ? "" : help->more},
                           {"example", example_text(schema, row_path)},
                           {"keys", std::move(keys)}});
  if (!row.default_value.empty()) out.set("default", row.default_value);
  if (spec == nullptr) return out;
  Json values = Json::array();
  for (const EffectiveValue& value : spec->values) values.append(value_json(value, *spec));
  Json notes = Json::array();
  for (const std::string& note : spec->notes) notes.append(note);
  out.set("values", std::move(values)).set("notes", std::move(notes));
  return out;
}

// `margin` is what the table is indented by later.
std::string render_table(const Table& table, const Terminal& terminal, std::size_t margin) {
  const std::size_t columns = terminal.out_columns > margin ? terminal.out_columns - margin : terminal.out_columns;
  return table.render(terminal.out_colour, columns);
}

std::string keys_table(const Schema& schema, const std::string& row_path, const Terminal& terminal,
                       std::size_t margin) {
  Table table({"KEY", "DEFAULT", "BUILT", "WHAT IT SAYS"});
  const std::string item = child_path(row_path, "[]");
  for (const std::string& path : paths_below(schema, schema.find_row(item) == nullptr ? row_path : item)) {
    if (path.ends_with("[]")) continue;
    const KeyRow& row = *schema.find_row(path);
    table.add({{.words = explained_path(schema, path), .colour = Colour::kBold},
               {.words = row.required ? "needed" : std::string(row.default_value), .colour = Colour::kNone},
               {.words = built_text(schema, path), .colour = Colour::kNone},
               {.words = std::string(row.doc), .colour = Colour::kNone}});
  }
  return table.empty() ? "" : render_table(table, terminal, margin);
}

std::string values_text(const InSpec& spec, const Terminal& terminal) {
  std::string out = text("\n  in ", printable(spec.file), "\n");
  if (spec.values.empty()) return out + "    nothing of that name\n";
  Table table({"KEY", "VALUE", "FROM"});
  for (const EffectiveValue& value : spec.values) {
    constexpr std::size_t kLongestCell = 40;  // among others; alone it is shown whole
    const bool cut = spec.values.size() > 1 && value.value.size() > kLongestCell;
    table.add({{.words = value.path, .colour = Colour::kNone},
               {.words = cut ? value.value.substr(0, kLongestCell) + "..." : value.value, .colour = Colour::kBold},
               {.words = source_text(value, spec), .colour = Colour::kNone}});
  }
  out += indented(render_table(table, terminal, 4), "    ");
  for (const std::string& note : spec.notes) out += wrapped(text("note: ", printable(note)), "    ", terminal);
  return out;
}

std::string key_text(const Schema& schema, const std::string& path, const std::string& row_path, const InSpec* spec,
                     const Terminal& terminal) {
  const KeyRow& row = *schema.find_row(row_path);
  const KeyHelp* help = schema.find_help(row_path);
  std::string out =
      text(paint(Colour::kBold, printable(path), terminal.out_colour), ": ", doc_of(schema, row_path), "\n\n");
  out += text("  takes    ", takes_text(schema, row), "\n");
  const std::string_view none = row.required ? "none: it must be written" : "none";
  out += text("  default  ", row.default_value.empty() ? none : row.default_value, "\n");
  out += text("  built    ", built_text(schema, row_path), "\n");
  if (row_path.starts_with("supervision")) out += text("  also     meshes.*.", row_path, "\n");
  if (help != nullptr && !help->more.empty()) out += "\n" + wrapped(help->more, "  ", terminal);
  const std::string example = example_text(schema, row_path);
  if (!example.empty()) out += text("\n  example\n", indented(example, "    "));
  const std::string keys = keys_table(schema, row_path, terminal, 4);
  if (!keys.empty()) out += text("\n  keys\n", indented(keys, "    "));
  if (spec != nullptr) out += values_text(*spec, terminal);
  return out;
}

int cannot_explain(const Context& context, const std::string& message, const std::string& help) {
  say_error(context.terminal, {.id = "E0930", .message = message, .help = help});
  return kExitUsage;
}

int explain_error(const std::string& written, const Arguments& arguments, const Context& context) {
  std::string id = written;
  id.front() = 'E';
  const ErrorDoc* doc = find_error(id);
  if (doc == nullptr) {
    std::vector<std::string> known;
    for (const ErrorDoc& error : all_errors()) known.emplace_back(error.id);
    const auto near = nearest(id, known);
    return cannot_explain(context, text("there is no error ", printable(written)),
                          near ? text("did you mean ", *near, "?") : "an id is E and four digits, as in E0107");
  }
  if (arguments.positionals().size() > 1)
    return cannot_explain(context, text("what ", id, " means is the same in every spec"), text("monarch explain ", id));
  if (arguments.has("json")) {
    write_out(
        context.terminal,
        to_json(Json::object(
            {{"v", 1}, {"type", "error"}, {"id", doc->id}, {"title", doc->title}, {"explanation", doc->explanation}})) +
            "\n");
    return kExitOk;
  }
  write_out(context.terminal, text(paint(Colour::kBold, doc->id, context.terminal.out_colour), ": ", doc->title, "\n\n",
                                   wrapped(doc->explanation, "  ", context.terminal)));
  return kExitOk;
}

bool is_error_id(std::string_view written) {
  return written.size() > 1 && (written.front() == 'E' || written.front() == 'e') &&
         std::all_of(written.begin() + 1, written.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Nothing: stderr says why.
std::optional<InSpec> look_into(const Arguments& arguments, const NamedKey& key, const Context& context) {
  const std::vector<std::string>& written = arguments.positionals();
  const auto input = take_spec(written.size() > 1 ? std::optional(written[1]) : std::nullopt, arguments, context);
  if (!input) return std::nullopt;
  InSpec spec{.file = input->name,
              .sources = input->sources,
              .values = effective_values(input->tree, input->spec, key),
              .notes = {}};
  // A mesh's own words count for it, not those of the top level.
  if (key.row_path.starts_with("supervision")) {
    const auto of_mesh = find_key(spec_schema(), text("meshes.*.", key.path));
    for (EffectiveValue& value : effective_values(input->tree, input->spec, *of_mesh)) {
      if (value.source == EffectiveValue::Source::kWritten) spec.values.push_back(std::move(value));
    }
  }
  for (const std::string& note : input->notes) {
    const bool about = std::any_of(spec.values.begin(), spec.values.end(), [&](const EffectiveValue& value) {
      const std::size_t colon = note.find(':');
      return value.path.ends_with(note.substr(0, colon));
    });
    if (about) spec.notes.push_back(note);
  }
  return spec;
}

int explain_all(const Schema& schema, const Arguments& arguments, const Context& context) {
  const bool json = arguments.has("json");
  std::string out;
  for (const KeyRow& row : schema.rows()) {
    const std::string path(row.path);
    if (path.ends_with("[]")) continue;
    const std::string shown = explained_path(schema, path);
    if (!json && !out.empty()) out += "\n";
    out += json ? to_json(key_json(schema, shown, path, nullptr)) + "\n"
                : key_text(schema, shown, path, nullptr, context.terminal);
  }
  write_out(context.terminal, out);
  return kExitOk;
}

int explain_top(const Schema& schema, const Arguments& arguments, const Context& context) {
  if (!arguments.has("json")) {
    write_out(context.terminal, keys_table(schema, "", context.terminal, 0));
    const bool spec = &schema == &spec_schema();
    say_note(context.terminal,
             text("monarch explain KEY tells more, as in: monarch explain ",
                  spec ? "meshes.*.gang" : "drill.faults.for", spec ? "; `drill` is about scenarios" : ""));
    return kExitOk;
  }
  std::string out;
  for (const std::string& path : paths_below(schema, ""))
    out += to_json(key_json(schema, explained_path(schema, path), path, nullptr)) + "\n";
  write_out(context.terminal, out);
  return kExitOk;
}

// A key as it was written, with the schema that it is of and without what that is named by.
struct Subject {
  const Schema& schema;
  std::string key;  // empty: all of it
};

Subject subject_of(const std::string& written) {
  const Schema& drill = drill::drill_schema();
  const std::string_view front = drill.parts().explained_at;
  if (written == front) return {drill, ""};
  if (written.starts_with(text(front, "."))) return {drill, written.substr(front.size() + 1)};
  return {spec_schema(), written};
}

bool has_spec(const Arguments& arguments) { return arguments.positionals().size() > 1 || arguments.has("file"); }

// Flags that change a spec say nothing where there is none. Variables are set for other commands, too.
std::optional<Complaint> check_flags(const Arguments& arguments) {
  const bool key = !arguments.positionals().empty() && !is_error_id(arguments.positional(0));
  for (const Flag& flag : overlay_flags()) {
    if (!arguments.has(flag.name) || arguments.from_variable(flag.name) || (key && has_spec(arguments))) continue;
    return Complaint{
        .id = "E0903",
        .message = text("`--", flag.name, "` changes a spec, and there is ", key ? "none" : "no key to look up"),
        .help = "monarch explain KEY SPEC shows the value of a key in a spec"};
  }
  return std::nullopt;
}

int run_explain(const Arguments& arguments, Context& context) {
  if (const auto wrong = check_flags(arguments)) {
    say_error(context.terminal, *wrong);
    return kExitUsage;
  }
  const std::string written = arguments.positional(0);
  const auto& [schema, named] = subject_of(written);
  const bool whole = arguments.has("all") || arguments.has("schema");
  const bool one_key = !named.empty() || arguments.positionals().size() > 1;
  if (whole && (one_key || (arguments.has("all") && arguments.has("schema")))) {
    const std::string_view flag = arguments.has("schema") ? "--schema" : "--all";
    const std::string_view of = schema.parts().explained_at;
    say_error(context.terminal, {.id = "E0903",
                                 .message = text("`", flag, "` is about every key, and is used alone"),
                                 .help = text("monarch explain ", of, of.empty() ? "" : " ", flag)});
    return kExitUsage;
  }
  if (arguments.has("schema")) {
    write_out(context.terminal, json_schema(schema));
    return kExitOk;
  }
  if (arguments.has("all")) return explain_all(schema, arguments, context);
  if (named.empty() && arguments.positionals().size() <= 1) return explain_top(schema, arguments, context);
  if (is_error_id(written)) return explain_error(written, arguments, context);
  const bool looked_up = has_spec(arguments) && (&schema == &spec_schema() || arguments.positionals().size() > 1);
  if (looked_up && &schema != &spec_schema()) {
    return cannot_explain(context, "what a scenario says of a key is what is written there",
                          "monarch drill --dry-run SCENARIO shows what it would do");
  }
  const auto key = find_key(schema, named);
  if (!key) {
    return cannot_explain(context, text("there is no key `", printable(written), "`"), suggest_keys(schema, named));
  }
  std::optional<InSpec> spec;
  if (looked_up) {
    spec = look_into(arguments, *key, context);
    if (!spec) return kExitUsage;
    if (spec->values.empty() && key->path != key->row_path)
      return cannot_explain(context, text(printable(spec->file), " has nothing called `", printable(written), "`"),
                            text("monarch explain ", key->row_path, " ", printable(spec->file), " shows what it has"));
  }
  const InSpec* in_spec = spec ? &*spec : nullptr;
  const std::string shown = explained_path(schema, key->path);
  write_out(context.terminal, arguments.has("json")
                                  ? to_json(key_json(schema, shown, key->row_path, in_spec)) + "\n"
                                  : key_text(schema, shown, key->row_path, in_spec, context.terminal));
  return kExitOk;
}

}  // namespace

Command explain_command() {
  std::vector<Flag> flags = {
      {.name = "all", .value = "", .help = "every key there is"},
      {.name = "schema",
       .value = "",
       .help = "the JSON Schema (draft-07) of a spec, or with `drill` of a scenario, for editors that complete and "
               "check while one types"},
      {.name = "json", .value = "", .help = "one object per line"}};
  for (const Flag& flag : overlay_flags()) flags.push_back(flag);
  return {.name = "explain",
          .summary = "document a key of the spec, its value in one and where that comes from, or an error",
          .description =
              "KEY is a path such as supervision.lease, meshes.trainer.gang or meshes.*.gang, or an id such as E0107.\n"
              "`drill`, and what begins with `drill.`, is about scenarios of drills: drill.faults.for.\n"
              "Without it the keys of the top level are listed.",
          .flags = std::move(flags),
          .positionals = {{.name = "KEY", .help = "a key of the spec, or the id of an error"},
                          {.name = "SPEC",
                           .help = "a YAML file, or - for standard input: also the value that the key has there"}},
          .run = run_explain};
}

}  // namespace monarch

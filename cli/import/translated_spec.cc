// A Translation as the text of a spec.

#include <algorithm>

#include "cli/import/translation.h"
#include "supervisor/spec/check/check_value.h"
#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// The script's or program's name without its folder and ending.
std::string job_from(const Translation& t) {
  if (!t.job.empty()) return t.job;
  std::string name;
  for (std::size_t i = 0; i < t.program.size(); ++i) {
    name = t.program[i].text;
    if (name.starts_with('-') || name.substr(name.rfind('/') + 1).starts_with("python")) continue;
    // Of a module pkg.train the last part, of a file train.py the first.
    const bool module = i > 0 && t.program[i - 1].text == "-m";
    name.erase(0, name.find_last_of(module ? "/." : "/") + 1);
    name.erase(std::min(name.find('.'), name.size()));
    break;
  }
  const std::string good = nearest_name(name);
  return good.empty() || is_reserved_name(good) ? "job" : good;
}

std::string comment_of(std::string_view text_of_it, std::string_view indent) {
  std::string out;
  constexpr std::size_t kWidth = 110;
  std::string line;
  std::string_view rest = text_of_it;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (!line.empty() && line.size() + end + 1 > kWidth) {
      out += text("# ", indent, line, "\n");
      line = "  ";
    }
    line += text(line.empty() || line == "  " ? "" : " ", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return line.empty() ? out : out + text("# ", indent, line, "\n");
}

// The keys below `path`, live ones in one line, those that are not built in a comment behind it.
std::string keys_of(const Translation& t, const std::string& path, const std::string& indent) {
  std::vector<std::string> live;
  std::vector<std::string> waiting;
  for (const auto& [key, value] : t.keys) {
    if (!key.starts_with(path + ".")) continue;
    (is_honoured_here(key, value) ? live : waiting)
        .push_back(text(key.substr(path.size() + 1), ": ", yaml_scalar(value)));
  }
  const std::string name = path.substr(path.rfind('.') + 1);
  std::string out;
  if (!live.empty()) out += text(indent, name, ": {", join(live, ", "), "}\n");
  if (!waiting.empty()) out += text(indent, "# ", name, ": {", join(waiting, ", "), "}   # not built yet\n");
  return out;
}

// What was written, in one line; with what the launcher would add to it, in a block.
std::string env_of(const Translation& t, const std::string& indent) {
  std::vector<std::string> env;
  std::vector<std::string> seen;
  for (auto variable = t.env.rbegin(); variable != t.env.rend(); ++variable) {  // the last one counts
    if (std::find(seen.begin(), seen.end(), variable->first) != seen.end()) continue;
    seen.push_back(variable->first);
    env.insert(env.begin(), text(variable->first, ": ", yaml_scalar(variable->second.text)));
  }
  if (t.place.empty() && t.defaults.empty()) {
    return env.empty() ? "" : text(indent, "env: {", join(env, ", "), "}\n");
  }
  std::string out = t.place.empty() ? text(indent, "env:   # from ", t.defaults.front().name,
                                           " on as torchrun sets them unless your shell does\n")
                                    : text(indent, "env:   # those from ", t.place.front().first, " on are ",
                                           t.launcher, "'s own: not needed where nothing reads them\n");
  for (const std::string& variable : env) out += text(indent, "  ", variable, "\n");
  for (const auto& [name, value] : t.place) {
    if (std::find(seen.begin(), seen.end(), name) == seen.end()) out += text(indent, "  ", name, ": ", value, "\n");
  }
  for (const DefaultVariable& own : t.defaults) {
    out += text(indent, "  ", own.name, ": ", own.value, own.note.empty() ? "" : "   # ", own.note, "\n");
  }
  return out;
}

std::string mesh_of(const Translation& t) {
  const std::string indent = "    ";
  std::string out = text("meshes:\n  ", t.mesh, ":\n");
  const std::string slots = text("slot: ", t.per_host);
  out += text(indent, "dims: {", t.hosts > 1 ? text("host: ", t.hosts, ", ") : "", slots, "}\n");
  std::vector<std::string> program;
  for (const ShellWord& word : t.program) program.push_back(word.text);
  out += text(indent, "program: ", yaml_list(program), "\n");
  out += env_of(t, indent);
  if (!t.env_pass.empty()) out += text(indent, "env_pass: ", yaml_list(t.env_pass), "\n");
  if (t.workdir) out += text(indent, "workdir: ", yaml_scalar(t.workdir->text), "\n");
  out += keys_of(t, "meshes.*.resources", indent);
  out += keys_of(t, "meshes.*.stop", indent);
  return out;
}

std::string hosts_of(const Translation& t) {
  if (reaches_hosts(t)) return text("launch:\n  ssh: {hosts: ", yaml_list(t.host_names), "}\n");
  return text("launch:\n  local: {hosts: ", t.hosts, "}",
              t.hosts > 1 ? text("   # ", t.hosts, " virtual hosts of this machine\n") : "   # this machine\n");
}

}  // namespace

bool reaches_hosts(const Translation& t) { return !t.host_names.empty() && t.host_names.size() == t.hosts; }

bool is_honoured_here(const std::string& path, const std::string& value) {
  const YamlNode node{.kind = YamlNode::Kind::kScalar, .text = value};
  return is_built(spec_schema(), node, *spec_schema().find_row(path));
}

std::string spec_of(const Translation& t, std::string_view line) {
  std::string joined;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool continued = line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '\n';
    if (!continued) joined.push_back(line[i] == '\n' || line[i] == '\t' ? ' ' : line[i]);
  }
  const std::string shown = printable(joined);
  std::string out = comment_of(text("From: ", shown), "");
  if (!t.notes.empty()) {
    out += "# What is not carried over:\n";
    for (const std::string& note : t.notes) out += comment_of(text("- ", printable(note)), "");
  }
  out += text("version: 1\njob: ", job_from(t), "\n", hosts_of(t), mesh_of(t));
  const std::string restart = keys_of(t, "supervision.restart", "  ");
  if (restart.starts_with("  #")) {
    out += text("# supervision:\n#   ", restart.substr(4));
  } else if (!restart.empty()) {
    out += "supervision:\n" + restart;
  }
  const auto limit = t.keys.find("time_limit");
  if (limit != t.keys.end()) out += text("time_limit: ", limit->second, "\n");
  const auto input = t.keys.find("stdin");
  if (input != t.keys.end()) out += text("stdin: \"", input->second, "\"\n");
  return out;
}

}  // namespace monarch

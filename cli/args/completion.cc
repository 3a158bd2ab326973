#include "cli/args/completion.h"

#include <algorithm>
#include <optional>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/scenario/drill_schema.h"
#include "supervisor/spec/schema/explain.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

// "--mesh" "=" "tr" of bash as one word; `split` says that the last one was so.
std::vector<std::string> join_values(const std::vector<std::string>& words, bool& split) {
  std::vector<std::string> joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool value = words[i] == "=" && !joined.empty() && joined.back().starts_with("--");
    if (!value) {
      joined.push_back(words[i]);
      continue;
    }
    joined.back() += "=";
    if (i + 1 < words.size()) joined.back() += words[++i];
    split = i + 1 >= words.size();
  }
  return joined;
}

// What is known of the line before the word at the cursor.
struct Line {
  std::vector<std::string> positionals;
  std::vector<std::string> given;  // names of flags
  const Flag* waiting = nullptr;   // a flag whose value is next
  bool program = false;            // behind `--`
};

const Flag* find_flag(const std::vector<Flag>& flags, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const Flag& flag : flags) {
    if (name == "--" + flag.name || (flag.letter != 0 && name == std::string("-") + flag.letter)) return &flag;
  }
  return nullptr;
}

Line read_line(const std::vector<Flag>& flags, const std::vector<std::string>& words) {
  Line line;
  for (const std::string& word : words) {
    if (line.program) continue;
    if (line.waiting != nullptr) {
      line.waiting = nullptr;
    } else if (word == "--") {
      line.program = true;
    } else if (word.size() > 1 && word.front() == '-') {
      const Flag* flag = find_flag(flags, word);
      if (flag == nullptr) continue;
      line.given.push_back(flag->name);
      if (!flag->value.empty() && word.find('=') == std::string::npos) line.waiting = flag;
    } else {
      line.positionals.push_back(word);
    }
  }
  return line;
}

std::vector<std::string> alternatives(const std::string& value) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t bar = value.find('|'); bar != std::string::npos; bar = value.find('|', begin)) {
    words.push_back(value.substr(begin, bar - begin));
    begin = bar + 1;
  }
  words.push_back(value.substr(begin));
  return words;
}

bool is_words(const std::string& value) {
  return value.find('|') != std::string::npos &&
         std::none_of(value.begin(), value.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// Collects what fits the beginning that is written.
class Answer {
 public:
  Answer(const std::vector<Command>& commands, const Command& command, const Line& line, const Sources& sources)
      : commands_(commands), command_(command), line_(line), sources_(sources) {}

  // What is written of the word so far. Only keys need it beforehand: they are offered level by level.
  void set_beginning(const std::string& beginning) { beginning_ = beginning; }

  void add(const std::string& word, const std::string& about = {}) {
    completion_.candidates.push_back({.word = word, .about = about});
  }
  void add(const std::vector<std::string>& words) {
    for (const std::string& word : words) add(word);
  }

  // By the name that the tables give a value: MESH, SPEC, always|never.
  void add_kind(const std::string& kind) {
    if (is_words(kind)) return add(alternatives(kind));
    if (kind == "WHEN") return add({"auto", "always", "never"});
    if (kind == "JOB") return add_jobs();
    if (kind == "MESH") return add(ask(sources_.meshes));
    if (kind == "HOSTS") return add(ask(sources_.hosts));
    if (kind == "COORDINATES") return add(ask(sources_.dimensions));
    if (kind == "SIGNAL") return add(signal_names());
    if (kind == "SHELL") return add(completion_shells());
    if (kind == "FAULT") return add_faults();
    if (kind == "COMMAND") return add_commands();
    if (kind == "KEY") return add_explained();
    if (kind == "PATH=VALUE") return add_settings();
    if (kind == "WHICH") return add(std::vector<std::string>{"rank", "class"});
    if (kind == "WHERE") return add(std::vector<std::string>{"local"});
    if (kind == "DIR" || kind == "FOLDER") completion_.files = Files::kFolders;
    const bool file = kind == "SPEC" || kind == "SCENARIO" || kind == "FILE" || kind == "PATH";
    if (file) completion_.files = Files::kAny;
  }

  void add_commands() {
    for (const Command& command : commands_) {
      if (!command.hidden) add(command.name, command.summary);
    }
  }

  void add_flags(const std::vector<Flag>& flags) {
    for (const Flag& flag : flags) {
      if (std::find(line_.given.begin(), line_.given.end(), flag.name) == line_.given.end()) {
        add("--" + flag.name, flag.help);
      }
    }
  }

  void add_positional() {
    const std::vector<Positional>& table = command_.positionals;
    if (table.empty()) return;
    std::size_t index = std::min(line_.positionals.size(), table.size() - 1);
    if (line_.positionals.size() > index && !table[index].many) return;
    add_kind(table[index].name);
    // An optional one may be left out: [JOB] SIGNAL.
    while (!table[index].required && index + 1 < table.size() && line_.positionals.size() == index) {
      add_kind(table[++index].name);
      if (table[index].required) break;
    }
  }

  Completion fitting(const std::string& beginning) {
    std::erase_if(completion_.candidates, [&](const Candidate& c) { return !c.word.starts_with(beginning); });
    return std::move(completion_);
  }

 private:
  struct Key {
    std::string word;  // with what is written in front of it
    std::string row_path;
  };

  // The keys of the map that the word has come to, `meshes.trainer.` say.
  static std::vector<Key> keys_here(const Schema& schema, std::string_view beginning) {
    const std::size_t dot = beginning.rfind('.');
    const std::string front(dot == std::string_view::npos ? "" : beginning.substr(0, dot + 1));
    const auto map = dot == std::string_view::npos ? std::nullopt : find_key(schema, beginning.substr(0, dot));
    std::vector<Key> keys;
    if (dot != std::string_view::npos && !map) return keys;
    const std::string row_path = map ? map->row_path : "";
    const std::string item = child_path(row_path, "[]");
    for (const std::string& row : paths_below(schema, schema.find_row(item) == nullptr ? row_path : item)) {
      if (!row.ends_with("[]")) keys.push_back({front + row.substr(row.rfind('.') + 1), row});
    }
    return keys;
  }

  void add_explained() {
    const Schema& drill = drill::drill_schema();
    const std::string front = text(drill.parts().explained_at, ".");
    if (beginning_.starts_with(front)) {
      for (const Key& key : keys_here(drill, std::string_view(beginning_).substr(front.size())))
        add(front + key.word, std::string(doc_of(drill, key.row_path)));
      return;
    }
    for (const Key& key : keys_here(spec_schema(), beginning_))
      add(key.word, std::string(doc_of(spec_schema(), key.row_path)));
    if (beginning_.find('.') == std::string::npos)
      add(std::string(drill.parts().explained_at), "keys of scenarios of drills");
    if (!beginning_.starts_with('E')) return;
    for (const ErrorDoc& error : all_errors()) add(std::string(error.id), std::string(error.title));
  }

  // A map is gone into, a single value is set; names of one's own nobody can know.
  void add_settings() {
    for (const auto& [key, row] : keys_here(spec_schema(), beginning_)) {
      const std::vector<std::string> below = paths_below(spec_schema(), row);
      const bool map = std::any_of(below.begin(), below.end(), [](const auto& path) { return !path.ends_with("[]"); });
      if (!key.ends_with('*')) add(key + (map ? "." : "="), std::string(doc_of(spec_schema(), row)));
    }
  }

  void add_faults() {
    for (const drill::Fault& fault : drill::faults()) add(std::string(fault.name), std::string(fault.does));
  }

  void add_jobs() {
    for (Candidate& job : sources_.jobs()) completion_.candidates.push_back(std::move(job));
    if (!completion_.candidates.empty()) add("last", "the newest");
  }

  template <class Source>
  std::vector<std::string> ask(const Source& source) const {
    if (command_.positionals.empty()) return {};
    return source(command_.positionals.front(), line_.positionals.empty() ? std::string() : line_.positionals.front());
  }

  const std::vector<Command>& commands_;
  const Command& command_;
  const Line& line_;
  const Sources& sources_;
  std::string beginning_;
  Completion completion_;
};

Completion complete_command(const std::vector<Command>& commands, const Command& command,
                            const std::vector<std::string>& words, const Sources& sources, bool split) {
  const std::vector<Flag> flags = flags_of(command);
  const std::string& current = words.back();
  const Line line = read_line(flags, {words.begin() + 1, words.end() - 1});
  Answer answer(commands, command, line, sources);
  if (line.program) return {.candidates = {}, .files = Files::kAny};
  answer.set_beginning(current);
  if (line.waiting != nullptr) {
    answer.add_kind(line.waiting->value);
    return answer.fitting(current);
  }
  const std::size_t equals = current.find('=');
  if (current.starts_with("--") && equals != std::string::npos) {
    const Flag* flag = find_flag(flags, current);
    answer.set_beginning(current.substr(equals + 1));
    if (flag != nullptr) answer.add_kind(flag->value);
    Completion values = answer.fitting(current.substr(equals + 1));
    // bash replaces what is behind the `=` alone, the others the whole word.
    for (Candidate& value : values.candidates)
      value.word = split ? value.word : current.substr(0, equals + 1) + value.word;
    return values;
  }
  if (current.starts_with('-')) {
    answer.add_flags(flags);
  } else {
    answer.add_positional();
  }
  return answer.fitting(current);
}

}  // namespace

Completion complete(const std::vector<Command>& commands, const std::vector<std::string>& written,
                    const Sources& sources) {
  bool split = false;
  std::vector<std::string> words = join_values(written, split);
  if (words.empty()) words.emplace_back();
  const std::string name = words.size() > 1 && words.front() == "help" ? "help" : words.front();
  if (words.size() == 1 || name == "help") {
    const Command none;
    const Line line;
    Answer answer(commands, none, line, sources);
    if (words.size() <= 2) answer.add_commands();
    if (words.size() == 1) answer.add("help", "as --help");
    return answer.fitting(words.back());
  }
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.name == name; });
  if (found == commands.end() || found->takes_argv) return {};
  return complete_command(commands, *found, words, sources, split);
}

std::string completion_lines(const Completion& completion) {
  std::string out;
  for (const Candidate& candidate : completion.candidates) {
    out += printable(candidate.word);
    if (!candidate.about.empty()) out += text("\t", printable(candidate.about));
    out += "\n";
  }
  switch (completion.files) {
    case Files::kNone: return out + ":none\n";
    case Files::kAny: return out + ":files\n";
    case Files::kFolders: return out + ":folders\n";
  }
  return out;
}

}  // namespace monarch

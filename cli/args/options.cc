#include "cli/args/options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>

#include "cli/args/synonyms.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kVariablePrefix = "MONARCH_OPT_";

// A beginning of just one of them is what was meant: words are not abbreviated here, and many try.
std::optional<std::string> meant(const std::string& written, const std::vector<std::string>& known) {
  std::vector<std::string> longer;
  std::copy_if(known.begin(), known.end(), std::back_inserter(longer),
               [&](const std::string& word) { return word.starts_with(written); });
  return longer.size() == 1 ? longer.front() : nearest(written, known);
}

std::vector<std::string> visible_names(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (!command.hidden) names.push_back(command.name);
  }
  return names;
}

Complaint unknown_command(const std::vector<Command>& commands, const std::string& written) {
  const std::vector<std::string> names = visible_names(commands);
  std::optional<std::string> near = command_meant(written);
  if (is_other_launcher(written)) {
    return {.id = "E0901",
            .message = text("unknown command `", printable(written), "`"),
            .help = text("`monarch init --from '", printable(written), " ...'` makes a spec of its command line")};
  }
  if (written.ends_with(".yaml") || written.ends_with(".yml")) {
    return {.id = "E0901",
            .message = text("unknown command `", printable(written), "`"),
            .help = text("`monarch run ", printable(written), "` runs a spec")};
  }
  if (!near || std::find(names.begin(), names.end(), *near) == names.end()) near = meant(written, names);
  return {.id = "E0901",
          .message = text("unknown command `", printable(written), "`"),
          .help = near ? text("did you mean `monarch ", *near, "`?") : text("one of: ", join(names, " "))};
}

// What users of mpirun and srun leave out.
std::string behind_dashes(const Command& command) {
  return command.program.empty() ? "" : "; the program and its flags follow `--`";
}

Complaint unknown_flag(const Command& command, const std::string& written) {
  const std::string name = written.substr(0, written.find('='));
  std::vector<std::string> known;
  for (const Flag& flag : flags_of(command)) known.push_back(text("--", flag.name));
  Complaint complaint{.id = "E0902",
                      .message = text("unknown flag `", printable(name), "` of `monarch ", command.name, "`"),
                      .help = text("monarch ", command.name, " --help lists them", behind_dashes(command))};
  const std::optional<std::string> near = meant(name, known);
  if (const auto instead = instead_of_flag(command.name, name)) {
    complaint.help = *instead;
  } else if (near) {
    complaint.help = text("did you mean `", *near, "`?");
  }
  return complaint;
}

std::string usage_line(const Command& command) {
  std::string line = text("monarch ", command.name);
  for (const Positional& positional : command.positionals) {
    const std::string shown = text(positional.name, positional.many ? "…" : "");
    const bool needed = positional.required && positional.unless.empty();
    line += needed ? text(" ", shown) : text(" [", shown, "]");
  }
  line += " [flags]";
  return command.program.empty() ? line : text(line, " [-- ", command.program, "]");
}

Complaint usage_error(const Command& command, std::string message) {
  return {.id = "E0903", .message = std::move(message), .help = text("usage: ", usage_line(command))};
}

// MONARCH_OPT_ variables that no command knows are refused: a mistyped one would be ignored in silence.
std::optional<Complaint> check_variables(const std::vector<Command>& commands, const Environment& env) {
  std::vector<std::string> known;
  for (const Command& command : commands) {
    for (const Flag& flag : flags_of(command)) {
      if (flag.name != "help") known.push_back(option_variable(flag.name));
    }
  }
  for (const auto& [name, value] : env.all()) {
    if (!name.starts_with(kVariablePrefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::optional<std::string> near = nearest(name, known);
    return Complaint{.id = "E0905",
                     .message = text("the environment variable ", printable(name), " is not a flag of any command"),
                     .help = near ? text("did you mean ", *near, "?") : "unset it"};
  }
  return std::nullopt;
}

struct SwitchValue {
  bool valid = false;
  bool on = false;
};

SwitchValue parse_switch(std::string_view written) {
  if (written == "true" || written == "1") return {.valid = true, .on = true};
  if (written == "false" || written == "0") return {.valid = true, .on = false};
  return {};
}

// Of a variable with several values; empty lines are none.
std::vector<std::string> lines_of(std::string_view words) {
  std::vector<std::string> lines;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('\n'), words.size());
    if (end > 0) lines.emplace_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return lines;
}

std::optional<Complaint> apply_variables(const Command& command, const Environment& env, Arguments& arguments) {
  for (const Flag& flag : flags_of(command)) {
    const std::string name = option_variable(flag.name);
    if (flag.name == "help" || !env.has(name) || arguments.has(flag.name)) continue;
    const std::string written = env.get(name);
    if (!flag.value.empty()) {
      std::vector<std::string> values = flag.repeatable ? lines_of(written) : std::vector<std::string>{written};
      if (!values.empty()) arguments.set(flag.name, std::move(values), Arguments::Origin::kVariable);
      continue;
    }
    const SwitchValue value = parse_switch(written);
    if (!value.valid) {
      return Complaint{.id = "E0905",
                       .message = text(name, "=", printable(written), ": neither true nor false"),
                       .help = text("set it to true or false, or unset it")};
    }
    if (value.on) arguments.set(flag.name, {"true"}, Arguments::Origin::kVariable);
  }
  return std::nullopt;
}

// One CLI11 app per parse: only the command that was asked for is built.
class CommandLineSplitter {
 public:
  explicit CommandLineSplitter(const Command& command) : command_(command), flags_(flags_of(command)) {
    app_.set_help_flag();  // help is a flag of the table
    app_.allow_extras();
    values_.resize(flags_.size());
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      const Flag& flag = flags_[i];
      const std::string names =
          flag.letter == 0 ? text("--", flag.name) : text("-", std::string(1, flag.letter), ",--", flag.name);
      CLI::Option* option = nullptr;
      if (flag.value.empty()) {
        option = app_.add_flag(names)->disable_flag_override()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      } else {
        option = app_.add_option(names, values_[i])
                     ->expected(1)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                     ->allow_extra_args(false);
        // WARNING: an option into a vector takes every word up to the next flag (CLI11 2.3), so the positionals behind
        // it.
        option->allow_extra_args(false);
      }
      options_.push_back(option);
    }
  }

  std::variant<Arguments, HelpWanted, Complaint> split(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      // With extras allowed and texts only, what is left is a flag without its value, or a switch with one.
      return usage_error(command_, explain(error));
    }
    return collect();
  }

 private:
  std::string explain(const CLI::ParseError& error) const {
    const std::string what = error.what();
    for (const Flag& flag : flags_) {
      const std::string name = text("--", flag.name);
      const bool named = what.find(name) != std::string::npos || what.starts_with(flag.name + " ");
      if (!named) continue;
      return flag.value.empty() ? text("`", name, "` takes no value")
                                : text("`", name, "` needs a value: ", name, " ", flag.value);
    }
    return printable(what);
  }

  std::variant<Arguments, HelpWanted, Complaint> collect() {
    Arguments arguments;
    std::optional<Complaint> wrong;
    for (const std::string& word : app_.remaining()) {
      if (word.size() > 1 && word.front() == '-') {
        if (!wrong) wrong = unknown_flag(command_, word);
      } else {
        arguments.add(word);
      }
    }
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      if (options_[i]->count() == 0) continue;
      if (flags_[i].name == "help") return HelpWanted{.command = &command_};
      if (values_[i].size() > 1 && !flags_[i].repeatable && !wrong) {
        wrong = usage_error(command_, text("`--", flags_[i].name, "` is given ", options_[i]->count(), " times"));
      }
      arguments.set(flags_[i].name, flags_[i].value.empty() ? std::vector<std::string>{"true"} : values_[i]);
    }
    if (wrong) return *wrong;
    return arguments;
  }

  const Command& command_;
  CLI::App app_;
  std::vector<Flag> flags_;
  std::vector<std::vector<std::string>> values_;
  std::vector<CLI::Option*> options_;
};

std::optional<Complaint> check_positionals(const Command& command, const Arguments& arguments) {
  std::size_t most = 0;
  std::size_t needed = 0;  // the optional ones before a needed one are left out first: [JOB] SIGNAL
  for (const Positional& positional : command.positionals) {
    const bool spared = std::any_of(positional.unless.begin(), positional.unless.end(),
                                    [&](const std::string& flag) { return arguments.has(flag); });
    if (positional.required && !spared && arguments.positionals().size() < ++needed) {
      const auto& flags = positional.unless;
      if (arguments.program() && std::find(flags.begin(), flags.end(), "size") != flags.end()) {
        return Complaint{
            .id = "E0903",
            .message = text("`monarch ", command.name, "` needs ", positional.name,
                            ", or the number of ranks of the program behind `--`"),
            .help = text("monarch ", command.name, " -n 4 -- ", printable(join(*arguments.program(), " ")))};
      }
      return usage_error(command, text("`monarch ", command.name, "` needs ", positional.name, ": ", positional.help));
    }
    most = positional.many ? SIZE_MAX : most + 1;
  }
  if (arguments.positionals().size() <= most) return std::nullopt;
  return usage_error(command, text("unexpected argument `", printable(arguments.positionals()[most]), "`",
                                   arguments.program() ? "" : behind_dashes(command)));
}

ParsedLine parse_command(const Command& command, std::vector<std::string> words, const Environment& env) {
  if (command.takes_argv) {
    Invocation invocation{.command = &command, .arguments = {}};
    for (std::string& word : words) invocation.arguments.add(std::move(word));
    return invocation;
  }
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const bool has_program = dashes != words.end();
  std::vector<std::string> program;
  if (has_program) program.assign(dashes + 1, words.end());
  words.erase(dashes, words.end());

  // `-np 4` would be taken for `-n p`: what other launchers write like that is looked up before.
  const auto theirs = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
    return word.size() > 2 && word[0] == '-' && word[1] != '-' && instead_of_flag(command.name, word);
  });
  if (theirs != words.end()) return unknown_flag(command, *theirs);
  auto parsed = CommandLineSplitter(command).split(std::move(words));
  if (auto* help = std::get_if<HelpWanted>(&parsed)) return *help;
  if (auto* error = std::get_if<Complaint>(&parsed)) return *error;
  if (has_program && command.program.empty()) {
    return usage_error(command,
                       text("what follows `--` belongs to the program, and `monarch ", command.name, "` takes none"));
  }
  Invocation invocation{.command = &command, .arguments = std::move(std::get<Arguments>(parsed))};
  if (has_program) invocation.arguments.set_program(std::move(program));
  if (auto error = apply_variables(command, env, invocation.arguments)) return *error;
  if (auto error = check_positionals(command, invocation.arguments)) return *error;
  return invocation;
}

void append_row(std::string& out, std::string_view left, std::string_view right, std::size_t width) {
  out += text("  ", left, std::string(width - left.size() + 2, ' '), right, "\n");
}

std::string shown_flag(const Flag& flag) {
  std::string shown = flag.letter == 0 ? "    " : text("-", std::string(1, flag.letter), ", ");
  shown += text("--", flag.name);
  return flag.value.empty() ? shown : text(shown, " ", flag.value);
}

}  // namespace

ParsedLine parse_command_line(const std::vector<Command>& commands, const std::vector<std::string>& line,
                              const Environment& env) {
  if (auto error = check_variables(commands, env)) return *error;
  if (line.empty()) {
    return Complaint{
        .id = "E0901", .message = "no command", .help = text("one of: ", join(visible_names(commands), " "))};
  }
  std::string first = line.front();
  if (first == "--help" || first == "-h" || (first == "help" && line.size() == 1)) return HelpWanted{};
  if (first == "--version") first = "version";
  const bool help_on = first == "help";
  if (help_on) first = line[1];
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.name == first; });
  if (found == commands.end()) {
    if (first.size() > 1 && first.front() == '-') {
      return Complaint{.id = "E0902",
                       .message = text("unknown flag `", printable(first), "` before the command"),
                       .help = "flags follow the command: monarch COMMAND [flags]"};
    }
    return unknown_command(commands, first);
  }
  if (help_on) return HelpWanted{.command = &*found};
  return parse_command(*found, {line.begin() + 1, line.end()}, env);
}

std::string help_text(const std::vector<Command>& commands) {
  std::string out = "monarch " MONARCH_VERSION
                    ": starts a mesh of processes on many machines and keeps it alive\n\n"
                    "usage: monarch COMMAND [flags]\n\ncommands:\n";
  std::size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  for (const Command& command : commands) {
    if (!command.hidden) append_row(out, command.name, command.summary, width);
  }
  out +=
      "\nmonarch COMMAND --help tells more. JOB is an id, a unique beginning of one, the name of the only such job "
      "that\n"
      "is live, `last`, or left out if only one job is live.\n";
  return out;
}

std::string help_text(const Command& command) {
  std::string out = text("usage: ", usage_line(command), "\n\n", command.summary, "\n");
  if (!command.description.empty()) out += text("\n", command.description, "\n");
  if (!command.positionals.empty()) {
    out += "\narguments:\n";
    std::size_t width = 0;
    for (const Positional& positional : command.positionals) width = std::max(width, positional.name.size());
    for (const Positional& positional : command.positionals) append_row(out, positional.name, positional.help, width);
  }
  out += "\nflags (each also as a variable, such as MONARCH_OPT_QUIET=true):\n";
  std::size_t width = 0;
  for (const Flag& flag : flags_of(command)) width = std::max(width, shown_flag(flag).size());
  for (const Flag& flag : flags_of(command)) append_row(out, shown_flag(flag), flag.help, width);
  return out;
}

}  // namespace monarch

#pragma once

// Command: one verb of `monarch` as data: its flags, its arguments and what it does. Parsing, --help, MONARCH_OPT_
// variables, suggestions and the lint of the man page all read the same tables.
//
// Thread: values; made by main.cc, one function per command.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/term/environment.h"
#include "cli/term/terminal.h"

namespace monarch {

struct Flag {
  std::string name;   // "timeout"
  std::string value;  // "DURATION"; empty: a switch
  std::string help;
  char letter = 0;
  bool repeatable = false;  // may be written more than once; its variable has one value per line
};

struct Positional {
  std::string name;  // "JOB"
  std::string help;
  bool required = false;
  bool many = false;                  // one or more
  std::vector<std::string> unless{};  // flags of which any one makes it dispensable
};

// What was written, checked against the command's tables.
class Arguments {
 public:
  bool has(std::string_view flag) const { return flags_.contains(flag); }
  std::optional<std::string> value(std::string_view flag) const;
  // Of a repeatable flag, in the order of writing.
  std::vector<std::string> values(std::string_view flag) const;
  // Its value comes from its MONARCH_OPT_ variable.
  bool from_variable(std::string_view flag) const;
  const std::vector<std::string>& positionals() const { return positionals_; }
  // Empty if it was not written.
  std::string positional(std::size_t index) const;
  // What follows `--`; nothing: there was no `--`.
  const std::optional<std::vector<std::string>>& program() const { return program_; }

  enum class Origin : std::uint8_t { kCommandLine, kVariable };
  void set(std::string flag, std::vector<std::string> values, Origin origin = Origin::kCommandLine);
  void add(std::string positional) { positionals_.push_back(std::move(positional)); }
  void set_program(std::vector<std::string> words) { program_ = std::move(words); }

 private:
  struct Written {
    std::vector<std::string> values;  // at least one
    Origin origin = Origin::kCommandLine;
  };
  std::map<std::string, Written, std::less<>> flags_;
  std::vector<std::string> positionals_;
  std::optional<std::vector<std::string>> program_;
};

// What a command finds around it; made once, by main.cc.
struct Context {
  Environment env;
  std::string executable;  // our own path, resolved
  Terminal terminal;
};

struct Command {
  std::string name;
  std::string summary;      // one line
  std::string description;  // paragraphs for --help; may be empty
  std::vector<Flag> flags;
  std::vector<Positional> positionals;
  std::function<int(const Arguments&, Context&)> run;
  std::string program{};    // what may follow `--`, as the usage shows it; empty: nothing may
  bool hidden = false;      // not in lists, no suggestion leads to it
  bool takes_argv = false;  // its arguments are handed over as positionals, unparsed
};

// --color, --quiet and --help, which every command has.
std::vector<Flag> common_flags();
// The command's own and the common ones.
std::vector<Flag> flags_of(const Command& command);

// "MONARCH_OPT_NO_PREFIX"
std::string option_variable(std::string_view flag);

}  // namespace monarch

#pragma once

// Short words on stdout and stderr, for commands that are over in a moment. A viewer that follows a job writes through
// OutputWriter instead, which never waits.
//
// Thread: the command's.

#include <optional>
#include <string>
#include <string_view>

#include "cli/term/terminal.h"

namespace monarch {

struct Context;  // cli/args/command.h

// All of it, or as much as the other end takes, and what is lost is noted.
void write_out(const Terminal& terminal, std::string_view words);
bool has_lost_output(const Terminal& terminal);
// An errno of a write to stdout.
void note_lost_output(const Terminal& terminal, int error);
// One of a write to stderr, by a viewer that shows there what ranks write.
void note_lost_errors(const Terminal& terminal, int error);
// Of the program, for a command that ended with `code`: says what was lost, which makes a failure of a success. A
// reader that went away lost nothing that it wanted.
int exit_code_of(int code, const Terminal& terminal);
void write_err(std::string_view words);

struct Complaint {
  std::string id;       // "E0906", of the register in supervisor/spec/yaml/error_register.cc
  std::string message;  // one line, printable
  std::string help;     // may be empty
};

// E0907, of what is wrong with the folder of the state.
Complaint state_complaint(std::string message);

// error[E0906]: … / = help: …
std::string complaint_text(const Complaint& complaint, bool colour);
void say_error(const Terminal& terminal, const Complaint& complaint);
// Says the complaint; the result is `exit_code`, for a command that ends with it.
int refuse(const Context& context, const Complaint& complaint, int exit_code);
// Says what is wrong with the value of a flag; the result stands for no value.
std::nullopt_t refuse_value(const Context& context, const std::string& message, const std::string& help = "");
// "monarch: …", unless --quiet.
void say_note(const Terminal& terminal, std::string_view words);

}  // namespace monarch

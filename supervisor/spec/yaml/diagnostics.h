#pragma once

// What is wrong with the texts that a person wrote, with its place, in the form in which it is shown. It knows no YAML
// and no schema; whoever finds a fault adds it to a Report, and all faults are shown together, in the order of the
// texts.
//
// Thread: values; a Report belongs to the thread that reads the text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monarch {

// A span of one line of one text. Line and column count from 1; column and length are bytes. Line 0: the text as a
// whole.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 0;
  std::uint32_t source = 0;  // which of the Report's texts
  bool operator==(const Place&) const = default;
};

enum class DiagnosticSeverity : std::uint8_t { kError, kWarning };

// The other of two places that a message speaks of.
struct OtherPlace {
  std::string file{};
  std::uint32_t source = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 0;
  std::string label{};
};

struct Diagnostic {
  std::string id;  // "E0107": stable, see all_errors()
  DiagnosticSeverity severity = DiagnosticSeverity::kError;
  std::string file{};
  std::uint32_t source = 0;  // which of the Report's texts
  std::uint32_t line = 0;
  std::uint32_t column = 0;  // in characters, as an editor counts
  std::uint32_t length = 0;  // in characters
  std::string message{};
  std::string label{};  // under the caret; may be empty
  std::string help{};   // may be empty
  std::optional<OtherPlace> other{};
};

struct RenderOptions {
  bool colour = false;
};

// error[E0107]: message / --> file:line:column / the line with carets and the label / ::: the same of the other place /
// = help: …; ends with a newline.
// `source` is the text that the diagnostic speaks of; nothing of it reaches the terminal unescaped.
std::string render(const Diagnostic& diagnostic, std::string_view source, RenderOptions options = {});
std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view source, RenderOptions options = {});
// `sources` are the Report's texts, in the order in which it was given them.
std::string render(const std::vector<Diagnostic>& diagnostics, std::span<const std::string_view> sources,
                   RenderOptions options = {});

// The register of errors: ids never change their meaning and are never used twice.
struct ErrorDoc {
  std::string_view id;
  std::string_view title;        // one line
  std::string_view explanation;  // a paragraph, for `explain`
};
std::span<const ErrorDoc> all_errors();
const ErrorDoc* find_error(std::string_view id);

struct FaultElsewhere {
  Place place{};
  std::string label{};
};
struct Fault {
  std::string message{};
  std::string label{};
  std::string help{};
  std::optional<FaultElsewhere> other{};
};

// A value in a message: in backquotes, and no more than the beginning of a long one.
std::string quoted_value(std::string_view value);

class Report {
 public:
  Report() = default;
  Report(std::string file, std::string_view source) { (void)add_source(std::move(file), source); }

  // The number by which a Place names this text, which must outlive the Report.
  std::uint32_t add_source(std::string file, std::string_view source);

  // `id` is kept as it is: one of the register's.
  void error(std::string_view id, Place place, Fault fault);
  bool failed() const { return !found_.empty(); }
  std::size_t count() const { return found_.size(); }

  // Sorted by place; beyond kMostShown the rest is counted in a last line.
  std::vector<Diagnostic> diagnostics() const;

  static constexpr std::size_t kMostShown = 100;

 private:
  struct Found {
    std::string_view id;
    Place place;
    Fault fault;
  };
  struct Source {
    std::string file;
    std::string_view text;
  };
  OtherPlace shown(const Place& place) const;

  std::vector<Source> sources_;
  std::vector<Found> found_;
};

}  // namespace monarch

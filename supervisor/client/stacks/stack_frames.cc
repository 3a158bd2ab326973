#include "supervisor/client/stacks/stack_frames.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace monarch {

namespace {

constexpr std::string_view kUnknown = "??";
constexpr std::string_view kMoreOfGdb = "(More stack frames follow";
constexpr std::string_view kFrameIndent = "    ";

std::string_view trimmed(std::string_view words) {
  const std::size_t from = words.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return words.substr(from, words.find_last_not_of(" \t\r") - from + 1);
}

template <class Number>
std::optional<Number> number_of(std::string_view digits, int base = 10) {
  Number number{};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::string_view digits_at(std::string_view words, std::string_view behind) {
  const std::size_t at = words.find(behind);
  if (at == std::string_view::npos) return {};
  words.remove_prefix(at + behind.size());
  return words.substr(0, words.find_first_not_of("0123456789"));
}

std::string quoted_in(std::string_view words) {
  const std::size_t from = words.find('"');
  const std::size_t to = words.rfind('"');
  return from == std::string_view::npos || to <= from ? std::string()
                                                      : std::string(words.substr(from + 1, to - from - 1));
}

bool is_address(std::string_view word) { return word.starts_with("0x"); }

// "name@GLIBC_2.2.5", "name@@GLIBC_2.34", "name@plt".
std::string_view without_version(std::string_view name) {
  const std::size_t at = name.find('@');
  return at == std::string_view::npos || at == 0 ? name : name.substr(0, at);
}

// Of "f<(x)1> (a=1, b=...)" the part before the arguments, which are the last parentheses.
std::string_view without_arguments(std::string_view call) {
  if (!call.ends_with(')')) return call;
  int depth = 0;
  for (std::size_t i = call.size(); i > 0; --i) {
    if (call[i - 1] == ')') ++depth;
    if (call[i - 1] == '(' && --depth == 0) {
      const std::string_view before = trimmed(call.substr(0, i - 1));
      return before.empty() ? call : before;
    }
  }
  return call;
}

// "file:12", "file:12:3" or "library".
void set_place(StackFrame& frame, std::string_view written) {
  frame.place = std::string(written);
  for (int part = 0; part < 2; ++part) {
    const std::size_t colon = written.rfind(':');
    if (colon == std::string_view::npos) return;
    const auto number = number_of<std::uint32_t>(written.substr(colon + 1));
    if (!number) return;
    written = written.substr(0, colon);
    frame.line = *number;
    frame.place = std::string(written);
  }
}

void set_function(StackFrame& frame, std::string_view name) {
  name = trimmed(name);
  frame.function = std::string(name.empty() || is_address(name) ? kUnknown : name);
}

// What is behind "#12 "; nothing: the line is no frame.
std::optional<std::string_view> numbered(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  const std::size_t end = line.find_first_not_of("0123456789", 1);
  if (end == 1 || end == std::string_view::npos) return std::nullopt;
  return trimmed(line.substr(end));
}

class Threads {
 public:
  explicit Threads(std::int32_t pid) : pid_(pid) {}

  void begin(std::int64_t id, std::string name) {
    const bool main = id == pid_ || name == "MainThread";
    all_.push_back({.id = id, .name = std::move(name), .main = main, .frames = {}, .more = false});
  }
  // Frames before any thread are those of the process's only one.
  ThreadStack& last() {
    if (all_.empty()) begin(pid_, "");
    return all_.back();
  }
  std::vector<ThreadStack> take() {
    std::erase_if(all_, [](const ThreadStack& thread) { return thread.frames.empty(); });
    std::stable_partition(all_.begin(), all_.end(), [](const ThreadStack& thread) { return thread.main; });
    return std::move(all_);
  }

 private:
  std::int32_t pid_;
  std::vector<ThreadStack> all_;
};

void read_gdb_line(Threads& threads, std::string_view line) {
  if (line.starts_with("Thread ") && trimmed(line).ends_with(':')) {
    const std::string_view lwp = digits_at(line, "LWP ");
    const auto id = number_of<std::int64_t>(lwp.empty() ? digits_at(line, "process ") : lwp);
    return threads.begin(id.value_or(0), quoted_in(line));
  }
  if (line.starts_with(kMoreOfGdb)) {
    threads.last().more = true;
    return;
  }
  auto call = numbered(line);
  if (!call) return;
  if (const std::size_t in = call->find(" in "); is_address(*call) && in != std::string_view::npos) {
    call->remove_prefix(in + 4);
  }
  StackFrame frame;
  const std::size_t at = call->rfind(") at ");
  const std::size_t from = call->rfind(") from ");
  if (at != std::string_view::npos) {
    set_place(frame, trimmed(call->substr(at + 5)));
    *call = call->substr(0, at + 1);
  } else if (from != std::string_view::npos) {
    frame.place = std::string(trimmed(call->substr(from + 7)));
    *call = call->substr(0, from + 1);
  }
  set_function(frame, without_version(without_arguments(trimmed(*call))));
  threads.last().frames.push_back(std::move(frame));
}

void read_eu_stack_line(Threads& threads, std::string_view line) {
  if (line.starts_with("TID ")) {
    return threads.begin(number_of<std::int64_t>(digits_at(line, "TID ")).value_or(0), "");
  }
  if (line.starts_with(kFrameIndent)) {
    // Where the frame before it is, in its source.
    if (!threads.last().frames.empty()) set_place(threads.last().frames.back(), trimmed(line));
    return;
  }
  auto call = numbered(line);
  if (!call) return;
  if (is_address(*call)) *call = trimmed(call->substr(std::min(call->find(' '), call->size())));
  StackFrame frame;
  if (call->starts_with("- /")) {
    frame.place = std::string(trimmed(call->substr(2)));
    *call = {};
  } else if (const std::size_t dash = call->rfind(" - /"); dash != std::string_view::npos) {
    frame.place = std::string(trimmed(call->substr(dash + 3)));
    *call = call->substr(0, dash);
  }
  set_function(frame, without_version(trimmed(*call)));
  threads.last().frames.push_back(std::move(frame));
}

void read_py_spy_line(Threads& threads, std::string_view line) {
  constexpr std::string_view kThread = "Thread ";
  if (line.starts_with(kThread)) {
    const std::string_view rest = line.substr(kThread.size());
    const std::string_view written = rest.substr(0, rest.find(' '));
    const auto id =
        is_address(written) ? number_of<std::int64_t>(written.substr(2), 16) : number_of<std::int64_t>(written);
    return threads.begin(id.value_or(0), quoted_in(line));
  }
  // Deeper ones are the values of variables.
  if (!line.starts_with(kFrameIndent) || line.substr(kFrameIndent.size()).starts_with(' ')) return;
  const std::string_view call = trimmed(line);
  const std::size_t open = call.rfind(" (");
  if (open == std::string_view::npos || !call.ends_with(')')) return;
  StackFrame frame;
  set_place(frame, call.substr(open + 2, call.size() - open - 3));
  set_function(frame, call.substr(0, open));
  threads.last().frames.push_back(std::move(frame));
}

using ReadLine = void (*)(Threads&, std::string_view);

ReadLine reader_of(StackTool tool) {
  switch (tool) {
    case StackTool::kNone: return nullptr;
    case StackTool::kPySpy: return read_py_spy_line;
    case StackTool::kEuStack: return read_eu_stack_line;
    case StackTool::kGdb: return read_gdb_line;
  }
  return nullptr;
}

}  // namespace

std::vector<ThreadStack> read_stacks(StackTool tool, std::string_view output, std::int32_t pid) {
  const ReadLine read = reader_of(tool);
  Threads threads(pid);
  while (read != nullptr && !output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    read(threads, line);
    output.remove_prefix(std::min(line.size() + 1, output.size()));
  }
  return threads.take();
}

}  // namespace monarch

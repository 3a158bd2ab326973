#include "worker/keeper/port_holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <vector>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::string_view kListening = "0A";
constexpr std::size_t kStateField = 3;
constexpr std::size_t kLocalField = 1;
constexpr std::size_t kInodeField = 9;

std::string read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  if (!fd.valid()) return bytes;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t from = line.find_first_not_of(' ');
    if (from == std::string_view::npos) return fields;
    line.remove_prefix(from);
    const std::size_t to = line.find(' ');
    fields.push_back(line.substr(0, to));
    if (to == std::string_view::npos) return fields;
    line.remove_prefix(to);
  }
}

template <class Number>
std::optional<Number> parsed_number(std::string_view digits, int base) {
  Number value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

template <class Take>
void each_entry(const std::string& folder, Take take) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), ::closedir);
  if (!opened) return;
  while (const dirent* entry = ::readdir(opened.get())) take(std::string_view(entry->d_name));
}

bool has_open(const std::string& process, const std::string& socket) {
  bool found = false;
  each_entry(process + "/fd", [&](std::string_view name) {
    std::array<char, 64> target{};
    const ssize_t size = ::readlink(text(process, "/fd/", name).c_str(), target.data(), target.size());
    found = found || (size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == socket);
  });
  return found;
}

}  // namespace

std::uint64_t socket_inode_of_port(std::string_view table, std::uint16_t port) {
  std::uint64_t any = 0;
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    const auto fields = fields_of(table.substr(0, end));
    table.remove_prefix(end == std::string_view::npos ? table.size() : end + 1);
    if (fields.size() <= kInodeField) continue;
    const std::string_view local = fields[kLocalField];
    const std::size_t colon = local.rfind(':');
    if (colon == std::string_view::npos || parsed_number<std::uint16_t>(local.substr(colon + 1), 16) != port) continue;
    const std::uint64_t inode = parsed_number<std::uint64_t>(fields[kInodeField], 10).value_or(0);
    if (inode == 0) continue;  // of no process: it waits for its last packets
    if (fields[kStateField] == kListening) return inode;
    if (any == 0) any = inode;
  }
  return any;
}

std::optional<PortHolder> holder_of_port(std::uint16_t port, const std::string& proc) {
  std::uint64_t inode = socket_inode_of_port(read_file(proc + "/net/tcp"), port);
  if (inode == 0) inode = socket_inode_of_port(read_file(proc + "/net/tcp6"), port);
  if (inode == 0) return std::nullopt;
  const std::string socket = text("socket:[", inode, ']');
  std::optional<PortHolder> holder;
  each_entry(proc, [&](std::string_view name) {
    const auto pid = holder ? std::nullopt : parsed_number<pid_t>(name, 10);
    if (!pid || !has_open(text(proc, '/', name), socket)) return;
    std::string program = read_file(text(proc, '/', name, "/comm"));
    while (program.ends_with('\n')) program.pop_back();
    holder = PortHolder{*pid, std::move(program)};
  });
  return holder;
}

}  // namespace monarch

#include "supervisor/spec/program_spec.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/yaml/yaml_tree.h"
#include "supervisor/spec/yaml/yaml_writer.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// A colon and brackets mean something else there, and a host's name stands in paths and marks.
std::string host_list_help(std::string_view list) {
  for (std::string_view rest = list; !rest.empty();) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    if (item.starts_with('[')) item = item.substr(1, item.find(']') - 1);
    if (item.find(':') == std::string_view::npos || numeric_address(item) == NumericAddress::kNone) continue;
    return text(
        "an IPv6 address is the address of a host, not its name: write a spec with `launch: {ssh: {hosts: [{name: "
        "gpu1, address: \"",
        item, "\"}]}}`");
  }
  if (list.find('@') != std::string_view::npos) {
    return "write the names alone, and the user as `--set launch.ssh.user=alice`";
  }
  return "write `-H a,b`, `-H node[01-20]` or `-H a:4,b:4`";
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A program whose first argument is what it runs.
bool is_interpreter(std::string_view program) {
  const std::size_t version = program.find_first_of("0123456789");
  const std::string_view bare = program.substr(0, version);
  return bare == "python" || bare == "bash" || bare == "sh" || bare == "perl" || bare == "ruby" || bare == "node";
}

// How many ranks on how many hosts; the hosts are those of -H, or none: this machine.
struct Shape {
  std::vector<std::string> hosts;
  std::uint32_t per_host = 1;
};

class ShapeReader {
 public:
  ShapeReader(const ProgramLine& line, Report& report) : line_(line), report_(report) {}

  std::optional<Shape> read() {
    const std::optional<std::uint32_t> size = read_size();
    if (line_.size && !size) return std::nullopt;
    if (!line_.hosts) {
      std::vector<HostSlots> launched = hosts_of_launch();
      if (launched.size() > size.value_or(1)) launched.resize(size.value_or(1));
      return launched.empty() ? Shape{.hosts = {}, .per_host = size.value_or(1)} : spread(launched, size);
    }
    auto hosts = expand_slot_list(flag_value(*line_.hosts));
    if (!hosts.ok()) {
      return refuse("E0208", whole(*line_.hosts, 1),
                    {.message = "`-H` is not a list of hosts",
                     .label = hosts.error().message,
                     .help = host_list_help(flag_value(*line_.hosts))});
    }
    if (hosts->size() > limits::kHostsPerJob) {
      return refuse("E0307", whole(*line_.hosts, 1),
                    {.message = text("`-H` has ", hosts->size(), " hosts; a job has at most ", limits::kHostsPerJob),
                     .label = "",
                     .help = "keep fewer of them"});
    }
    return spread(*hosts, size);
  }

 private:
  std::optional<std::uint32_t> read_size() {
    if (!line_.size) return std::nullopt;
    const std::string_view digits = flag_value(*line_.size);
    std::uint32_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    const bool whole_number = error == std::errc() && end == digits.data() + digits.size() && digits.front() != '0';
    if (whole_number && size <= limits::kRanksPerJob) return size;
    report_.error("E0201", whole(*line_.size, 0),
                  {.message = text("`-n` takes a number of ranks, not `", digits, "`"),
                   .label = text("from 1 to ", limits::kRanksPerJob),
                   .help = "`-n 4` starts four"});
    return std::nullopt;
  }

  // None where it names no number of them; what is wrong with it is found by whoever reads the spec.
  std::vector<HostSlots> hosts_of_launch() const {
    if (!line_.launch) return {};
    const std::string_view value = flag_value(*line_.launch);
    const std::size_t colon = value.find(':');
    const LauncherSpec* launcher = find_launcher_spec(value.substr(0, colon));
    if (launcher == nullptr || colon == std::string_view::npos) return {};
    if (!launcher->flag_counts) {
      const auto names = expand_hostlist(value.substr(colon + 1));
      std::vector<HostSlots> hosts;
      if (!names.ok()) return hosts;
      for (const std::string& name : *names) hosts.push_back({.name = name, .slots = std::nullopt});
      return hosts;
    }
    const std::string_view digits = value.substr(colon + 1);
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    return std::vector<HostSlots>(whole ? std::min<std::uint32_t>(count, limits::kHostsPerJob) : 0);
  }

  std::optional<Shape> spread(const std::vector<HostSlots>& hosts, std::optional<std::uint32_t> size) {
    Shape shape;
    for (const HostSlots& host : hosts) shape.hosts.push_back(host.name);
    const auto count = static_cast<std::uint32_t>(hosts.size());
    const bool slots = std::any_of(hosts.begin(), hosts.end(), [](const HostSlots& h) { return h.slots.has_value(); });
    if (slots) {
      const std::uint32_t first = hosts.front().slots.value_or(1);
      for (const HostSlots& host : hosts) {
        if (host.slots.value_or(1) == first) continue;
        return refuse("E0308", whole(*line_.hosts, 1),
                      {.message = "the hosts of one mesh take the same number of ranks",
                       .label = text("`", hosts.front().name, "` takes ", first, ", `", host.name, "` takes ",
                                     host.slots.value_or(1)),
                       .help = "a spec with several meshes can have both"});
      }
      shape.per_host = first;
      const std::uint64_t all = std::uint64_t{first} * count;
      if (size && *size != all) {
        return refuse("E0308", whole(*line_.size, 0),
                      {.message = text(*size, " ranks on ", count, " hosts of ", first, " each"),
                       .label = text("the hosts take ", all),
                       .help = text("`-n ", all, "` would work, or leave it out")});
      }
      return shape;
    }
    shape.per_host = size ? *size / count : 1;
    if (!size || (*size % count == 0 && *size > 0)) return shape;
    const std::uint32_t below = *size - *size % count;
    return refuse("E0308", whole(*line_.size, 0),
                  {.message = text(*size, " ranks cannot be spread evenly over ", count, " hosts"),
                   .label = "every host takes the same number",
                   .help = below == 0 ? text("`-n ", count, "` would work")
                                      : text("`-n ", below, "` or `-n ", below + count, "` would work")});
  }

  std::nullopt_t refuse(std::string_view id, Place place, Fault fault) {
    report_.error(id, place, std::move(fault));
    return std::nullopt;
  }

  static Place whole(const FlagText& flag, std::uint32_t number) {
    const std::size_t length = std::max<std::size_t>(1, flag_value(flag).size());
    return {1, static_cast<std::uint32_t>(flag.begin + 1), static_cast<std::uint32_t>(length), number};
  }

  const ProgramLine& line_;
  Report& report_;
};

void check_program(const std::vector<std::string>& program, Report& report) {
  const std::string& first = program.front();
  const Place place{1, 4, static_cast<std::uint32_t>(std::max<std::size_t>(1, first.size())), 2};
  if (first.empty()) {
    report.error("E0210", place, {.message = "no program behind `--`", .label = "is empty"});
  }
}

// Without --launch, other machines are reached by SSH.
bool needs_ssh(const ProgramLine& line, const Shape& shape) {
  const bool here = shape.hosts.empty() || shape.hosts == std::vector<std::string>{"localhost"} ||
                    shape.hosts == std::vector<std::string>{line.own_name};
  return !here && !line.launch;
}

std::string spec_text(const ProgramLine& line, const Shape& shape) {
  YamlNode dims;
  if (shape.hosts.size() > 1) append_key(dims, "host", scalar_node(text(shape.hosts.size())));
  append_key(dims, "slot", scalar_node(text(shape.per_host)));
  YamlNode program{.kind = YamlNode::Kind::kList};
  for (const std::string& word : line.program) program.items.push_back(scalar_node(word));
  YamlNode mesh;
  append_key(mesh, "dims", std::move(dims));
  append_key(mesh, "program", std::move(program));
  YamlNode meshes;
  append_key(meshes, "main", std::move(mesh));
  const bool ssh = needs_ssh(line, shape);
  YamlNode launcher;
  append_key(launcher, "hosts",
             scalar_node(ssh ? fold_hostlist(shape.hosts) : text(std::max<std::size_t>(1, shape.hosts.size()))));
  YamlNode launch;
  append_key(launch, ssh ? "ssh" : "local", std::move(launcher));
  YamlNode root;
  append_key(root, "version", scalar_node("1"));
  append_key(root, "job", scalar_node(job_name_of(line.program)));
  append_key(root, "launch", std::move(launch));
  append_key(root, "meshes", std::move(meshes));
  return write_yaml(root);
}

}  // namespace

std::string job_name_of(const std::vector<std::string>& program) {
  std::string_view name = base_name(program.front());
  if (program.size() > 1 && is_interpreter(name) && !program[1].starts_with('-')) name = base_name(program[1]);
  const std::size_t dot = name.find('.');
  if (dot > 0) name = name.substr(0, dot);
  const std::string near = is_name(name) ? std::string(name) : nearest_name(name);
  return is_name(near) && !is_reserved_name(near) ? near : "job";
}

std::variant<SpecSource, SpecOutcome> spec_of_program(const ProgramLine& line) {
  SpecOutcome outcome;
  const FlagText words = arguments_text(line.program);
  for (const FlagText& shown : {line.size.value_or(FlagText{}), line.hosts.value_or(FlagText{}), words}) {
    outcome.sources.push_back({shown.from, shown.text});
  }
  Report report;
  for (const SpecText& source : outcome.sources) (void)report.add_source(source.name, source.text);
  check_program(line.program, report);
  const std::optional<Shape> shape = ShapeReader(line, report).read();
  outcome.diagnostics = report.diagnostics();
  if (report.failed()) return outcome;
  return SpecSource{.name = "command line", .text = spec_text(line, *shape), .directory = line.directory};
}

}  // namespace monarch

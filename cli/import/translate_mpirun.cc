// mpirun and mpiexec, of Open MPI and of MPICH.

#include <algorithm>
#include <fstream>

#include "cli/import/foreign_flags.h"
#include "supervisor/core/spec/variables.h"
#include "supervisor/spec/schema/names.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What Open MPI does where nothing is said; MPICH does not.
constexpr std::string_view kBinding = "Open MPI's binding: ranks here may use every processor; ";
constexpr std::string_view kToCores = "`resources: {cpus: 1, bind: core}` binds each to a core, as it does for up to 2";
constexpr std::string_view kToNodes = "`resources: {bind: numa}` binds each to a NUMA node, as it does for more than 2";
constexpr std::string_view kMpi = "there is no MPI runtime that it could be for";

struct Slots {
  std::optional<std::uint32_t> ranks;
  std::optional<std::uint32_t> per_node;
  std::vector<std::pair<std::string, std::uint32_t>> hosts;  // with their slots
  bool binding_is_said = false;
};

WrongValue add_host(Slots& slots, const std::string& item) {
  const std::size_t colon = item.rfind(':');
  const auto count = colon == std::string::npos ? std::optional<std::uint32_t>(1) : positive(item.substr(colon + 1));
  if (!count || item.empty() || colon == 0) return text("`", item, "` is not HOST or HOST:SLOTS");
  const std::string name = item.substr(0, colon);
  for (auto& [host, seen] : slots.hosts) {
    if (host != name) continue;
    seen += *count;
    return std::nullopt;
  }
  slots.hosts.emplace_back(name, *count);
  return std::nullopt;
}

FlagUse use_hosts(Slots& slots) {
  return [&slots](Translation&, const std::string& value) -> WrongValue {
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (auto wrong = add_host(slots, std::string(rest.substr(0, end)))) return wrong;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return slots.hosts.empty() ? WrongValue("a list of hosts is meant") : std::nullopt;
  };
}

// One host per line, as `node1 slots=4` or `node1:4`.
FlagUse use_hostfile(Slots& slots) {
  return [&slots](Translation&, const std::string& path) -> WrongValue {
    std::ifstream file(path);
    if (!file) return "the file cannot be read";
    for (std::string line; std::getline(file, line);) {
      line.erase(std::min(line.find('#'), line.size()));
      const std::size_t begin = line.find_first_not_of(" \t\r");
      if (begin == std::string::npos) continue;
      const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
      const std::size_t written = line.find("slots=", end);
      std::string item = line.substr(begin, end - begin);
      if (written != std::string::npos) {
        const std::size_t digits = written + 6;
        item += text(":", line.substr(digits, line.find_first_not_of("0123456789", digits) - digits));
      }
      if (auto wrong = add_host(slots, item)) return wrong;
    }
    return slots.hosts.empty() ? WrongValue("the file names no hosts") : std::nullopt;
  };
}

WrongValue use_variable(Translation& t, const std::string& value) {
  const std::size_t sign = value.find('=');
  if (!is_variable(value.substr(0, sign))) return "NAME or NAME=VALUE is meant";
  if (sign == std::string::npos) {
    t.env_pass.push_back(value);
  } else {
    t.env.push_back({value.substr(0, sign), {.text = value.substr(sign + 1)}});
  }
  return std::nullopt;
}

// "NAME VALUE"
WrongValue use_pair(Translation& t, const std::string& value) {
  const std::size_t blank = value.find(' ');
  return use_variable(t, text(value.substr(0, blank), "=", value.substr(blank + 1)));
}

WrongValue use_workdir(Translation& t, const std::string& value) {
  t.workdir = ShellWord{.text = value};
  return std::nullopt;
}

WrongValue use_timeout(Translation& t, const std::string& value) {
  if (!positive(value)) return "a number of seconds is meant";
  t.keys["time_limit"] = text(value, "s");
  return std::nullopt;
}

// What is behind the unit, "PE=4" or "SPAN:OVERSUBSCRIBE"; false: some of it is not known.
bool use_modifiers(Translation& t, Slots& slots, std::string_view modifiers) {
  bool all_known = true;
  while (!modifiers.empty()) {
    const std::size_t end = std::min(modifiers.find(':'), modifiers.size());
    const std::string_view one = modifiers.substr(0, end);
    modifiers.remove_prefix(std::min(end + 1, modifiers.size()));
    const auto cores = one.starts_with("PE=") || one.starts_with("pe=") ? positive(one.substr(3)) : std::nullopt;
    if (cores) {
      t.keys["meshes.*.resources.bind"] = "core";
      t.keys["meshes.*.resources.cpus"] = text(*cores);
    } else if (one != "OVERSUBSCRIBE" && one != "oversubscribe") {
      all_known = false;
      continue;
    }
    slots.binding_is_said = true;
  }
  return all_known;
}

FlagUse use_map(Slots& slots) {
  return [&slots](Translation& t, const std::string& value) -> WrongValue {
    const auto unit_of = [&](std::size_t from) { return value.substr(from, value.find(':', from) - from); };
    const auto behind = [&](std::size_t at) { return std::string_view(value).substr(std::min(at + 1, value.size())); };
    if (!value.starts_with("ppr:")) {
      const std::string unit = unit_of(0);
      const bool known = use_modifiers(t, slots, behind(unit.size()));
      if (!known || (unit != "slot" && unit != "core"))
        t.notes.push_back(text("--map-by ", value, ": ranks of a host are neighbours"));
      return std::nullopt;
    }
    const std::size_t end = value.find(':', 4);
    const std::string unit = end == std::string::npos ? "" : unit_of(end + 1);
    slots.per_node = positive(value.substr(4, end - 4));
    if (!slots.per_node || unit != "node") return "of its forms only ppr:N:node can be carried over";
    if (!use_modifiers(t, slots, behind(end + 1 + unit.size())))
      t.notes.push_back(text("--map-by ", value, ": only ppr:", *slots.per_node, ":node is carried over"));
    return std::nullopt;
  };
}

WrongValue use_bind(Translation& t, Slots& slots, const std::string& value) {
  slots.binding_is_said = true;
  if (value == "core" || value == "hwthread") {
    t.keys["meshes.*.resources.bind"] = "core";
    t.keys.try_emplace("meshes.*.resources.cpus", "1");
  } else if (value == "numa" || value == "socket" || value == "package") {
    t.keys["meshes.*.resources.bind"] = "numa";
  } else if (value != "none") {
    t.notes.push_back(text("--bind-to ", value, ": ranks are bound to cores or to a NUMA node, or not"));
  }
  return std::nullopt;
}

// --bind-to-core is --bind-to core, as it once was written.
FlagUse bind_to(Slots& slots, std::string what) {
  return [&slots, what = std::move(what)](Translation& t, const std::string&) { return use_bind(t, slots, what); };
}

std::vector<ForeignFlag> mpirun_flags(Slots& slots) {
  const FlagUse binds = [&slots](Translation& t, const std::string& value) { return use_bind(t, slots, value); };
  const FlagUse shares = [&slots](Translation&, const std::string&) -> WrongValue {
    slots.binding_is_said = true;  // Open MPI does not bind then, and cores are shared unless bound
    return std::nullopt;
  };
  return {
      {.names = "-n|-np|--n|--np|-c", .use = use_number(slots.ranks)},
      {.names = "-N|--npernode|-npernode|-ppn|--ppn", .use = use_number(slots.per_node)},
      {.names = "-H|--host|-host|--hosts|-hosts", .use = use_hosts(slots)},
      {.names = "--hostfile|-hostfile|--machinefile|-machinefile|-f", .use = use_hostfile(slots)},
      {.names = "-x|--x", .use = use_variable},
      {.names = "--wdir|-wdir|-wd|--wd|--set-cwd-to", .use = use_workdir},
      {.names = "--timeout|-timeout", .use = use_timeout},
      {.names = "--map-by|-map-by", .use = use_map(slots)},
      {.names = "--bind-to|-bind-to", .use = binds},
      {.names = "--rank-by|-rank-by", .note = "ranks of a host are neighbours"},
      {.names = "--oversubscribe|-oversubscribe", .takes = FlagTakes::kNothing, .use = shares},
      {.names = "--nooversubscribe|-nooversubscribe",
       .takes = FlagTakes::kNothing,
       .note = "`resources: {cpus: 1, bind: core}` gives each rank a core of its own"},
      {.names = "--bind-to-core|-bind-to-core", .takes = FlagTakes::kNothing, .use = bind_to(slots, "core")},
      {.names = "--bind-to-socket|-bind-to-socket", .takes = FlagTakes::kNothing, .use = bind_to(slots, "socket")},
      {.names = "--bind-to-none|-bind-to-none", .takes = FlagTakes::kNothing, .use = bind_to(slots, "none")},
      {.names = "--bycore|-bycore|--byslot|-byslot|--bynode|-bynode",
       .takes = FlagTakes::kNothing,
       .note = "ranks of a host are neighbours"},
      {.names = "--allow-run-as-root", .takes = FlagTakes::kNothing, .note = "not needed"},
      {.names = "--tag-output|-tag-output|--timestamp-output|-l", .takes = FlagTakes::kNothing, .note = kOutputIsKept},
      {.names = "--output-filename|-output-filename|--output", .note = kOutputIsKept},
      {.names = "--merge-stderr-to-stdout", .takes = FlagTakes::kNothing, .note = kOutputIsKept},
      {.names = "--report-bindings|-report-bindings",
       .takes = FlagTakes::kNothing,
       .note = "`monarch plan` shows them"},
      {.names = "--display-map|-display-map", .takes = FlagTakes::kNothing, .note = "`monarch plan` shows it"},
      {.names = "--display", .note = "`monarch plan` shows it"},
      {.names = "--stdin",
       .use = [](Translation& t, const std::string& value) { return use_input(t, "--stdin", value); }},
      {.names = "--mca|-mca|--gmca|-gmca|--prtemca", .takes = FlagTakes::kTwoValues, .note = kMpi},
      {.names = "-genv|-env", .takes = FlagTakes::kTwoValues, .use = use_pair},
      {.names = "--prefix", .note = kMpi},
      {.names = "--path", .note = "the program is searched in PATH of the ranks"},
      {.names = "-q|--quiet|-v|--verbose", .takes = FlagTakes::kNothing, .note = "`monarch run` has --quiet"}};
}

std::optional<Complaint> place(Translation& t, const Slots& slots) {
  std::uint32_t all = 0;
  for (const auto& [name, count] : slots.hosts) all += count;
  const bool even = std::all_of(slots.hosts.begin(), slots.hosts.end(),
                                [&](const auto& host) { return host.second == slots.hosts.front().second; });
  std::uint32_t hosts = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(slots.hosts.size()));
  std::uint32_t per_node =
      slots.per_node.value_or(slots.hosts.empty() ? slots.ranks.value_or(1) : slots.hosts[0].second);
  const std::uint32_t ranks = slots.ranks.value_or(slots.per_node ? *slots.per_node * hosts : std::max(1U, all));
  if (slots.hosts.empty()) hosts = (ranks + per_node - 1) / per_node;
  // Open MPI fills a host before it takes the next.
  if (!slots.hosts.empty() && ranks < per_node * hosts) hosts = (ranks + per_node - 1) / per_node;
  if (hosts == 1) per_node = std::min(per_node, ranks);
  if (!slots.per_node && !even)
    return refused_line(t.launcher, "has hosts with different numbers of slots",
                        "ranks of a mesh are a box: give each host the same number");
  if (hosts * per_node != ranks) {
    const std::uint32_t fits = std::max(1U, ranks / per_node) * per_node;
    return refused_line(
        t.launcher, text("-n ", ranks, " does not make the same number on each of ", hosts, " hosts with ", per_node),
        text("`-n ", fits, "` would work"));
  }
  for (std::uint32_t i = 0; i < std::min<std::size_t>(hosts, slots.hosts.size()); ++i) {
    if (slots.hosts[i].first != "localhost") t.host_names.push_back(slots.hosts[i].first);
  }
  t.hosts = hosts;
  t.hosts_written = true;
  t.per_host = text(per_node);
  return std::nullopt;
}

}  // namespace

TranslatedLine translate_mpirun(std::vector<ShellWord> words) {
  Translation t;
  t.launcher = "mpirun";
  Slots slots;
  const FlagGrammar grammar{.launcher = "mpirun", .underscores = false, .long_with_one_dash = true};
  if (auto wrong = read_foreign_flags(grammar, mpirun_flags(slots), t, words)) return *wrong;
  if (words.empty()) return refused_line(t.launcher, "is given no program", "");
  if (std::any_of(words.begin(), words.end(), [](const ShellWord& w) { return w.text == ":"; }))
    return refused_line(t.launcher, "starts several programs",
                        "translate each alone, and put their meshes into one spec");
  if (auto wrong = place(t, slots)) return *wrong;
  t.notes.emplace_back(
      "there is no PMI server: a program that calls MPI_Init runs alone; RANK and WORLD_SIZE tell its place");
  const std::uint32_t per_host = positive(t.per_host).value_or(1);
  if (!slots.binding_is_said) t.notes.push_back(text(kBinding, t.hosts * per_host <= 2 ? kToCores : kToNodes));
  t.place = {{"OMPI_COMM_WORLD_RANK", "$(self.rank)"},
             {"OMPI_COMM_WORLD_SIZE", text(t.hosts * per_host)},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "$(self.local_rank)"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", text(per_host)}};
  t.program = std::move(words);
  return translate_inner(std::move(t));
}

}  // namespace monarch

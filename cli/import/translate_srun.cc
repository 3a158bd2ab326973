// srun, and the flags that sbatch shares with it.

#include <algorithm>
#include <cctype>

#include "cli/import/foreign_flags.h"
#include "supervisor/core/spec/hostlist.h"
#include "supervisor/core/spec/variables.h"
#include "supervisor/spec/schema/names.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kCluster =
    "it is for who asks Slurm for the nodes: `salloc`, `sbatch`; monarch does not do that yet";

struct StepCounts {
  std::optional<std::uint32_t> tasks;
  std::optional<std::uint32_t> tasks_per_node;
  std::optional<std::uint32_t> gpus;  // of the whole step
  std::optional<std::uint32_t> gpus_per_node;
  bool kill_on_bad_exit = false;
  std::optional<std::string> export_without_all;
};

// "gpu:8", "gpu:h100:8", "h100:8" and "8"
std::optional<std::uint32_t> gpus_of(Translation& t, const std::string& flag, std::string value) {
  if (value.starts_with("gpu:")) value.erase(0, 4);
  const std::size_t colon = value.rfind(':');
  if (colon != std::string::npos) {
    t.notes.push_back(text(flag, " ", value, ": any GPU is as good as another here"));
    value.erase(0, colon + 1);
  }
  return value == "gpu" ? 1 : positive(value);
}

FlagUse gpus(std::string flag, std::optional<std::uint32_t>& into) {
  return [flag = std::move(flag), &into](Translation& t, const std::string& value) -> WrongValue {
    if (flag == "--gres" && !value.starts_with("gpu")) {
      t.notes.push_back(text(flag, " ", value, ": GPUs are the only resource of that kind here"));
      return std::nullopt;
    }
    into = gpus_of(t, flag, value);
    return into ? std::nullopt : WrongValue("a number of GPUs is meant");
  };
}

WrongValue use_nodes(Translation& t, const std::string& value) {
  const std::size_t dash = value.find('-');
  const auto least = positive(value.substr(0, dash));
  const auto most = dash == std::string::npos ? least : positive(value.substr(dash + 1));
  if (!least || !most || *most < *least) return "a number of nodes is meant";
  if (*least != *most) t.notes.push_back(text("--nodes ", value, ": always ", *most, " hosts"));
  t.hosts = *most;
  t.hosts_written = true;
  return std::nullopt;
}

WrongValue use_nodelist(Translation& t, const std::string& value) {
  const auto names = expand_hostlist(value);
  if (!names.ok()) return names.error().message;
  t.host_names = *names;
  if (!t.hosts_written) t.hosts = static_cast<std::uint32_t>(names->size());
  t.hosts_written = true;
  return std::nullopt;
}

WrongValue use_gpus_per_task(Translation& t, const std::string& value) {
  const auto count = gpus_of(t, "--gpus-per-task", value);
  if (!count) return "a number of GPUs is meant";
  t.keys["meshes.*.resources.gpus"] = text(*count);
  return std::nullopt;
}

WrongValue use_cpus(Translation& t, const std::string& value) {
  if (!positive(value)) return "a number of cores is meant";
  t.keys["meshes.*.resources.cpus"] = value;
  return std::nullopt;
}

WrongValue use_cpu_bind(Translation& t, const std::string& value) {
  std::string kind = value.substr(value.find(',') == std::string::npos ? 0 : value.find(',') + 1);
  if (kind == "none" || kind == "no") return std::nullopt;
  if (kind == "cores" || kind == "threads") {
    t.keys["meshes.*.resources.bind"] = "core";
    t.keys.try_emplace("meshes.*.resources.cpus", "1");
  } else if (kind == "ldoms" || kind == "rank_ldom") {
    t.keys["meshes.*.resources.bind"] = "numa";
  } else {
    t.notes.push_back(text("--cpu-bind ", value, ": ranks are bound to cores or to a NUMA node, or not"));
  }
  return std::nullopt;
}

WrongValue use_export(Translation& t, StepCounts& counts, const std::string& value) {
  std::string_view rest = value;
  bool all = false;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string item(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t sign = item.find('=');
    if (item == "ALL" || item == "NONE" || item == "NIL") {
      all = all || item == "ALL";
    } else if (!is_variable(item.substr(0, sign))) {
      return text("`", item, "` is no variable");
    } else if (sign == std::string::npos) {
      t.env_pass.push_back(item);
    } else {
      t.env.push_back({item.substr(0, sign), {.text = item.substr(sign + 1)}});
    }
  }
  counts.export_without_all = all ? std::nullopt : std::optional(value);
  return std::nullopt;
}

// What else of the shell the tasks would see, or would not.
void note_environment(Translation& t, const StepCounts& counts) {
  if (counts.export_without_all && !reaches_hosts(t)) {
    t.notes.push_back(
        text("--export ", *counts.export_without_all, ": ranks on this machine have all of your shell's environment"));
  } else if (!counts.export_without_all && reaches_hosts(t)) {
    t.notes.emplace_back(
        "your shell's environment: over SSH a rank has that of a login on its host, and what `env_pass` names");
  }
}

WrongValue use_chdir(Translation& t, const std::string& value) {
  t.workdir = ShellWord{.text = value};
  return std::nullopt;
}

// minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and days-hours:minutes:seconds
std::optional<std::uint64_t> parse_slurm_time(const std::string& value) {
  const std::size_t dash = value.find('-');
  std::vector<std::uint64_t> parts;
  std::string_view rest = std::string_view(value).substr(dash == std::string::npos ? 0 : dash + 1);
  while (true) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string part(rest.substr(0, end));
    if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    parts.push_back(std::stoull(part));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (parts.size() > 3) return std::nullopt;
  if (dash == std::string::npos) {
    if (parts.size() == 1) return parts[0] * 60;
    if (parts.size() == 2) return parts[0] * 60 + parts[1];
    return parts[0] * 3600 + parts[1] * 60 + parts[2];
  }
  const auto days = positive(value.substr(0, dash));
  if (!days && value.substr(0, dash) != "0") return std::nullopt;
  parts.resize(3, 0);
  return days.value_or(0) * std::uint64_t{86'400} + parts[0] * 3600 + parts[1] * 60 + parts[2];
}

WrongValue use_time(Translation& t, const std::string& value) {
  if (value == "0" || value == "UNLIMITED" || value == "INFINITE") return std::nullopt;
  const auto seconds = parse_slurm_time(value);
  if (!seconds || *seconds == 0) return "minutes, hours:minutes:seconds or days-hours are meant";
  const std::uint64_t hours = *seconds / 3600;
  const std::uint64_t minutes = *seconds / 60 % 60;
  const std::uint64_t rest = *seconds % 60;
  t.keys["time_limit"] =
      text(hours > 0 ? text(hours, "h") : "", minutes > 0 ? text(minutes, "m") : "", rest > 0 ? text(rest, "s") : "");
  return std::nullopt;
}

WrongValue use_job_name(Translation& t, const std::string& value) {
  t.job = nearest_name(value);
  if (t.job != value) t.notes.push_back(text("--job-name ", value, ": is no name of a job here; it is called ", t.job));
  return std::nullopt;
}

WrongValue use_mpi(Translation& t, const std::string& value) {
  if (value != "none")
    t.notes.push_back(text("--mpi ", value, ": there is no PMI server; a program that calls MPI_Init runs alone"));
  return std::nullopt;
}

WrongValue use_immediate_end(StepCounts& counts, const std::string& value) {
  counts.kill_on_bad_exit = value != "0";
  return std::nullopt;
}

std::vector<ForeignFlag> srun_flags(StepCounts& counts) {
  const FlagUse kill = [&counts](Translation&, const std::string& value) { return use_immediate_end(counts, value); };
  const FlagUse exports = [&counts](Translation& t, const std::string& value) { return use_export(t, counts, value); };
  return {
      {.names = "--nodes|-N", .use = use_nodes},
      {.names = "--ntasks|-n", .use = use_number(counts.tasks)},
      {.names = "--ntasks-per-node|--tasks-per-node", .use = use_number(counts.tasks_per_node)},
      {.names = "--nodelist|-w", .use = use_nodelist},
      {.names = "--gpus-per-task", .use = use_gpus_per_task},
      {.names = "--gpus-per-node", .use = gpus("--gpus-per-node", counts.gpus_per_node)},
      {.names = "--gres", .use = gpus("--gres", counts.gpus_per_node)},
      {.names = "--gpus|-G", .use = gpus("--gpus", counts.gpus)},
      {.names = "--cpus-per-task|-c", .use = use_cpus},
      {.names = "--cpu-bind", .use = use_cpu_bind},
      {.names = "--export", .use = exports},
      {.names = "--chdir|-D", .use = use_chdir},
      {.names = "--time|-t", .use = use_time},
      {.names = "--job-name|-J", .use = use_job_name},
      {.names = "--mpi", .use = use_mpi},
      {.names = "--kill-on-bad-exit|-K", .takes = FlagTakes::kMaybeValue, .use = kill},
      {.names = "--partition|-p", .note = kCluster},
      {.names = "--account|-A", .note = kCluster},
      {.names = "--qos|-q", .note = kCluster},
      {.names = "--constraint|-C", .note = kCluster},
      {.names = "--exclude|-x", .note = kCluster},
      {.names = "--reservation", .note = kCluster},
      {.names = "--comment", .note = kCluster},
      {.names = "--jobid", .note = kCluster},
      {.names = "--mem", .note = "memory is not limited"},
      {.names = "--mem-per-cpu", .note = "memory is not limited"},
      {.names = "--mem-per-gpu", .note = "memory is not limited"},
      {.names = "--mem-bind", .note = "memory is not bound but by `resources.bind`"},
      {.names = "--gpu-bind", .note = "a rank sees the GPUs of `resources.visible`"},
      {.names = "--distribution|-m", .note = "ranks of a host are neighbours"},
      {.names = "--exclusive", .takes = FlagTakes::kMaybeValue, .note = "each mesh has hosts of its own"},
      {.names = "--overlap|--oversubscribe|-O|-s",
       .takes = FlagTakes::kNothing,
       .note = "cores are shared unless bound"},
      {.names = "--label|-l", .takes = FlagTakes::kNothing, .note = kOutputIsKept},
      {.names = "--unbuffered|-u", .takes = FlagTakes::kNothing, .note = kOutputIsKept},
      {.names = "--output|-o", .note = kOutputIsKept},
      {.names = "--error|-e", .note = kOutputIsKept},
      {.names = "--open-mode", .note = kOutputIsKept},
      {.names = "--input|-i",
       .use = [](Translation& t, const std::string& value) { return use_input(t, "--input", value); }},
      {.names = "--pty", .takes = FlagTakes::kMaybeValue, .note = "ranks have no terminal"},
      {.names = "--wait|-W", .note = "a failure stops its gang at once"},
      {.names = "--no-kill|-k", .takes = FlagTakes::kMaybeValue, .note = "`supervision` says what a lost host means"},
      {.names = "--signal", .note = "`launch.slurm.warn` is the same, and is not built yet"},
      {.names = "--hint", .note = "`resources.bind` binds"},
      {.names = "--threads-per-core", .note = "`resources.bind` binds"},
      {.names = "--propagate", .takes = FlagTakes::kMaybeValue, .note = "limits are those of your shell"},
      {.names = "--container-image", .note = "`wrap: [apptainer, exec, --nv, image.sif]` is the same, if it is built"},
      {.names = "--container-mounts", .note = "they belong into `wrap`"},
      {.names = "--verbose|-v", .takes = FlagTakes::kNothing, .note = "`monarch events` tells what happened"},
      {.names = "--quiet|-Q", .takes = FlagTakes::kNothing, .note = "`monarch run --quiet` is the same"}};
}

// Ranks of a mesh are a box: the same number on each host.
std::optional<Complaint> place_tasks(Translation& t, const StepCounts& counts) {
  std::uint32_t per_node = counts.tasks_per_node.value_or(1);
  if (counts.tasks && counts.tasks_per_node && !t.hosts_written) t.hosts = (*counts.tasks + per_node - 1) / per_node;
  if (counts.tasks) {
    const std::uint32_t down = *counts.tasks / t.hosts * t.hosts;
    if (down != *counts.tasks)
      return refused_line(
          t.launcher, text("-n ", *counts.tasks, " on ", t.hosts, " nodes: not the same number on each"),
          text("`-n ", down + t.hosts, "` would work", down > 0 ? text(", and so would `-n ", down, "`") : ""));
    if (counts.tasks_per_node && *counts.tasks / t.hosts > per_node)
      return refused_line(t.launcher,
                          text("-n ", *counts.tasks, " does not fit on ", t.hosts, " nodes with ", per_node, " each"),
                          text("`-N ", (*counts.tasks + per_node - 1) / per_node, "` would work"));
    per_node = *counts.tasks / t.hosts;
    if (!t.hosts_written && !counts.tasks_per_node && *counts.tasks > 1)
      t.notes.push_back(text("-n ", *counts.tasks, " without -N: all on one host"));
  }
  if (!t.host_names.empty() && t.host_names.size() != t.hosts)
    return refused_line(t.launcher, text("names ", t.host_names.size(), " nodes and asks for ", t.hosts),
                        text("`-N ", t.host_names.size(), "` would work"));
  t.per_host = text(per_node);
  const auto of_node =
      counts.gpus && *counts.gpus % t.hosts == 0 ? std::optional(*counts.gpus / t.hosts) : counts.gpus_per_node;
  if (of_node && *of_node % per_node == 0) {
    t.keys["meshes.*.resources.gpus"] = text(*of_node / per_node);
  } else if (of_node || counts.gpus) {
    t.notes.emplace_back("GPUs: their number is not the same for each rank");
  }
  return std::nullopt;
}

// What a program that was written for srun reads: `per_host` is a number here.
void tell_place(Translation& t) {
  const std::uint32_t per_host = positive(t.per_host).value_or(1);
  t.place = {{"SLURM_PROCID", "$(self.rank)"},
             {"SLURM_LOCALID", "$(self.local_rank)"},
             {"SLURM_NODEID", "$(self.node_rank)"},
             {"SLURM_NTASKS", text(t.hosts * per_host)},
             {"SLURM_NNODES", text(t.hosts)}};
}

// Of Slurm's variables that the line itself names, those that nobody sets.
void note_variables(Translation& t, const std::string& word) {
  constexpr std::string_view kFront = "SLURM_";
  for (std::size_t at = word.find(kFront); at != std::string::npos; at = word.find(kFront, at + 1)) {
    std::size_t end = at;
    while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) ++end;
    const std::string name = word.substr(at, end - at);
    const auto known = [&](const auto& variable) { return variable.first == name; };
    const std::string note = text(name, ": is not set here; `monarch plan --env` shows what is");
    const bool noted = std::find(t.notes.begin(), t.notes.end(), note) != t.notes.end();
    if (!noted && std::none_of(t.place.begin(), t.place.end(), known)) t.notes.push_back(note);
  }
}

}  // namespace

TranslatedLine translate_srun(std::vector<ShellWord> words) {
  Translation t;
  t.launcher = "srun";
  StepCounts counts;
  if (auto wrong = read_foreign_flags({.launcher = "srun"}, srun_flags(counts), t, words)) return *wrong;
  if (words.empty()) return refused_line(t.launcher, "is given no program", "");
  if (auto wrong = place_tasks(t, counts)) return *wrong;
  if (!counts.kill_on_bad_exit)
    t.notes.emplace_back("srun without -K lets the others go on when one task fails; a failure stops its gang here");
  note_environment(t, counts);
  tell_place(t);
  for (const ShellWord& word : words) note_variables(t, word.text);
  t.program = std::move(words);
  return translate_inner(std::move(t));
}

}  // namespace monarch

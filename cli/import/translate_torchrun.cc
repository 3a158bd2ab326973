// torchrun, python -m torch.distributed.run and python -m torch.distributed.launch.

#include "cli/import/foreign_flags.h"
#include "supervisor/spec/schema/names.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kRendezvous = "not needed: monarch chooses MASTER_ADDR and MASTER_PORT for each start";
constexpr std::string_view kLogs =
    "not needed: the output of each rank is in a file of its own; `monarch logs` shows it";

// How the script is started; a flag sets it, the program is made of it at the end.
struct ScriptOptions {
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  bool use_env = false;
};

WrongValue use_nnodes(Translation& t, const std::string& value) {
  const std::size_t colon = value.find(':');
  const auto least = positive(value.substr(0, colon));
  const auto most = colon == std::string::npos ? least : positive(value.substr(colon + 1));
  if (!least || !most || *most < *least) return "a number of nodes, or MIN:MAX, is meant";
  t.hosts = *most;
  t.hosts_written = true;
  if (*least != *most)
    t.notes.push_back(
        text("--nnodes ", value, ": always ", *most, " hosts; supervision.shrink parks whole gangs, and here is one"));
  return std::nullopt;
}

WrongValue use_nproc(Translation& t, const std::string& value) {
  const bool counted = value == "auto" || value == "gpu" || value == "cpu";
  if (!counted && !positive(value)) return "a number of processes, auto, gpu or cpu is meant";
  t.per_host = value;
  return std::nullopt;
}

WrongValue use_restarts(Translation& t, const std::string& value) {
  if (value != "0" && !positive(value)) return "a number of restarts is meant";
  t.keys["supervision.restart.max"] = value;
  return std::nullopt;
}

WrongValue use_role(Translation& t, const std::string& value) {
  if (is_name(value) && !is_reserved_name(value)) {
    t.mesh = value;
  } else if (value != "default") {
    t.notes.push_back(text("--role ", value, ": is no name of a mesh, which would be ROLE_NAME"));
  }
  return std::nullopt;
}

WrongValue use_numa(Translation& t, const std::string& value) {
  if (value != "node") {
    t.notes.push_back(text("--numa-binding ", value, ": ranks are bound to a NUMA node, or not"));
  }
  t.keys["meshes.*.resources.bind"] = "numa";
  return std::nullopt;
}

WrongValue use_stop_timeout(Translation& t, const std::string& value) {
  if (!positive(value)) return "a number of seconds is meant";
  t.keys["meshes.*.stop.grace"] = text(value, "s");
  return std::nullopt;
}

std::function<WrongValue(Translation&, const std::string&)> sets(bool& option) {
  return [&option](Translation&, const std::string&) -> WrongValue {
    option = true;
    return std::nullopt;
  };
}

std::vector<ForeignFlag> torchrun_flags(ScriptOptions& script) {
  return {
      {.names = "--nnodes", .use = use_nnodes},
      {.names = "--nproc-per-node", .use = use_nproc},
      {.names = "--max-restarts", .use = use_restarts},
      {.names = "--role", .use = use_role},
      {.names = "--numa-binding", .use = use_numa},
      {.names = "--shutdown-timeout", .use = use_stop_timeout},
      {.names = "--module|-m", .takes = FlagTakes::kNothing, .use = sets(script.module)},
      {.names = "--no-python", .takes = FlagTakes::kNothing, .use = sets(script.no_python)},
      {.names = "--run-path", .takes = FlagTakes::kNothing, .use = sets(script.run_path)},
      {.names = "--use-env", .takes = FlagTakes::kNothing, .use = sets(script.use_env)},
      {.names = "--standalone", .takes = FlagTakes::kNothing, .note = kRendezvous},
      {.names = "--rdzv-backend", .note = kRendezvous},
      {.names = "--rdzv-endpoint", .note = kRendezvous},
      {.names = "--rdzv-conf", .note = kRendezvous},
      {.names = "--rdzv-id", .note = "not needed: TORCHELASTIC_RUN_ID is the id of the job"},
      {.names = "--node-rank", .note = "not needed: one `monarch run` starts every node"},
      {.names = "--master-addr", .note = kRendezvous},
      {.names = "--master-port", .note = kRendezvous},
      {.names = "--local-addr", .note = "not needed: `network.interface` chooses addresses"},
      {.names = "--monitor-interval", .note = "not needed: the end of a rank is seen at once"},
      {.names = "--start-method", .note = "not needed: ranks are programs of their own"},
      {.names = "--log-dir", .note = kLogs},
      {.names = "--redirects|-r", .note = kLogs},
      {.names = "--tee|-t", .note = kLogs},
      {.names = "--local-ranks-filter", .note = "`monarch logs --rank` chooses"},
      {.names = "--duplicate-stdout-filters", .note = "not built"},
      {.names = "--duplicate-stderr-filters", .note = "not built"},
      {.names = "--logs-specs", .note = kLogs},
      {.names = "--event-log-handler", .note = "`monarch events` shows the events"},
      {.names = "--signals-to-handle",
       .note = "INT, TERM and HUP stop the job in order; USR1 and USR2 reach the ranks"},
      {.names = "--virtual-local-rank", .takes = FlagTakes::kNothing, .note = "LOCAL_RANK is the place on the host"}};
}

std::vector<ShellWord> program_of(std::vector<ShellWord> words, const ScriptOptions& script,
                                  const std::string& python) {
  std::vector<ShellWord> program;
  if (!script.no_python) {
    // As torchrun does: what a rank prints is seen at once.
    program = {{.text = python}, {.text = "-u"}};
    if (script.module) program.push_back({.text = "-m"});
  }
  for (ShellWord& word : words) program.push_back(std::move(word));
  return program;
}

// Python's argparse, which reads torchrun's line, takes one `--` for itself: in front of the script, or right behind
// it.
void drop_separator(const std::vector<ShellWord>& all, std::vector<ShellWord>& words) {
  const std::size_t flags = all.size() - words.size();
  const bool in_front = flags > 0 && all[flags - 1].text == "--";
  if (!in_front && words.size() > 1 && words[1].text == "--") words.erase(words.begin() + 1);
}

// WARNING: torch 2.2 has renamed the variable by which NCCL's watchdog is on; the old name still works there, and is
// warned of.
std::vector<DefaultVariable> defaults_of(const Translation& t) {
  std::vector<DefaultVariable> defaults = {
      {.name = "NCCL_ASYNC_ERROR_HANDLING", .value = "1", .note = "of torch before 2.2; later ones warn of it"},
      {.name = "TORCH_NCCL_ASYNC_ERROR_HANDLING", .value = "1", .note = "of torch since 2.2"}};
  if (t.per_host != "1") defaults.insert(defaults.begin(), {.name = "OMP_NUM_THREADS", .value = "1", .note = ""});
  return defaults;
}

TranslatedLine translate(std::vector<ShellWord> words, const std::string& python, bool old_launch) {
  Translation t;
  t.launcher = old_launch ? "torch.distributed.launch" : "torchrun";
  ScriptOptions script;
  const FlagGrammar grammar{.launcher = t.launcher, .underscores = true};
  const std::vector<ShellWord> all = words;
  if (auto wrong = read_foreign_flags(grammar, torchrun_flags(script), t, words)) return *wrong;
  drop_separator(all, words);
  if (words.empty()) return refused_line("torchrun", "is given no script", "");
  if (script.module && script.no_python) return refused_line("torchrun", "takes either --module or --no-python", "");
  if (script.run_path) t.notes.emplace_back("--run-path: the script is run by the interpreter itself");
  if (old_launch && !script.use_env) {
    t.notes.emplace_back(
        "torch.distributed.launch adds --local-rank=N to the script's arguments: read LOCAL_RANK instead");
  }
  t.defaults = defaults_of(t);
  t.program = program_of(std::move(words), script, python);
  return t;
}

}  // namespace

TranslatedLine translate_torchrun(std::vector<ShellWord> words, const std::string& python) {
  return translate(std::move(words), python, false);
}

TranslatedLine translate_torch_launch(std::vector<ShellWord> words, const std::string& python) {
  return translate(std::move(words), python, true);
}

}  // namespace monarch

// Which launcher a command line is for, and what stands in front of it.

#include <algorithm>

#include "cli/import/foreign_flags.h"
#include "cli/import/translation.h"
#include "supervisor/spec/schema/names.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_python(const std::string& word) {
  const std::string name = base_name(word);
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

// The python beside a torchrun with a path: that of its environment.
std::string python_beside(const std::string& torchrun) {
  const std::size_t slash = torchrun.rfind('/');
  return slash == std::string::npos ? "python3" : text(torchrun.substr(0, slash), "/python3");
}

std::string torch_module(const std::vector<ShellWord>& words) {
  std::size_t at = 1;
  while (at < words.size() && (words[at].text == "-u" || words[at].text == "-W" || words[at].text == "-B")) ++at;
  if (at + 1 >= words.size() || words[at].text != "-m") return "";
  const std::string& module = words[at + 1].text;
  return module == "torch.distributed.run" || module == "torch.distributed.launch" ? module : "";
}

// Behind `-m MODULE`.
std::vector<ShellWord> behind_module(const std::vector<ShellWord>& words) {
  const auto flag = std::find_if(words.begin(), words.end(), [](const ShellWord& word) { return word.text == "-m"; });
  return {flag + 2, words.end()};
}

std::optional<TranslatedLine> try_torch(const std::vector<ShellWord>& words) {
  if (words.empty()) return std::nullopt;
  const std::string& first = words.front().text;
  const std::vector<ShellWord> rest(words.begin() + 1, words.end());
  if (base_name(first) == "torchrun") {
    TranslatedLine translated = translate_torchrun(rest, python_beside(first));
    if (auto* found = std::get_if<Translation>(&translated)) found->in_path = first == "torchrun";
    return translated;
  }
  const std::string module = is_python(first) ? torch_module(words) : "";
  if (module == "torch.distributed.run") return translate_torchrun(behind_module(words), first);
  if (module == "torch.distributed.launch") return translate_torch_launch(behind_module(words), first);
  return std::nullopt;
}

TranslatedLine by_name(const std::vector<ShellWord>& words) {
  if (auto torch = try_torch(words)) return std::move(*torch);
  const std::string name = base_name(words.front().text);
  const std::vector<ShellWord> rest(words.begin() + 1, words.end());
  if (name == "srun") return translate_srun(rest);
  for (const std::string_view mpi : {"mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpirun.openmpi"}) {
    if (name == mpi) return translate_mpirun(rest);
  }
  return Complaint{.id = "E0933",
                   .message = text("`", printable(name), "` is no launcher that is known here"),
                   .help = "torchrun, python -m torch.distributed.run, srun and mpirun are translated"};
}

Complaint unexpanded(const std::string& word) {
  return {.id = "E0933",
          .message = text("`", printable(word), "`: variables are not expanded"),
          .help = "write the value instead, or put it into single quotes if the program is to see it as it is"};
}

Complaint not_looked_up(const ShellWord& word) {
  return {.id = "E0932",
          .message = text("`", word.pattern,
                          "` stands for names of files, which are not looked up; quotes keep it (character ",
                          word.pattern_at, ")"),
          .help = ""};
}

// The first carried word that a shell would have changed.
std::optional<Complaint> check_words(const Translation& t) {
  for (const ShellWord& word : t.program) {
    if (word.expands) return unexpanded(word.text);
    if (word.pattern != '\0') return not_looked_up(word);
  }
  for (const auto& [name, value] : t.env) {
    if (value.expands) return unexpanded(text(name, "=", value.text));
  }
  return std::nullopt;
}

void add_assignments(Translation& t, const std::vector<ShellWord>& assignments) {
  std::vector<std::pair<std::string, ShellWord>> env;
  for (const ShellWord& word : assignments) {
    const std::size_t sign = word.text.find('=');
    const std::string name = word.text.substr(0, sign);
    env.push_back({name, {.text = word.text.substr(sign + 1), .expands = word.expands}});
  }
  // What the launcher itself was told comes later, and wins; over its own defaults all that was written wins.
  t.env.insert(t.env.begin(), env.begin(), env.end());
  std::erase_if(t.defaults, [&](const DefaultVariable& own) {
    return std::any_of(t.env.begin(), t.env.end(), [&](const auto& written) { return written.first == own.name; });
  });
  std::erase_if(t.env, [&](const auto& variable) {
    const bool ours = is_variable_of_ours(variable.first);
    if (ours) t.notes.push_back(text(variable.first, "=", variable.second.text, ": monarch sets it for each rank"));
    return ours;
  });
  std::erase_if(t.env_pass, [&](const std::string& name) {
    if (is_variable_of_ours(name)) t.notes.push_back(text(name, ": monarch sets it for each rank"));
    return is_variable_of_ours(name);
  });
}

// What is part of the format, but not of this build.
void note_what_is_not_built(Translation& t) {
  if (t.hosts > 1 && !reaches_hosts(t))
    t.notes.push_back(
        text(t.hosts, " hosts: virtual ones of this machine; `launch: {ssh: {hosts: [a, b]}}` names others"));
  for (const auto& [key, value] : t.keys) {
    if (!is_honoured_here(key, value))
      t.notes.push_back(text(key, ": ", value, ": not built yet; it stands in a comment"));
  }
}

// `auto`, `gpu` and `cpu` of --nproc-per-node, as torchrun takes them.
std::optional<Complaint> count_ranks(Translation& t, const MachineCounts& machine) {
  if (positive(t.per_host)) return std::nullopt;
  std::optional<std::string> visible;
  for (const auto& [name, value] : t.env) {
    if (name == "CUDA_VISIBLE_DEVICES") visible = value.text;
  }
  const std::string asked = t.per_host;
  const std::uint32_t gpus = asked == "cpu" || !machine.gpus ? 0 : machine.gpus(visible);
  if (asked == "gpu" && gpus == 0)
    return Complaint{.id = "E0933",
                     .message = "torchrun `--nproc-per-node gpu`: this machine has no GPU",
                     .help = "write the number of those where it is to run"};
  t.per_host = text(gpus > 0 ? gpus : machine.processors);
  t.notes.push_back(text("--nproc-per-node ", asked, ": always ", t.per_host, ", which is how many ",
                         gpus > 0 ? "GPUs" : "processors", " this machine has"));
  if (t.per_host == "1")
    std::erase_if(t.defaults, [](const DefaultVariable& own) { return own.name == "OMP_NUM_THREADS"; });
  return std::nullopt;
}

}  // namespace

TranslatedLine translate_line(std::string_view line, const MachineCounts& machine) {
  const auto split = split_shell_words(line);
  if (!split.ok()) return Complaint{.id = "E0932", .message = split.error().message, .help = ""};
  std::vector<ShellWord> words = *split;
  std::vector<ShellWord> assignments;
  bool env_command = false;
  while (!words.empty()) {
    if (is_assignment(words.front())) {
      assignments.push_back(words.front());
    } else if (words.front().text != "env" || env_command) {
      break;
    }
    env_command = env_command || words.front().text == "env";
    words.erase(words.begin());
  }
  if (words.empty())
    return Complaint{.id = "E0933",
                     .message = "there is no command in it",
                     .help = "monarch init --from 'torchrun --nproc-per-node 4 train.py'"};
  TranslatedLine translated = by_name(words);
  auto* translation = std::get_if<Translation>(&translated);
  if (translation == nullptr) return translated;
  translation->keys.try_emplace("supervision.restart.max", "0");  // as all of them do where nothing is said
  add_assignments(*translation, assignments);
  if (auto wrong = check_words(*translation)) return *wrong;
  if (auto wrong = count_ranks(*translation, machine)) return *wrong;
  note_what_is_not_built(*translation);
  return translated;
}

void leave_to_shell(Translation& translation, const std::string& name, const std::string& value) {
  const auto is_it = [&](const DefaultVariable& own) { return own.name == name; };
  if (std::erase_if(translation.defaults, is_it) == 0) return;
  if (reaches_hosts(translation)) {
    translation.env_pass.push_back(name);
    return;
  }
  translation.notes.push_back(
      text(name, ": is ", printable(value), " in this shell, and the ranks have it from the shell that runs them"));
}

void use_interpreter(Translation& translation, const std::string& interpreter) {
  if (!translation.in_path || translation.program.front().text != "python3") return;
  translation.program.front().text = interpreter;
  translation.notes.push_back(text("python3: torchrun of this machine runs under ", printable(interpreter)));
}

TranslatedLine translate_inner(Translation outer) {
  const auto translated = try_torch(outer.program);
  if (!translated) return outer;
  outer.place.clear();  // torchrun tells its ranks their place
  if (std::holds_alternative<Complaint>(*translated)) return *translated;
  Translation inner = std::get<Translation>(*translated);
  if (outer.per_host != "1")
    return Complaint{.id = "E0933",
                     .message = text(outer.launcher, " starts torchrun ", outer.per_host, " times on each host"),
                     .help = "one torchrun per host is meant: it starts the ranks"};
  if (inner.hosts_written && inner.hosts != outer.hosts)
    return Complaint{
        .id = "E0933",
        .message = text(outer.launcher, " starts torchrun on ", outer.hosts, " hosts, and it wants ", inner.hosts),
        .help = text("`--nnodes ", outer.hosts, "` would work")};
  inner.launcher = text(outer.launcher, " ", inner.launcher);
  inner.hosts = outer.hosts;
  if (!outer.job.empty()) inner.job = outer.job;
  if (!inner.workdir) inner.workdir = outer.workdir;
  inner.env.insert(inner.env.begin(), outer.env.begin(), outer.env.end());
  inner.env_pass = outer.env_pass;
  inner.host_names = outer.host_names;
  // What a task of the outer launcher was given is for all its ranks, and not for each.
  for (const auto& [key, value] : outer.keys) {
    if (key.starts_with("meshes.*.resources.")) {
      outer.notes.push_back(text(key.substr(9), ": ", value, " was for one torchrun, and not for each of its ranks"));
    } else {
      inner.keys.emplace(key, value);
    }
  }
  inner.notes.insert(inner.notes.begin(), outer.notes.begin(), outer.notes.end());
  return inner;
}

}  // namespace monarch

#include <algorithm>
#include <set>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/job/spec_input.h"
#include "cli/show/plan_drawing.h"
#include "cli/start/workspace_check.h"
#include "cli/term/table.h"
#include "supervisor/core/crew/rank_env.h"
#include "supervisor/core/spec/expansion.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

struct Plan {
  const SpecInput& input;
  Placement placement;
  std::vector<PoolHost> hosts;
  const JobSpec& spec() const { return input.spec; }
  const std::string& host_of(RankId rank) const { return hosts[placement.host_of(rank).value()].name; }
};

Json job_json(const JobSpec& spec, const WorkspaceLook& look) {
  Json job = Json::object({{"v", 1},
                           {"type", "job"},
                           {"name", spec.name},
                           {"launch", spec.launch.facts().name},
                           {"hosts", spec.pool_size()},
                           {"hosts_needed", spec.hosts_needed()}});
  if (spec.checkpoints.peer > 0) {
    job.set("checkpoints", Json::object({{"peer", spec.checkpoints.peer}, {"memory", spec.checkpoints.memory}}));
  }
  if (!spec.workspace) return job;
  Json workspace = Json::object({{"path", spec.workspace->path}, {"copied", look.scanned.has_value()}});
  if (look.scanned) workspace.set("files", look.scanned->files).set("bytes", look.scanned->bytes);
  job.set("workspace", std::move(workspace));
  return job;
}

std::string checkpoints_line(const CheckpointSpec& checkpoints) {
  if (checkpoints.peer == 0) return "";
  const char* copies = checkpoints.peer == 1 ? " copy on another host, " : " copies on other hosts, ";
  return text("checkpoints: ", checkpoints.peer, copies, amount_text(checkpoints.memory), " of memory per host\n");
}

std::string plan_json(const Plan& plan, const WorkspaceLook& look) {
  const JobSpec& spec = plan.spec();
  std::string out = to_json(job_json(spec, look)) + "\n";
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    const MeshSpec& mesh = spec.meshes[m];
    const std::uint32_t gang_size = mesh.size() / mesh.gangs();
    for (std::uint32_t r = 0; r < mesh.size(); ++r) {
      Json coordinates = Json::object();
      const std::vector<std::uint32_t> at = mesh.coordinates_of(Rank(r));
      for (std::size_t i = 0; i < at.size(); ++i) coordinates.set(mesh.dims[i].name, at[i]);
      append_json(out, Json::object({{"v", 1},
                                     {"type", "rank"},
                                     {"mesh", mesh.name},
                                     {"rank", r},
                                     {"host", plan.host_of({MeshId(m), Rank(r)})},
                                     {"gang", mesh.gang_of(Rank(r)).value()},
                                     {"gang_rank", r % gang_size},
                                     {"coordinates", std::move(coordinates)}}));
      out.push_back('\n');
    }
  }
  return out;
}

// What the supervisor would be given of this shell.
std::map<std::string, std::string> named_variables(const JobSpec& spec, const Environment& shell) {
  std::map<std::string, std::string> named;
  for (const std::string& name : shell_variables(spec)) named.emplace(name, shell.get(name));
  for (const auto& [name, value] : shell.all()) {
    if (is_passed(spec, name)) named.emplace(name, value);
  }
  return named;
}

std::string_view origin_name(EnvOrigin origin) {
  switch (origin) {
    case EnvOrigin::kGang: return "gang";
    case EnvOrigin::kMesh: return "mesh";
    case EnvOrigin::kNetwork: return "network";
    case EnvOrigin::kPorts: return "ports";
    case EnvOrigin::kGpus: return "resources";
    case EnvOrigin::kSpec: return "env of the spec";
    case EnvOrigin::kDefault: return "default";
    case EnvOrigin::kPassed: return "env_pass";
  }
  return "";
}

std::string from_text(const EnvVariable& variable) {
  const std::string_view origin = origin_name(variable.origin);
  return variable.why.empty() ? std::string(origin) : text(origin, ": ", variable.why);
}

// What only the start can tell is said to be so; what the submitting shell gives may be a secret, and is counted.
std::string shown_value(const EnvVariable& variable) {
  if (variable.at_start || variable.name == "MONARCH_GENERATION") return "(chosen at the start)";
  if (variable.secret) return text("(", variable.value.size(), " bytes, not shown)");
  return variable.value;
}

constexpr std::string_view kChosen = "(chosen at the start)";

std::string variable_json(const MeshSpec& mesh, RankId rank, std::string_view name, Json value, std::string_view from) {
  return to_json(Json::object({{"v", 1},
                               {"type", "variable"},
                               {"mesh", mesh.name},
                               {"rank", rank.rank.value()},
                               {"name", name},
                               {"value", std::move(value)},
                               {"from", from}})) +
         "\n";
}

// What a rank on a virtual host has from the submitting shell, by name: the values may be secrets.
struct Inherited {
  std::vector<std::string> kept;
  std::vector<std::string> left_out;
};

Inherited inherited_from(const Environment& shell, const std::set<std::string, std::less<>>& given) {
  Inherited inherited;
  for (const auto& [name, value] : shell.all()) {
    if (given.contains(name)) continue;
    const bool is_left_out =
        is_foreign_launcher_variable(name) || is_talking_variable(name) || is_committed_variable(name);
    (is_left_out ? inherited.left_out : inherited.kept).push_back(printable(name));
  }
  return inherited;
}

// Words in lines of that many columns; nothing where there are none.
std::string titled_list(std::string_view title, const std::vector<std::string>& words, std::size_t columns) {
  if (words.empty()) return "";
  const std::size_t most = columns == 0 ? 120 : columns;
  std::string out;
  std::string line(title);
  for (const std::string& word : words) {
    if (display_width(line) + word.size() + 1 > most && line.find_first_not_of(' ') != std::string::npos) {
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = "    ";
    }
    line += word + " ";
  }
  return out + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string rank_plan(const Plan& plan, RankId rank, const Context& context, bool json) {
  const MeshSpec& mesh = plan.spec().meshes[rank.mesh.value()];
  std::vector<EnvVariable> variables = rank_environment({.spec = plan.spec(),
                                                         .placement = plan.placement,
                                                         .hosts = plan.hosts,
                                                         .job_id = plan.spec().name + "-????",
                                                         .generation = {.term = Term(1), .counter = 1},
                                                         .master_port = 0,
                                                         .error_file = "(in the job's folder)",
                                                         .shell = named_variables(plan.spec(), context.env)},
                                                        rank);
  const bool here = plan.spec().launch.facts().one_machine;
  std::erase_if(variables, [&](const EnvVariable& variable) {
    return here && variable.origin == EnvOrigin::kDefault && context.env.all().contains(variable.name);
  });
  const std::string& host = plan.host_of(rank);
  std::set<std::string, std::less<>> given;
  for (const EnvVariable& variable : variables) given.insert(variable.name);
  std::string out;
  if (!json) {
    out = text("\nenvironment of ", mesh.name, "/", rank.rank.value(), " on ", host, ", over that of ",
               here ? "this shell" : "a login there", "\n");
  }
  Table table({"  VARIABLE", "VALUE", "FROM"});
  for (const EnvVariable& variable : variables) {
    if (json) {
      out += variable_json(mesh, rank, variable.name, shown_value(variable), origin_name(variable.origin));
    } else {
      table.add({{.words = "  " + variable.name, .colour = Colour::kNone},
                 {.words = shown_value(variable), .colour = Colour::kNone},
                 {.words = from_text(variable), .colour = Colour::kDim}});
    }
  }
  for (const std::string_view name : kChosenAtStart) {
    if (name == kVaultVariable && plan.spec().checkpoints.peer == 0) continue;  // nothing keeps checkpoints there
    if (name == kPostVariable && !plan.spec().calls) continue;
    if (name == kRankLibraryVariable && !plan.spec().tensors) continue;
    given.emplace(name);
    if (json) {
      out += variable_json(mesh, rank, name, kChosen, "worker");
    } else {
      table.add({{.words = text("  ", name), .colour = Colour::kNone},
                 {.words = std::string(kChosen), .colour = Colour::kNone},
                 {.words = "worker", .colour = Colour::kDim}});
    }
  }
  const Inherited inherited = here ? inherited_from(context.env, given) : Inherited{};
  if (json) {
    for (const std::string& name : inherited.kept) out += variable_json(mesh, rank, name, Json(), "shell");
    return out;
  }
  out += table.render(context.terminal.out_colour, context.terminal.out_columns);
  out += titled_list("  as in this shell: ", inherited.kept, context.terminal.out_columns);
  return out +
         titled_list("  left out, since another launcher set them: ", inherited.left_out, context.terminal.out_columns);
}

struct WantedRanks {
  Selector selector;
  bool all = false;  // not only the first of each mesh
};

std::string environments(const Plan& plan, const WantedRanks& wanted, const Context& context, bool json) {
  std::string out;
  for (std::uint32_t m = 0; m < plan.spec().meshes.size(); ++m) {
    const std::uint32_t size = plan.spec().meshes[m].size();
    for (std::uint32_t r = 0; r < size; ++r) {
      const RankId id{MeshId(m), Rank(r)};
      if (!wanted.selector.has(id) || !wanted.selector.has_host(plan.host_of(id))) continue;
      out += rank_plan(plan, id, context, json);
      if (!wanted.all) break;
    }
  }
  return out;
}

int run_plan(const Arguments& arguments, Context& context) {
  const std::optional<SpecInput> input = take_spec(arguments, context, kHashToLook);
  if (!input) return kExitUsage;
  if (!has_its_variables(*input, context.env, context.terminal)) return kExitUsage;
  const WorkspaceLook look = look_at_workspace(input->spec, input->tree, input->sources);
  if (!has_its_workspace(look, input->sources, context.terminal)) return kExitUsage;
  auto selector = take_selector(arguments, input->spec, context);
  if (!selector) return kExitUsage;
  // --mesh alone asks for nothing more: it also names the program that gets what follows `--`.
  const bool chosen = arguments.has("at") || arguments.has("rank") || arguments.has("host");
  const WantedRanks wanted{.selector = std::move(*selector), .all = chosen};
  const Plan plan{.input = *input, .placement = Placement(input->spec), .hosts = pool_of(input->spec)};
  const bool json = arguments.has("json");

  std::string out = json ? plan_json(plan, look)
                         : draw_plan({.spec = plan.spec(),
                                      .placement = plan.placement,
                                      .hosts = plan.hosts,
                                      .colour = context.terminal.out_colour,
                                      .columns = context.terminal.out_columns,
                                      .all = arguments.has("all")});
  if (!json) out += workspace_line(input->spec, look.scanned) + checkpoints_line(input->spec.checkpoints);
  if (arguments.has("env") || chosen) {
    const std::string env = environments(plan, wanted, context, json);
    if (env.empty()) {
      say_error(context.terminal,
                {.id = "E0904",
                 .message = "no rank of this spec is meant by all of --mesh, --at, --rank and --host",
                 .help = text("monarch plan ", input->name == kStdinName ? kStdinPath : printable(input->name),
                              " shows the ranks")});
      return kExitUsage;
    }
    out += env;
  }
  write_out(context.terminal, out);
  for (const std::string& note : input->notes) say_note(context.terminal, note);
  return kExitOk;
}

}  // namespace

Command plan_command() {
  std::vector<Flag> flags = {
      {.name = "env",
       .value = "",
       .help = "also the environment of the first rank of each mesh, and where it comes from"},
      {.name = "all", .value = "", .help = "every host of a long mesh, instead of the first and the last"},
      {.name = "json", .value = "", .help = "one object per line: the job, its ranks, their variables"}};
  for (Flag& flag : place_flags()) flags.push_back(std::move(flag));
  for (const Flag& flag : program_flags()) flags.push_back(flag);
  return {
      .name = "plan",
      .summary = "show which host runs which ranks, and with what environment; nothing is started",
      .description =
          "The picture is of the whole job. --mesh, --at, --rank and --host choose the ranks whose environments are\n"
          "shown; --mesh also names the mesh whose program gets what follows `--`.",
      .flags = std::move(flags),
      .positionals = {spec_positional()},
      .run = run_plan,
      .program = "ARGS"};
}

}  // namespace monarch

#include "cli/args/say.h"
#include "cli/commands.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

int run_version(const Arguments& arguments, Context& context) {
  if (arguments.has("json")) {
    write_out(context.terminal,
              to_json(Json::object({{"v", 1}, {"type", "version"}, {"version", MONARCH_VERSION}})) + "\n");
  } else {
    write_out(context.terminal, text("monarch ", MONARCH_VERSION, "\n"));
  }
  return kExitOk;
}

}  // namespace

Command version_command() {
  return {.name = "version",
          .summary = "show which build this is",
          .description = "",
          .flags = {{.name = "json", .value = "", .help = "as one line of JSON"}},
          .positionals = {},
          .run = run_version};
}

}  // namespace monarch

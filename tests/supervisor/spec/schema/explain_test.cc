#include "supervisor/spec/schema/explain.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "supervisor/spec/effective.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

bool is_named(std::string_view path) { return !path.ends_with("*") && !path.ends_with("[]"); }

// A small tree of maps as text, so that examples can be put into it by their path.
struct Tree {
  std::string value;
  std::map<std::string, Tree> keys;

  std::string flow() const {
    if (keys.empty()) return value;
    std::vector<std::string> parts;
    for (const auto& [key, tree] : keys) parts.push_back(text(key, ": ", tree.flow()));
    return text("{", join(parts, ", "), "}");
  }
};

std::string name_for(const std::string& part, const std::string& row_path) {
  if (part != "*") return part;
  return row_path == "meshes" ? "trainer" : "thing";
}

// Writes the example of `row_path`, and of every key that a map on the way cannot do without.
void put_example(Tree& root, const std::string& row_path) {
  Tree* at = &root;
  std::string so_far;
  std::string_view rest = row_path;
  while (true) {
    for (const std::string_view key : spec_schema().keys_below(so_far)) {
      const KeyRow* row = spec_schema().find_row(so_far.empty() ? std::string(key) : text(so_far, ".", key));
      if (row->required && !at->keys.contains(std::string(key)))
        at->keys[std::string(key)].value = spec_schema().find_help(row->path)->example;
    }
    if (rest.empty()) break;
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string part(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    at = &at->keys[name_for(part, so_far)];
    at->value.clear();
    so_far = so_far.empty() ? part : text(so_far, ".", part);
  }
  at->keys.clear();
  at->value = spec_schema().find_help(row_path)->example;
}

std::string spec_with(const std::string& row_path) {
  Tree root;
  Tree& trainer = root.keys["meshes"].keys["trainer"];
  trainer.keys["dims"].value = "{replica: 2, gpu: 2}";
  if (row_path.starts_with("meshes.*.claims")) trainer.keys["idle"].value = "true";
  if (row_path.find(".actors") == std::string::npos) trainer.keys["program"].value = "[/bin/true]";
  const bool is_of_actor = row_path.starts_with("meshes.*.actors.*.");
  if (is_of_actor && !row_path.ends_with(".python") && !row_path.ends_with(".module"))
    trainer.keys["actors"].keys["thing"].keys["plugin"].value = "./a.so";
  if (row_path.starts_with("supervision.shrink")) trainer.keys["gang"].value = "replica";
  if (row_path == "supervision.shrink.min" || row_path == "supervision.shrink.regrow")
    root.keys["supervision"].keys["shrink"].keys["along"].value = "replica";
  if (row_path.starts_with("launch.ssh.") && row_path != "launch.ssh.hosts" && row_path != "launch.ssh.hosts_file")
    root.keys["launch"].keys["ssh"].keys["hosts"].value = "\"node[01-20]\"";
  if (row_path.starts_with("controller.") && row_path != "controller.program") {
    root.keys["controller"].keys["plugin"].value = "./a.so";
    root.keys["controller"].keys["entry"].value = "drive";
  }
  put_example(root, row_path);
  root.keys["version"].value = "1";
  root.keys["job"].value = "j";
  std::string out;
  for (const auto& [key, tree] : root.keys) out += text(key, ": ", tree.flow(), "\n");
  return out;
}

TEST(KeyHelp, HasAnExampleForEachKeyThatHasAName) {
  std::set<std::string_view> seen;
  for (const KeyHelp& help : spec_schema().parts().help) {
    EXPECT_TRUE(seen.insert(help.path).second) << help.path;
    EXPECT_NE(spec_schema().find_row(help.path), nullptr) << help.path << " is no key";
    EXPECT_FALSE(help.example.empty()) << help.path;
  }
  for (const KeyRow& row : spec_schema().rows()) {
    EXPECT_TRUE(!is_named(row.path) || seen.contains(row.path)) << row.path << " has no example in key_help.cc";
  }
}

TEST(KeyHelp, HasExamplesThatASpecTakes) {
  const auto hosts = [](const std::string&) -> Result<std::string> { return std::string("n[1-4]\n"); };
  const SpecSurroundings around{.home = "/home/u", .read_hosts = hosts};
  for (const KeyHelp& help : spec_schema().parts().help) {
    if (help.path.find("[]") != std::string_view::npos || help.path == "meshes") continue;
    const std::string yaml = spec_with(std::string(help.path));
    for (const Diagnostic& d : load_spec({.name = "s", .text = yaml, .directory = "/"}, around).diagnostics) {
      // What the example needs beside it and this little spec does not have, a mesh, spares, another key, is no fault
      // of it.
      const std::set<std::string> others = {"E0213", "E0309", "E0310", "E0327", "E0331", "E0332"};
      EXPECT_TRUE(d.id == "E0401" || others.contains(d.id)) << help.path << "\n" << yaml << d.id << " " << d.message;
    }
  }
}

TEST(Explain, FindsKeysByTheNamesThatASpecGives) {
  EXPECT_EQ(find_key(spec_schema(), "supervision.lease")->row_path, "supervision.lease");
  EXPECT_EQ(find_key(spec_schema(), "meshes.trainer.gang")->row_path, "meshes.*.gang");
  EXPECT_EQ(find_key(spec_schema(), "meshes.*.gang")->row_path, "meshes.*.gang");
  EXPECT_EQ(find_key(spec_schema(), "meshes.m.supervision.restart.max")->row,
            spec_schema().find_row("supervision.restart.max"));
  EXPECT_EQ(find_key(spec_schema(), "meshes.m.env.NCCL_DEBUG")->row_path, "meshes.*.env.*");
  EXPECT_EQ(find_key(spec_schema(), "supervision.hang.phases.warmup")->row_path, "supervision.hang.phases.*");
  EXPECT_EQ(find_key(spec_schema(), "supervision.hang.phases.init")->row_path, "supervision.hang.phases.init");
  EXPECT_EQ(find_key(spec_schema(), "storage.[0].path")->row_path, "storage.[].path");
  EXPECT_EQ(find_key(spec_schema(), "storage.path")->row_path, "storage.[].path");
  EXPECT_EQ(find_key(spec_schema(), "storage.path")->path, "storage.[].path");
  for (const char* wrong : {"", ".", "gang", "meshes..gang", "meshes.m.", "meshes.m.gangs", "supervision.lease.x"})
    EXPECT_FALSE(find_key(spec_schema(), wrong)) << wrong;
}

TEST(Explain, SuggestsWholePaths) {
  EXPECT_EQ(suggest_keys(spec_schema(), "gang"), "did you mean `meshes.*.gang`?");
  EXPECT_EQ(suggest_keys(spec_schema(), "restart.max"), "did you mean `supervision.restart.max`?");
  EXPECT_EQ(suggest_keys(spec_schema(), "supervision.hartbeat"), "did you mean `supervision.heartbeat`?");
  EXPECT_EQ(suggest_keys(spec_schema(), "meshes.trainer.replicas"), "did you mean `meshes.trainer.gang`?");
  EXPECT_EQ(suggest_keys(spec_schema(), "max_restarts"), "did you mean `supervision.restart.max`?");
  EXPECT_EQ(suggest_keys(spec_schema(), "supervison.lease"), "did you mean `supervision.lease`?")
      << "not `supervisor`, which has none";
  EXPECT_EQ(suggest_keys(spec_schema(), "supervison.nosuch"), "did you mean `supervisor`?")
      << "nothing is near to all of it";
  EXPECT_EQ(suggest_keys(spec_schema(), "takover"), "did you mean `takeover`?");
  EXPECT_EQ(suggest_keys(spec_schema(), "..."), "`monarch explain` lists the keys here");
}

TEST(Explain, SaysWhatAKeyTakes) {
  EXPECT_EQ(takes_text(spec_schema(), *spec_schema().find_row("supervision.lease")),
            "a duration such as 500ms, 1.5s or 1h30m; from 50ms to 1d");
  EXPECT_EQ(takes_text(spec_schema(), *spec_schema().find_row("supervision.restart.max")),
            "an integer or unlimited; at most 1000000");
  EXPECT_EQ(takes_text(spec_schema(), *spec_schema().find_row("meshes.*.stop.signal")),
            "one of TERM, INT, HUP, QUIT, USR1, USR2 or KILL");
  EXPECT_EQ(takes_text(spec_schema(), *spec_schema().find_row("meshes.*.program")),
            "a list of texts; from 1 to 4096 entries");
  EXPECT_EQ(takes_text(spec_schema(), *spec_schema().find_row("drills.allow")), "true or false");
}

TEST(Explain, SaysWhatIsBuiltBelowWhatIsNot) {
  EXPECT_EQ(built_text(spec_schema(), "supervision.lease"), "yes");
  EXPECT_EQ(built_text(spec_schema(), "launch.slurm"), "yes");
  EXPECT_EQ(built_text(spec_schema(), "services"), "no");
  EXPECT_EQ(built_text(spec_schema(), "launch.slurm.time"), "yes");
  EXPECT_EQ(built_text(spec_schema(), "takeover"), "the default only");
}

TEST(Explain, PutsAnExampleWhereItBelongs) {
  EXPECT_EQ(example_text(spec_schema(), "supervision.lease"), "supervision:\n  lease: 10s\n");
  EXPECT_EQ(example_text(spec_schema(), "meshes.*.stop.grace"), "meshes:\n  trainer:\n    stop:\n      grace: 2m\n");
  EXPECT_EQ(example_text(spec_schema(), "storage.[].path"), "storage:\n  - path: /data/ckpt\n");
  EXPECT_EQ(example_text(spec_schema(), "meshes.*.dims.*"), example_text(spec_schema(), "meshes.*.dims"));
}

constexpr std::string_view kSpec =
    "version: 1\njob: j\nsupervision:\n  lease: 8s\n  restart: {max: 0}\nmeshes:\n  a:\n    dims: {host: 2, gpu: 3}\n"
    "    program: [sleep, '1 2']\n    env: {A: b}\n    supervision: {lease: 9s}\n  b:\n    dims: {x: 2}\n"
    "    program: [x]\n    per_host: []\n";

// "path value source line"
std::vector<std::string> values(std::string_view key) {
  const SpecOutcome outcome = load_text(kSpec);
  EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, kSpec);
  std::vector<std::string> out;
  for (const EffectiveValue& v :
       effective_values(outcome.loaded->tree, outcome.loaded->spec, *find_key(spec_schema(), key)))
    out.push_back(text(v.path, " ", v.value, " ", static_cast<int>(v.source), " ", v.place.line));
  return out;
}

TEST(Effective, TellsWhereAValueComesFrom) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(values("supervision.lease"), Lines{"supervision.lease 8s 0 4"});
  EXPECT_EQ(values("meshes.*.supervision.lease"),
            (Lines{"meshes.a.supervision.lease 9s 0 11", "meshes.b.supervision.lease 8s 1 4"}));
  EXPECT_EQ(values("meshes.b.supervision.restart.max"), Lines{"meshes.b.supervision.restart.max 0 1 5"});
  EXPECT_EQ(values("meshes.b.supervision.heartbeat"), Lines{"meshes.b.supervision.heartbeat 1s 2 0"});
  EXPECT_EQ(values("meshes.a.program"), Lines{"meshes.a.program [sleep, '1 2'] 0 9"});
  EXPECT_EQ(values("meshes.a.env.A"), Lines{"meshes.a.env.A b 0 10"});
  EXPECT_EQ(values("meshes.*.per_host"), (Lines{"meshes.a.per_host [gpu] 3 0", "meshes.b.per_host [] 0 15"}));
  EXPECT_EQ(values("launch.local"), (Lines{"launch.local.hosts 4 3 0", "launch.local.spares 0 2 0"}));
  EXPECT_EQ(values("supervision.shrink.min"), Lines{"supervision.shrink.min 1 2 0"});
  EXPECT_EQ(values("launch.ssh.user"), Lines{"launch.ssh.user  4 0"});
  EXPECT_TRUE(values("meshes.c.gang").empty());
  EXPECT_TRUE(values("meshes.a.env.B").empty());
}

TEST(YamlText, ReadsBackAsItWas) {
  for (const std::string_view written :
       {"plain",    "--lr",         "1e-4",   "-",    "",   "~",   "null",  "a b",  "it's",       "a: b",
        "a:",       ":a",           "#",      "a #b", "[x", "{",   "a,b",   "yes",  "on",         "0x10",
        "*",        "&a",           "!t",     "%x",   "@x", "`x`", "\"q\"", "a\\b", "line\nfeed", "tab\t",
        "\xC3\xA4", "$(self.rank)", "x=y",    "=",    "|",  ">",   "?",     "? a",  "---",        "trailing ",
        " leading", "http://x:1/",  "a\x1b[m"}) {
    const std::string list = yaml_list({"first", std::string(written), "last"});
    Report report("list", list);
    const auto node = read_yaml(list, report);
    ASSERT_TRUE(node && !report.failed()) << list << render(report.diagnostics(), list);
    ASSERT_EQ(node->items.size(), 3U) << list;
    EXPECT_TRUE(node->items[1].is(YamlNode::Kind::kScalar)) << list;
    EXPECT_EQ(node->items[1].text, written) << list;
    EXPECT_EQ(yaml_flow(*node), list);
  }
}

}  // namespace
}  // namespace monarch

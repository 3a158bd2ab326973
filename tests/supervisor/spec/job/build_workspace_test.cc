#include "supervisor/spec/job/build_workspace.h"

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

// One mesh `m`, with these lines at the top and in the mesh.
std::string spec_of(std::string_view top, std::string_view mesh = "") {
  return text("version: 1\njob: a\n", top, "meshes:\n  m:\n    dims: {x: 1}\n    program: [/bin/true]\n", mesh);
}

JobSpec job_of(const std::string& yaml) {
  const SpecOutcome outcome = load_text(yaml);
  EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, yaml);
  return outcome.loaded ? outcome.loaded->spec : JobSpec{};
}

constexpr char kSsh[] = "launch: {ssh: {hosts: [n1]}}\n";

TEST(BuildWorkspace, FillsInWhatIsNotWritten) {
  EXPECT_FALSE(job_of(spec_of("")).workspace);
  const JobSpec job = job_of(spec_of("workspace: {}\n"));
  ASSERT_TRUE(job.workspace);
  EXPECT_EQ(*job.workspace,
            (WorkspaceSpec{.path = job.directory, .exclude = {}, .include = {}, .max_bytes = 1ULL << 30U}));
}

TEST(BuildWorkspace, CountsItsPathFromTheSpecsFolder) {
  const JobSpec job =
      job_of(spec_of("workspace: {path: src/, exclude: ['*.ckpt', '/data'], include: [.env], max_size: 64MiB}\n"));
  EXPECT_EQ(*job.workspace, (WorkspaceSpec{.path = job.directory + "/src",
                                           .exclude = {"*.ckpt", "/data"},
                                           .include = {".env"},
                                           .max_bytes = 64U << 20U}));
  EXPECT_EQ(job_of(spec_of("workspace: {path: /srv/code}\n")).workspace->path, "/srv/code");
  EXPECT_EQ(ids(load_text(spec_of("workspace: {path: $HOME/x}\n"))), std::vector<std::string>{"E0220"});
}

TEST(BuildWorkspace, RanksStartInIt) {
  EXPECT_EQ(base_directory(job_of(spec_of(""))), job_of(spec_of("")).directory);
  EXPECT_EQ(base_directory(job_of(spec_of("workspace: {path: /srv/code}\n"))), "/srv/code") << "virtual hosts use it";
  EXPECT_EQ(base_directory(job_of(spec_of(text(kSsh, "workspace: {path: /srv/code}\n")))), ".");
}

TEST(BuildWorkspace, AWorkdirLiesInIt) {
  const std::string top = text(kSsh, "workspace: {path: src}\n");
  EXPECT_EQ(job_of(spec_of(top, "    workdir: runs/./a/../b\n")).meshes[0].workdir, "runs/b");
  EXPECT_EQ(job_of(spec_of(top, "    workdir: ./x/..\n")).meshes[0].workdir, std::nullopt);
  EXPECT_EQ(job_of(spec_of(top, "    workdir: /data\n")).meshes[0].workdir, "/data");
  EXPECT_EQ(job_of(spec_of(top, "    workdir: ..a\n")).meshes[0].workdir, "..a");
  for (const char* outside : {"..", "../x", "a/../../b"}) {
    EXPECT_EQ(ids(load_text(spec_of(top, text("    workdir: ", outside, "\n")))), std::vector<std::string>{"E0319"});
  }
  EXPECT_EQ(job_of(spec_of("", "    workdir: ../x\n")).meshes[0].workdir->substr(0, 1), "/") << "without a workspace";
}

}  // namespace
}  // namespace monarch

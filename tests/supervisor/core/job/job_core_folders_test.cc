#include <gtest/gtest.h>

#include "supervisor/core/job/job_core.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

std::string error_file_of(const std::string& told) {
  fixtures::Driver job(fixtures::job_of(1, 1));
  job.begin();
  job.step(WorkerLaunched{.host = HostId(0),
                          .worker = {.reply = {.public_key = "key", .keeper_pid = 100, .log_directory = told}}});
  job.step(WorkerJoined{.host = HostId(0), .incarnation = 1});
  job.give_ports();
  const auto starts = job.actions_of<SendStart>();
  EXPECT_EQ(starts.size(), 1U);
  const Start& start = std::get<SendStart>(starts.at(0)).message;
  const auto shared = start.env.find("TORCHELASTIC_ERROR_FILE");
  return shared != start.env.end() ? shared->second : start.ranks.at(0).env.at("TORCHELASTIC_ERROR_FILE");
}

TEST(JobCoreFolders, RanksWriteTheirErrorFilesWhereTheirHostKeepsOutput) {
  EXPECT_TRUE(error_file_of("/home/alice/logs").starts_with("/home/alice/logs/"));
  EXPECT_TRUE(error_file_of("").starts_with("/logs/"));
}

}  // namespace
}  // namespace monarch

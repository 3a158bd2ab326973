// The times and budgets of supervision: a contradiction is found wherever it is written, and what the error prints
// works.

#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

std::vector<std::string> ids_of(std::string_view supervision) {
  return ids(load_text(around_top(text("supervision: {", supervision, "}\n"))));
}

TEST(SupervisionTimes, MustBeInOrder) {
  EXPECT_EQ(ids_of("heartbeat: 3s"), std::vector<std::string>{"E0301"});
  EXPECT_EQ(ids_of("suspect_after: 1s"), std::vector<std::string>{"E0301"});
  EXPECT_EQ(ids_of("lost_after: 6s"), std::vector<std::string>{"E0301"});
  EXPECT_EQ(ids_of("lease: 5s"), std::vector<std::string>{"E0301"});
  EXPECT_EQ(ids_of("lease: 5001ms"), std::vector<std::string>{});
}

TEST(SupervisionTimes, GiveTheLeaseThreeHeartbeats) {
  EXPECT_EQ(ids_of("heartbeat: 2s, suspect_after: 2.1s"), std::vector<std::string>{});
  EXPECT_EQ(ids_of("heartbeat: 2.1s"), std::vector<std::string>{"E0302"});
}

TEST(SupervisionTimes, GiveAHostUpAfterTwoHeartbeats) {
  EXPECT_EQ(ids_of("heartbeat: 2s, suspect_after: 2.1s, lost_after: 4s"), std::vector<std::string>{});
  EXPECT_EQ(ids_of("heartbeat: 2s, suspect_after: 2.1s, lost_after: 3.9s"), std::vector<std::string>{"E0321"});
}

TEST(SupervisionTimes, AreCheckedInAMeshAgainstWhatItTakesOver) {
  const std::string yaml =
      "version: 1\njob: j\nsupervision: {lease: 20s, lost_after: 15s}\nmeshes:\n"
      "  a: {dims: {x: 1}, program: [x], supervision: {suspect_after: 14s}}\n"
      "  b: {dims: {x: 1}, program: [x], supervision: {suspect_after: 15s}}\n"
      "  c: {dims: {x: 1}, program: [x]}\n";
  EXPECT_EQ(ids_and_places(load_text(yaml)), std::vector<std::string>{"E0301 6:49"});
}

TEST(SupervisionTimes, AreReportedOnceWhereTheJobWroteThem) {
  const std::string yaml =
      "version: 1\njob: j\nsupervision: {lease: 2s}\nmeshes:\n  a: {dims: {x: 1}, program: [x], supervision: {orphan: "
      "stop}}\n";
  EXPECT_EQ(ids_and_places(load_text(yaml)), std::vector<std::string>{"E0301 3:15"});
}

// Writes the `key: value` pairs of a help line in place of, or beside, what was written.
std::string with_suggestions(std::string written, const std::string& help) {
  const std::regex pair("`([a-z_]+): ([0-9a-z.]+)`");
  for (auto it = std::sregex_iterator(help.begin(), help.end(), pair); it != std::sregex_iterator(); ++it) {
    const std::string key = (*it)[1];
    const std::string replacement = text(key, ": ", (*it)[2].str());
    const std::regex old(text(key, ": [0-9a-z.]+"));
    if (std::regex_search(written, old)) {
      written = std::regex_replace(written, old, replacement);
    } else {
      written += text(", ", replacement);
    }
  }
  return written;
}

TEST(SupervisionTimes, WorkAsTheErrorSays) {
  const unsigned seed = 4711;
  std::mt19937 random(seed);
  int wrong = 0;
  for (int round = 0; round < 500; ++round) {
    std::string written = "orphan: hold";
    for (const char* key : {"heartbeat", "suspect_after", "lost_after", "lease"}) {
      if (random() % 2 == 0) written += text(", ", key, ": ", 50 + random() % 20'000, "ms");
    }
    const SpecOutcome outcome = load_text(around_top(text("supervision: {", written, "}\n")));
    if (outcome.loaded) continue;
    ++wrong;
    ASSERT_EQ(outcome.diagnostics.size(), 1U) << "seed " << seed << ": " << written;
    const std::string better = with_suggestions(written, outcome.diagnostics[0].help);
    EXPECT_EQ(ids_of(better), std::vector<std::string>{}) << "seed " << seed << ": " << written << " became " << better;
  }
  EXPECT_GT(wrong, 100);
}

TEST(RestartBudget, MustFitItsWindow) {
  const auto messages = [](std::string_view restart) {
    std::vector<std::string> out;
    for (const Diagnostic& d : load_text(around_top(text("supervision: {restart: {", restart, "}}\n"))).diagnostics) {
      if (d.id == "E0303") out.push_back(d.help);
    }
    return out;
  };
  // 0 + 0.5 + 1 + 2 seconds, and a quarter of it: 4.375 s.
  EXPECT_EQ(messages("window: 4s"), std::vector<std::string>{"`window: 5s` would work, and so would `max: 3`"});
  EXPECT_TRUE(messages("window: 5s").empty());
  EXPECT_TRUE(messages("max: unlimited, window: 1s").empty());
  EXPECT_TRUE(messages("max: 1, window: 1ms, backoff: 1h").empty());
  EXPECT_TRUE(messages("max: 1000000, backoff: 0s").empty());
  EXPECT_EQ(messages("max: 1000000"), std::vector<std::string>{"`max: 21` would work"});
  EXPECT_EQ(messages("backoff: 1d, backoff_max: 2d").size(), 1U);
}

// Of the errors but E0401: whether a key is built is another question.
std::vector<std::string> wrong_of(std::string_view yaml) {
  std::vector<std::string> out;
  for (const Diagnostic& d : load_text(yaml).diagnostics) {
    if (d.id != "E0401") out.push_back(text(d.id, " ", d.help));
  }
  return out;
}

TEST(RestartBudget, DoesNotStartBeyondTheLongestBackoff) {
  const auto wrong = [](std::string_view restart) {
    return wrong_of(around_top(text("supervision: {restart: {", restart, "}}\n")));
  };
  EXPECT_EQ(wrong("backoff: 31s"),
            std::vector<std::string>{"E0322 `backoff_max: 31s` would work, and so would `backoff: 30s`"});
  EXPECT_EQ(wrong("backoff_max: 400ms").size(), 1U);
  EXPECT_TRUE(wrong("backoff: 30s").empty());
}

TEST(ReallocateBudget, MustFitItsWindow) {
  const auto wrong = [](std::string_view supervision) {
    return wrong_of(around_top(text("supervision: {", supervision, "}\n")));
  };
  EXPECT_EQ(wrong("reallocate: {window: 20s}"),
            std::vector<std::string>{"E0323 `window: 24s` would work, and so would `max: 3`"});
  EXPECT_EQ(wrong("reallocate: {max: 601}"),
            std::vector<std::string>{"E0323 `window: 1h6s` would work, and so would `max: 600`"});
  EXPECT_TRUE(wrong("reallocate: {window: 24s}").empty());
  EXPECT_TRUE(wrong("reallocate: {max: unlimited, window: 1s}").empty());
  EXPECT_TRUE(wrong("reallocate: {max: 0, window: 1s}").empty());
  EXPECT_TRUE(wrong("lease: 30m").empty()) << "nothing of a budget is written";
}

TEST(Shrink, ParksGangsOfTheMeshThatHasThem) {
  const std::string mesh = "    dims: {replica: 4, host: 2, gpu: 4}\n    program: [/bin/true]\n";
  const auto wrong = [&](std::string_view gang, std::string_view shrink) {
    return wrong_of(around_mesh(text(mesh, "    gang: ", gang, "\n    supervision: {shrink: {", shrink, "}}\n")));
  };
  EXPECT_TRUE(wrong("replica", "along: replica, min: 4").empty());
  EXPECT_TRUE(wrong("each", "along: gpu").empty());
  EXPECT_EQ(wrong("replica", "along: replica, min: 5"), std::vector<std::string>{"E0325 `min: 3` would work"});
  EXPECT_EQ(wrong("replica", "along: host"), std::vector<std::string>{"E0324 `along: replica` would work"});
  EXPECT_EQ(wrong("all", "along: replica"), std::vector<std::string>{"E0324 `gang: replica` would make 4 of it"});
}

TEST(Orphan, MayRunOnlyWithoutReplacements) {
  EXPECT_EQ(ids_of("orphan: run"), (std::vector<std::string>{"E0401", "E0305"}));  // not built, either
  EXPECT_EQ(ids_of("orphan: run, reallocate: {max: 0}"), std::vector<std::string>{"E0401"});
}

}  // namespace
}  // namespace monarch

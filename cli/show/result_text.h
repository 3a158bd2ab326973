#pragma once

// How a job ended, in words for people: the outcome, the root cause with the last lines that it wrote, where the log
// is, and what to type next.
//
// Thread: a pure function.

#include <string>

#include "transport/messages/viewer.h"

namespace monarch {

struct ResultPlace {
  std::string job_id;
  std::string log_directory;
  std::string spec;  // as typed for `run`; empty: unknown
  bool colour = false;
  bool quiet = false;  // nothing about a success
};

std::string result_text(const Verdict& verdict, const ResultPlace& place);

}  // namespace monarch

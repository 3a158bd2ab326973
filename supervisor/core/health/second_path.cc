#include "supervisor/core/health/second_path.h"

#include "transport/base/text.h"

namespace monarch {

namespace {

std::string words_of(const SeenThere& there) {
  if (!there.worker) return "whether its worker runs is not known";
  const WorkerThere& worker = *there.worker;
  if (worker.keepers == 0) {
    return worker.processes == 0 ? "its worker does not run any more, and nothing of it is left"
                                 : text("its worker does not run any more; what it left, ", worker.processes,
                                        worker.processes == 1 ? " process" : " processes", ", is ended");
  }
  if (worker.stopped > 0) return "its worker is there, and is stopped by a signal or a debugger";
  if (there.asked_at.empty()) return "its worker runs there, and does not come through";
  if (!there.does_not_reach_us.empty()) {
    return text("its worker runs there, and does not reach us at ", there.asked_at, ": ", there.does_not_reach_us);
  }
  return text("its worker runs there, and reaches us at ", there.asked_at);
}

std::string words_of(const std::vector<SeenFrom>& from) {
  std::vector<std::string> reached;
  std::vector<std::string> not_reached;
  for (const SeenFrom& each : from) {
    if (each.asked) (each.does_not_answer.empty() ? reached : not_reached).push_back(each.peer);
  }
  std::string words;
  if (!reached.empty()) {
    words += text("; it answers ", join(reached, " and "), ": the way from here to it is the trouble");
  }
  if (!not_reached.empty()) {
    words += text("; ", join(not_reached, " and "), not_reached.size() == 1 ? " does" : " do", " not reach it either");
  }
  return words;
}

}  // namespace

bool worker_is_gone(const SecondPath& seen) {
  return seen.there.no_answer_because.empty() && seen.there.worker && seen.there.worker->keepers == 0;
}

JobEvent told_of(const std::string& host, const SecondPath& seen) {
  JobEvent event;
  event.host = host;
  event.severity = Severity::kWarning;
  const bool answered = seen.there.no_answer_because.empty();
  event.kind = answered ? EventKind::kHostReached : EventKind::kHostUnreachable;
  event.message =
      answered ? text(host, ": answers over SSH: ", words_of(seen.there))
               : text(host, ": does not answer over SSH either: ", seen.there.no_answer_because, words_of(seen.from));
  return event;
}

}  // namespace monarch

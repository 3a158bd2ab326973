#include "supervisor/launch/slurm/steps_list.h"

#include <utility>

namespace monarch {

void StepsList::ask(std::uint32_t job, Then then) {
  const bool first = asked_.empty();
  asked_[job].push_back(std::move(then));
  if (!first) return;
  loop_.defer(scope_.guard([this] { call(); }));
}

void StepsList::call() {
  for (auto& [job, thens] : std::exchange(asked_, {})) {
    calls_.call(steps_query(job, environment_),
                [here = scope_.watch(), thens = std::move(thens)](const Result<std::string>& answer) {
                  const auto steps = answer.ok() ? read_steps(*answer) : Result<std::vector<SlurmStep>>(answer.error());
                  for (const Then& then : thens) {
                    if (!here.gone()) then(steps);
                  }
                });
  }
}

}  // namespace monarch

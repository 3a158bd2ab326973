#pragma once

// What viewers show, as JSON: the lines of --json and the content of verdict.json. Every object carries "v":1; keys are
// added, never changed.
//
// Thread: pure functions.

#include "transport/base/json.h"
#include "transport/messages/viewer.h"

namespace monarch {

Json event_json(const JobEvent& event);     // {"v":1,"type":"event","event":"host.ready",…}
Json verdict_json(const Verdict& verdict);  // {"v":1,"type":"result",…}
Json status_json(const JobStatus& status);  // {"v":1,"type":"status",…}

Json host_failure_json(const HostFailure& failed);  // one of `failed_hosts` of a result
HostFailure parse_host_failure(const Json& json);

// Of verdict_json's text; kInvalid for anything else.
Result<Verdict> parse_verdict(const std::string& json);

// "succeeded", "failed", "stopped", "interrupted"
std::string_view outcome_name(Outcome outcome);

}  // namespace monarch

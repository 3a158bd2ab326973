#pragma once

// What a rank says of a checkpoint that it has written, and what it is answered: lines of KEY=VALUE as its other
// questions, and one object of JSON. Parsing is total: any bytes give a request or a sentence that says what is wrong
// with them.
//
// Thread: pure functions.

#include <map>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/messages/rank.h"

namespace monarch {

// COMMIT=step, and where it applies WHAT=digest or name, and OF=gang. Its number is the caller's to fill in.
Result<CommitRequest> parse_commit(std::string_view message);

// {"v":1,"ok":true,"step":12,"gang":10}, null where there is none of the gang; or false with what it was refused for.
std::string commit_answer(const CommitRequest& asked, const CommitAnswer& answer);
// What is asked is no question: nothing was committed, and nothing is under way.
std::string commit_error(std::string_view why);
// What the gang's earlier generations committed, by the environment that the rank was started with.
std::string committed_answer(const std::map<std::string, std::string>& gang_env,
                             const std::map<std::string, std::string>& own_env);

}  // namespace monarch

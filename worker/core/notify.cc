#include "worker/core/notify.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "transport/base/text.h"
#include "worker/core/question_lines.h"

namespace monarch {

namespace {

constexpr std::size_t kShownBytes = 80;  // of a bad line

// A name as people and dashboards write them: `train/loss`, `tokens_per_s`, `eval.top-1`.
bool is_name(std::string_view word, std::size_t longest) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  };
  return !word.empty() && word.size() <= longest && std::all_of(word.begin(), word.end(), fits);
}

// nan and inf are numbers here: a loss that became one is what somebody wants to see.
bool is_number(std::string_view word) {
  if (word.empty() || word.size() > kMetricValueBytes) return false;
  if (word.front() == '+') word.remove_prefix(1);
  double number = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
}

bool take_metric(std::string_view value, Notice& notice) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = value.substr(0, colon);
  const std::string_view number = value.substr(colon + 1);
  if (!is_name(name, kMetricNameBytes) || !is_number(number)) return false;
  const auto same = std::find_if(notice.metrics.begin(), notice.metrics.end(),
                                 [name](const auto& metric) { return metric.first == name; });
  if (same != notice.metrics.end()) {
    same->second = number;
    return true;
  }
  if (notice.metrics.size() >= kMetrics) return false;
  notice.metrics.emplace_back(name, number);
  return true;
}

// False where the value is none.
bool take_line(std::string_view key, std::string_view value, Notice& notice) {
  if (key == "READY") {
    notice.ready = notice.ready || value == "1";
    return value == "1";
  }
  if (key == "STOPPING") {
    notice.stopping = notice.stopping || value == "1";
    return value == "1";
  }
  if (key == "WATCHDOG") {
    // `trigger` asks a service manager for a kill (sd_notify(3)); nothing here kills on a rank's word.
    notice.watchdog = notice.watchdog || value == "1";
    return value == "1" || value == "trigger";
  }
  if (key == "STATUS") {
    notice.status = value.substr(0, kStatusBytes);
    return true;
  }
  if (key == "X_MONARCH_STEP") {
    const auto step = whole_number(value);
    if (step) notice.step = step;
    return step.has_value();
  }
  if (key == "X_MONARCH_PHASE") {
    if (!value.empty() && !is_name(value, kPhaseBytes)) return false;
    notice.phase = value;
    return true;
  }
  if (key == "X_MONARCH_METRIC") return take_metric(value, notice);
  return true;  // somebody else's
}

template <class Take>
void each_line(std::string_view message, Take take) {
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    const std::string_view line = message.substr(0, end);
    message.remove_prefix(std::min(end + 1, message.size()));
    if (const std::size_t equals = line.find('='); equals != std::string_view::npos) {
      take(line.substr(0, equals), line.substr(equals + 1), line);
    }
  }
}

// A string of JSON. Bytes above 7F pass as they are: names come from specs, which are UTF-8.
std::string quoted(std::string_view raw) {
  std::string out = "\"";
  for (const char c : raw) {
    if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7F) {
      out += text("\\u00", to_hex(std::string_view(&c, 1)));
    } else {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace

Notice parse_notice(std::string_view datagram) {
  Notice notice;
  if (datagram.size() > kNotifyBytes) return notice;
  each_line(datagram, [&notice](std::string_view key, std::string_view value, std::string_view line) {
    if (take_line(key, value, notice)) return;
    if (notice.bad++ == 0) notice.first_bad = line.substr(0, kShownBytes);
  });
  return notice;
}

RankQuestion parse_question(std::string_view message) {
  RankQuestion question = RankQuestion::kNone;
  if (message.size() > kNotifyBytes) return RankQuestion::kUnknown;
  each_line(message, [&question](std::string_view key, std::string_view value, std::string_view /*line*/) {
    if (question != RankQuestion::kNone) return;  // the first one counts
    if (key == "COMMIT") question = RankQuestion::kCommit;
    if (key != "ASK") return;
    if (value == "who") {
      question = RankQuestion::kWho;
    } else if (value == "events") {
      question = RankQuestion::kEvents;
    } else if (value == "committed") {
      question = RankQuestion::kCommitted;
    } else if (value == "gate") {
      question = RankQuestion::kGate;
    } else {
      question = RankQuestion::kUnknown;
    }
  });
  return question;
}

std::string who_answer(const RankIdentity& who) {
  return text("{\"v\":1,\"job\":", quoted(who.job), ",\"mesh\":", quoted(who.mesh), ",\"rank\":", who.rank,
              ",\"generation\":", who.generation, ",\"host\":", quoted(who.host), '}');
}

std::string events_answer() { return "{\"v\":1,\"ok\":true}"; }

std::string gate_answer(const std::map<std::string, std::string>& gang_env,
                        const std::map<std::string, std::string>& own_env) {
  std::map<std::string, std::string> whole = own_env;
  whole.insert(gang_env.begin(), gang_env.end());
  std::string out = "{\"v\":1,\"ok\":true,\"env\":{";
  for (const auto& [name, value] : whole) {
    if (out.back() != '{') out.push_back(',');
    out += text(quoted(name), ':', quoted(value));
  }
  return out + "}}";
}

std::string unknown_answer() {
  return "{\"v\":1,\"error\":\"ASK=who, ASK=events, ASK=committed, ASK=gate or COMMIT=step is what can be asked\"}";
}

std::string stopping_event(std::int32_t signal, Duration grace) {
  return text("{\"v\":1,\"event\":\"stopping\",\"signal\":", signal,
              ",\"grace_milliseconds\":", grace.count_milliseconds(), '}');
}

std::string lease_low_event(Duration left) {
  return text("{\"v\":1,\"event\":\"lease_low\",\"left_milliseconds\":", left.count_milliseconds(), '}');
}

bool is_event(std::string_view json, std::string_view name) {
  return json.find(text("\"event\":\"", name, '"')) != std::string_view::npos;
}

}  // namespace monarch

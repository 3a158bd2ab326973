#pragma once

// Launch: which machines a job has, how workers get onto them, and by which addresses all parts reach each other. What
// a spec may say is decided in supervisor/spec; no value here needs checking again.
//
// Thread: values.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/core/spec/launch_facts.h"

namespace monarch {

// A launcher's own part of a spec, which only that launcher opens, and the facts that it states of it.
class Launch {
 public:
  Launch() = default;  // virtual hosts of this machine, as many as are needed
  template <class Settings>
  requires requires(const Settings& settings) {
    { facts_of(settings) } -> std::same_as<LaunchFacts>;
  }
  Launch(Settings settings)  // NOLINT(google-explicit-constructor): as an alternative is its variant
      : held_(std::make_shared<const Held<Settings>>(std::move(settings))) {}

  const LaunchFacts& facts() const;
  // Nothing: it is another launcher's.
  template <class Settings>
  const Settings* as() const {
    const auto* held = dynamic_cast<const Held<Settings>*>(held_.get());
    return held == nullptr ? nullptr : &held->settings;
  }
  bool operator==(const Launch& other) const {
    return held_ == other.held_ || (held_ && other.held_ && held_->equals(*other.held_));
  }

 private:
  struct Any {
    explicit Any(LaunchFacts stated) : facts(std::move(stated)) {}
    virtual ~Any() = default;
    virtual bool equals(const Any& other) const = 0;
    LaunchFacts facts;
  };
  template <class Settings>
  struct Held final : Any {
    explicit Held(Settings written) : Any(facts_of(written)), settings(std::move(written)) {}
    bool equals(const Any& other) const override {
      const auto* same = dynamic_cast<const Held*>(&other);
      return same != nullptr && same->settings == settings;
    }
    Settings settings;
  };

  std::shared_ptr<const Any> held_;  // owners: all copies, which only read it
};

struct PortSpan {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(const PortSpan&) const = default;
};

enum class ControlVia : std::uint8_t { kDirect, kSsh };

// Where the supervisor lives: on the machine that starts the job, or on the first host of the pool, which that machine
// launches.
enum class SupervisorPlace : std::uint8_t { kHere, kFirst };

// How workers reach the supervisor.
struct ControlSpec {
  ControlVia via = ControlVia::kDirect;
  std::string address;  // numeric, as the hosts see it; empty: of the connection that reached the first of them
  std::optional<PortSpan> ports;  // two or more; nothing: any
  bool operator==(const ControlSpec&) const = default;
};

// How ranks reach each other.
struct NetworkSpec {
  std::string interface;          // empty: that by which a host reaches the supervisor
  std::optional<PortSpan> ports;  // that ranks are given; nothing: any
  bool operator==(const NetworkSpec&) const = default;
};

}  // namespace monarch

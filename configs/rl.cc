// The loop of configs/rl.yaml: it looks for the mean of a normal distribution whose samples lie nearest to `best`.

#include <monarch/controller.hpp>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

struct Sample {
  double x = 0;
  double reward = 0;
  std::uint64_t version = 0;  // of the policy that has made it
};
MONARCH_FIELDS(Sample, x, reward, version)
using Samples = std::vector<Sample>;

struct Policy : monarch::Actor {
  void set(double mean, std::uint64_t version) {
    mean_ = mean;
    version_ = version;
  }
  Samples generate(std::uint32_t count) {
    std::normal_distribution<double> normal(mean_, 1);
    Samples samples(count);
    for (Sample& one : samples) one = {.x = normal(random_), .reward = 0, .version = version_};
    return samples;
  }

 private:
  double mean_ = 0;
  std::uint64_t version_ = 0;
  std::mt19937_64 random_{context().rank + 1000 * context().generation};
};

struct Reward : monarch::Actor {
  explicit Reward(const monarch::Args& args) : best_(args.get<double>("best")) {}
  Samples score(Samples samples) {
    for (Sample& one : samples) one.reward = -std::abs(one.x - best_);
    return samples;
  }

 private:
  double best_;
};

struct Buffer : monarch::Actor {
  void put(const Samples& samples) {
    all_.insert(all_.end(), samples.begin(), samples.end());
    serve();
  }
  // Answered once there are so many.
  void take(const monarch::Reply<Samples>& reply, std::uint32_t count) {
    waiting_.emplace_back(reply, count);
    serve();
  }

 private:
  void serve() {
    if (waiting_.empty() || all_.size() < waiting_.front().second) return;
    waiting_.front().first.set(std::exchange(all_, {}));
    waiting_.erase(waiting_.begin());
  }
  Samples all_;
  std::vector<std::pair<monarch::Reply<Samples>, std::uint32_t>> waiting_;
};

struct Trainer : monarch::Actor {
  explicit Trainer(const monarch::Args& args) : rate_(args.get<double>("rate")) {}
  // A step along the policy's gradient, with the mean reward as the baseline: REINFORCE (Williams, 1992).
  double step(const Samples& samples) {
    const auto count = static_cast<double>(samples.size());
    double baseline = 0;
    for (const Sample& one : samples) baseline += one.reward / count;
    double gradient = 0;
    for (const Sample& one : samples) gradient += (one.reward - baseline) * (one.x - mean_) / count;
    return mean_ += rate_ * gradient;
  }

 private:
  double rate_;
  double mean_ = 0;
};

int drive(monarch::Controller& c) {
  const auto generators = c.mesh("generators").actors<Policy>("policy").within(2s);
  const auto rewards = c.mesh("rewards").actors<Reward>("reward").within(5s);
  const auto buffer = c.mesh("learner").actors<Buffer>("buffer").within(30s);
  const auto trainer = c.mesh("learner").actors<Trainer>("trainer").within(5s);
  const auto steps = c.args().get<std::uint64_t>("steps");
  std::uint64_t missed = 0;
  double mean = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const auto batch = buffer.call_one<&Buffer::take>(48);  // waits there, not here
    while (!batch.ready()) {
      for (auto&& made : generators.stream<&Policy::generate>(24)) {  // as they come, of those that live
        if (made) {
          buffer.broadcast<&Buffer::put>(rewards.choose<&Reward::score>(*made).get());
        } else {
          ++missed;
        }
      }
    }
    mean = trainer.call_one<&Trainer::step>(batch.get()).get();
    generators.broadcast<&Policy::set>(mean, step);
  }
  std::cout << "mean " << std::round(mean * 10) / 10 << " after " << steps << " steps\n";
  if (missed > 0) std::cout << missed << " calls of generators had no samples\n";
  return std::abs(mean - 3) < 0.5 ? 0 : 1;
}

MONARCH_PLUGIN(MONARCH_ACTOR(Policy, &Policy::set, &Policy::generate), MONARCH_ACTOR(Reward, &Reward::score),
               MONARCH_ACTOR(Buffer, &Buffer::put, &Buffer::take), MONARCH_ACTOR(Trainer, &Trainer::step))
MONARCH_CONTROLLER(drive)

#include "worker/keeper/host_topology.h"

#include <algorithm>
#include <thread>

#include "tests/worker/keeper/made_up_host.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch {
namespace {

class HostTopologyFiles : public MadeUpHost {
 protected:
  void cpu(int number, int package, int core) const {
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/";
    file(topology + "physical_package_id", std::to_string(package) + "\n");
    file(topology + "core_id", std::to_string(core) + "\n");
  }
};

TEST_F(HostTopologyFiles, AreReadForTheProcessorsThatMayBeUsed) {
  file("/sys/devices/system/node/online", "0-1\n");
  file("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
  file("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  for (int i = 0; i < 8; ++i) cpu(i, i % 4 / 2, i % 2);
  gpu("0000:3b:00.0", "GPU-a", 0, "1");
  gpu("0000:86:00.0", "GPU-b", 1, "-1");
  const HostTopology host = read_host_topology({1, 2, 7}, root_);
  EXPECT_EQ(host.cpus, (std::vector<HostCpu>{{1, 0, 0, 1}, {2, 1, 1, 0}, {7, 1, 1, 1}}));
  EXPECT_EQ(host.gpu_nodes, (std::map<std::string, std::uint32_t>{{"GPU-a", 1}})) << "-1 says that it is not known";
}

TEST_F(HostTopologyFiles, MayAllBeMissing) {
  const HostTopology host = read_host_topology({0, 3}, root_);
  EXPECT_EQ(host.cpus, (std::vector<HostCpu>{{0, 0, 0, 0}, {3, 0, 0, 0}}));
}

TEST(HostTopology, OfThisHostNamesEveryProcessorThatMayBeUsedOnce) {
  const auto usable = usable_cpus();
  ASSERT_FALSE(usable.empty());
  EXPECT_EQ(usable.size(), std::thread::hardware_concurrency());
  const HostTopology host = read_host_topology(usable);
  RankBinding all{BindKind::kCore, 0, static_cast<std::uint32_t>(usable.size()), {}};
  EXPECT_EQ(bound_cpus(all, host).value(), usable);
}

class NvidiaGpus : public MadeUpHost {
 protected:
  void SetUp() override {
    MadeUpHost::SetUp();
    gpu("0000:86:00.0", "GPU-b1b1", 0, "1");
    gpu("0000:3b:00.0", "GPU-a1a1", 1, "0");
    gpu("0000:af:00.0", "GPU-b2b2", 2, "1");
  }
  std::vector<Gpu> visible(const std::optional<std::string>& devices) const {
    return visible_gpus(read_nvidia_gpus(root_), devices);
  }
  const Gpu first_{0, "GPU-a1a1"};
  const Gpu second_{1, "GPU-b1b1"};
  const Gpu third_{2, "GPU-b2b2"};
};

TEST_F(NvidiaGpus, AreNumberedByTheirPlaceOnTheBus) {
  const auto gpus = read_nvidia_gpus(root_);
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0], (NvidiaGpu{0, "GPU-a1a1", "0000:3b:00.0", 0}));
  EXPECT_EQ(gpus[1], (NvidiaGpu{1, "GPU-b1b1", "0000:86:00.0", 1}));
  EXPECT_EQ(gpus[2], (NvidiaGpu{2, "GPU-b2b2", "0000:af:00.0", 1}));
}

TEST_F(NvidiaGpus, AreNoneWithoutADriver) { EXPECT_TRUE(read_nvidia_gpus(root_ + "/nonesuch").empty()); }

TEST_F(NvidiaGpus, OfWhichAContainerShowsNoDeviceDoNotCount) {
  file("/dev/nvidiactl", "");
  file("/dev/nvidia1", "");
  EXPECT_EQ(visible(std::nullopt), (std::vector<Gpu>{{0, "GPU-a1a1"}}));
}

TEST_F(NvidiaGpus, WhoseUuidTheDriverDoesNotKnowDoNotCount) {
  gpu("0000:d8:00.0", "GPU-" + std::string(8, '?'), 3, "1");
  EXPECT_EQ(read_nvidia_gpus(root_).size(), 3U);
}

TEST_F(NvidiaGpus, AreAllVisibleWhereNothingIsSaid) {
  EXPECT_EQ(visible(std::nullopt), (std::vector<Gpu>{first_, second_, third_}));
}

TEST_F(NvidiaGpus, AreVisibleByNumberAndByUuidInTheOrderOfTheList) {
  EXPECT_EQ(visible("2,0"), (std::vector<Gpu>{third_, first_}));
  EXPECT_EQ(visible(" GPU-b2b2 , 1"), (std::vector<Gpu>{third_, second_}));
  EXPECT_EQ(visible("GPU-a"), (std::vector<Gpu>{first_})) << "the beginning is enough where it is one's alone";
}

TEST_F(NvidiaGpus, EndAtTheFirstThatIsNone) {
  EXPECT_EQ(visible("1,7,0"), (std::vector<Gpu>{second_}));
  EXPECT_EQ(visible("1,GPU-b,0"), (std::vector<Gpu>{second_})) << "it could be either of two";
  EXPECT_EQ(visible("0,MIG-a1a1,1"), (std::vector<Gpu>{first_}));
  EXPECT_TRUE(visible("").empty());
  EXPECT_TRUE(visible("-1").empty());
  EXPECT_TRUE(visible("NoDevFiles").empty());
}

TEST_F(NvidiaGpus, AreNoneWhereOneIsNamedTwice) { EXPECT_TRUE(visible("0,1,GPU-a1a1").empty()); }

}  // namespace
}  // namespace monarch

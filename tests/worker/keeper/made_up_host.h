#pragma once

// A folder with made-up files below it: the /sys and /proc of a host that is not here.
//
// Thread: the test's.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace monarch {

class MadeUpHost : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/monarch-made-up-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& content) const {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << content;
  }
  void gpu(const std::string& bus, const std::string& uuid, int minor, const std::string& node) const {
    file("/proc/driver/nvidia/gpus/" + bus + "/information",
         "Model: \t\t NVIDIA H200\nIRQ:   \t\t 84\nGPU UUID: \t " + uuid +
             "\nVideo BIOS: \t 96.00\nBus Type: \t PCIe\nBus Location: \t " + bus + "\nDevice Minor: \t " +
             std::to_string(minor) + "\nGPU Excluded:\t No\n");
    file("/sys/bus/pci/devices/" + bus + "/numa_node", node + "\n");
  }

  std::string root_;
};

}  // namespace monarch

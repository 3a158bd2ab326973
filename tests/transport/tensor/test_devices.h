#pragma once

// The devices that tests of the verbs lane have: of a fabric that needs no card (fake_verbs.h), or the machine's own,
// where MONARCH_TEST_RDMA=OWNER,READER names them: tests/rxe does, in a guest.
//
// Thread: the test's.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tests/transport/tensor/fake_verbs.h"
#include "tests/transport/tensor/tensor_gang.h"
#include "transport/tensor/verbs/libibverbs.h"
#include "transport/tensor/verbs/open_verbs.h"

namespace monarch::tensor {

inline bool has_real_devices() { return std::getenv("MONARCH_TEST_RDMA") != nullptr; }

inline VerbsEnd real_device(bool owner) {
  const std::string both = std::getenv("MONARCH_TEST_RDMA");
  const std::size_t comma = both.find(',');
  const auto library = load_libibverbs();
  EXPECT_TRUE(library.ok());
  VerbsEnd end = open_verbs(**library, {.name = owner ? both.substr(0, comma) : both.substr(comma + 1)});
  EXPECT_NE(end.device, nullptr) << end.why_not;
  end.short_row = 1;
  return end;
}

// Those of all owners and readers that are made in its life; each row is READ.
class TestDevices {
 public:
  TestDevices() {
    if (has_real_devices()) {
      test_verbs = real_device(true);
      test_reader_verbs = real_device(false);
      return;
    }
    fabric_ = std::make_shared<FakeFabric>();
    test_verbs = test_reader_verbs = {.device = fabric_->make_device(), .why_not = {}, .short_row = 1};
  }
  TestDevices(const TestDevices&) = delete;
  TestDevices& operator=(const TestDevices&) = delete;
  ~TestDevices() {
    test_verbs = test_reader_verbs = {};
    EXPECT_EQ(fabric_ ? fabric_->queues() : 0, 0U) << "queues are left";
  }

  // Of no real device.
  FakeFabric& fabric() const { return *fabric_; }
  const std::shared_ptr<FakeFabric>& shared_fabric() const { return fabric_; }

 private:
  std::shared_ptr<FakeFabric> fabric_;  // owners: this, and what it has given out
};

}  // namespace monarch::tensor

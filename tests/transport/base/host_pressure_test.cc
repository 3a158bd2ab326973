#include "transport/base/host_pressure.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(HostPressure, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(some_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=2570325\nfull avg10=0.00 avg60=…"), 0);
  EXPECT_EQ(some_pressure("some avg10=63.94 avg60=18.09 avg300=19.37 total=35992691546\n"), 63);
  EXPECT_EQ(some_pressure("some avg10=100.00 avg60=99.00 avg300=19.37 total=1\n"), 100);
}

TEST(HostPressure, IsNothingWhereTheFileSaysSomethingElse) {
  for (const char* file : {"", "some", "some avg10=", "some avg10=7", "some avg10=-1.00 ", "some avg10=101.00 ",
                           "some avg10=256.00 ", "full avg10=3.00 avg60=0.00"}) {
    EXPECT_EQ(some_pressure(file), std::nullopt) << file;
  }
}

}  // namespace
}  // namespace monarch

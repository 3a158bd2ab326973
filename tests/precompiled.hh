// transport/base/precompiled.hh for programs of tests: GoogleTest takes longer to read than most tests.

#include <gtest/gtest.h>

#include "transport/base/precompiled.hh"

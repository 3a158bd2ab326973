"""A third-party library is included by the few .cc files named here and by no header of ours: it can be replaced there."""

import re

from source_tree import includes_of

# (include, files that may have it, in words)
LIBRARIES = [
    (r"zmq(_addon|_utils)?\.h(pp)?", r"transport/zmq/[^/]+\.cc|tests/.*\.cc", "transport/zmq"),
    (r"yaml-cpp/.*", r"supervisor/spec/yaml/yaml\.cc", "supervisor/spec/yaml/yaml.cc"),
    (r"re2/.*", r"cli/follow/line_pattern\.cc", "cli/follow/line_pattern.cc"),
    (r"CLI/.*|CLI11\.hpp", r"cli/args/options\.cc", "cli/args/options.cc"),
    (r"(spdlog|fmt)/.*", r"transport/base/log\.cc", "transport/base/log.cc"),
    (r"nlohmann/.*", r"(.*/)?json\.cc", "one json.cc"),
    (r"libssh/.*", r"supervisor/launch/ssh/(session/(authenticate|known_hosts|libssh|libssh_key|raw_session|ssh_channel)|ssh_listener)\.cc",
     "few files of supervisor/launch/ssh"),
    (r"(infiniband|rdma)/.*", r"transport/tensor/verbs/libibverbs\.cc", "transport/tensor/verbs/libibverbs.cc"),
    (r"sodium\.h", r"transport/peers/body_cipher\.cc", "transport/peers/body_cipher.cc"),
    (r"openssl/.*", r"transport/peers/openssl_cipher\.cc", "transport/peers/openssl_cipher.cc"),
    (r"cuda.*\.h|nccl\.h", r"tests/cuda/agree\.cc", "tests/cuda/agree.cc"),
    (r"(gtest|gmock)/.*", r"tests/.*", "tests"),
]

CLEAN = {
    "transport/zmq/link.cc": "#include <zmq.h>\n",
    "supervisor/spec/yaml/yaml.cc": "#include <yaml-cpp/yaml.h>\n",
    "cli/follow/line_pattern.cc": "#include <re2/re2.h>\n",
    "cli/args/options.cc": "#include <CLI/CLI.hpp>\n// #include <fmt/format.h>\n",
    "transport/base/log.cc": "#include <spdlog/logger.h>\n#include <fmt/format.h>\n",
    "transport/base/json.cc": "#include <nlohmann/json.hpp>\n",
    "transport/tensor/verbs/libibverbs.cc": "#include <infiniband/verbs.h>\n",
    "transport/peers/body_cipher.cc": "#include <sodium.h>\n",
    "transport/peers/openssl_cipher.cc": "#include <openssl/evp.h>\n",
    "supervisor/launch/ssh/session/raw_session.cc": "#include <libssh/libssh.h>\n",
    "tests/cli/a_test.cc": "#include <gtest/gtest.h>\n",
}
PLANTS = [
    ("transport/zmq/link.h", "#pragma once\n#include <zmq.h>\n", "zmq.h belongs into transport/zmq"),
    ("worker/daemon/link.cc", "#include <zmq.hpp>\n", "zmq.hpp belongs into transport/zmq"),
    ("supervisor/spec/schema/schema.cc", "#include <yaml-cpp/yaml.h>\n", "belongs into supervisor/spec/yaml/yaml.cc"),
    ("cli/args/options.h", "#pragma once\n#include <CLI/CLI.hpp>\n", "belongs into cli/args/options.cc"),
    ("cli/follow/line_pattern.h", "#pragma once\n#include <re2/re2.h>\n", "re2/re2.h belongs into cli/follow/line_pattern.cc"),
    ("supervisor/journal.cc", "#include <fmt/format.h>\n", "belongs into transport/base/log.cc"),
    ("cli/render.cc", "#include <nlohmann/json.hpp>\n", "belongs into one json.cc"),
    ("cli/json.cc", "#include <nlohmann/json.hpp>\n", "a second json.cc"),
    ("supervisor/launch/ssh.cc", "#include <libssh/libssh.h>\n", "belongs into few files of supervisor/launch/ssh"),
    ("supervisor/launch/ssh/session/ssh_session.h", "#pragma once\n#include <libssh/libssh.h>\n", "belongs into few files"),
    ("transport/tensor/verbs/verbs_lane.cc", "#include <infiniband/verbs.h>\n", "belongs into transport/tensor/verbs/libibverbs.cc"),
    ("worker/post/post.cc", "#include <sodium.h>\n", "belongs into transport/peers/body_cipher.cc"),
    ("worker/post/post.h", "#pragma once\n#include <openssl/evp.h>\n", "belongs into transport/peers/openssl_cipher.cc"),
    ("cli/main_test.cc", '#include "gtest/gtest.h"\n', "belongs into tests"),
]


def check(tree, _build):
    found = []
    json_files = []
    for path in tree.cxx():
        for line, _, target in includes_of(tree.read(path)):
            for include, holders, words in LIBRARIES:
                if re.fullmatch(include, target) and not re.fullmatch(holders, path):
                    found.append(f"{path}:{line}: {target} belongs into {words}")
            if target.startswith("nlohmann/") and path not in json_files:
                json_files.append(path)
    if len(json_files) > 1:
        found.append(f"a second json.cc: {' '.join(json_files)}")
    return found

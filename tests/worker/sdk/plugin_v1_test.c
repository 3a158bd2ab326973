/* C reads the ABI, and its structs are as they were: a plugin that was built before must find each field where it was. */

#include <monarch/plugin_v1.h>

_Static_assert(sizeof(monarch_bytes_v1) == 16, "bytes");
_Static_assert(sizeof(monarch_answer_v1) == 64, "answer");
_Static_assert(offsetof(monarch_answer_v1, traceback) == 56, "answer.traceback");
_Static_assert(sizeof(monarch_ranks_v1) == 12, "ranks");
_Static_assert(sizeof(monarch_call_v1) == 112, "call");
_Static_assert(offsetof(monarch_call_v1, user) == 88, "call.user");
_Static_assert(offsetof(monarch_call_v1, pieces) == 96, "call.pieces, where the struct of before ended");
_Static_assert(sizeof(monarch_reply_v1) == 24, "reply");
_Static_assert(sizeof(monarch_reading_v1) == 40, "reading");
_Static_assert(offsetof(monarch_reading_v1, run) == 32, "reading.run");
_Static_assert(sizeof(monarch_place_v1) == 88, "place");
_Static_assert(offsetof(monarch_place_v1, args) == 72, "place.args");
_Static_assert(sizeof(monarch_host_v1) == 88, "host");
_Static_assert(offsetof(monarch_host_v1, runtime) == 72, "host.runtime");
_Static_assert(offsetof(monarch_host_v1, reply_with) == 80, "host.reply_with, where the struct of before ended");
_Static_assert(sizeof(monarch_endpoint_v1) == 32, "endpoint");
_Static_assert(sizeof(monarch_class_v1) == 40, "class");
_Static_assert(sizeof(monarch_controller_v1) == 24, "controller");
_Static_assert(sizeof(monarch_plugin_v1) == 40, "plugin");

static const monarch_plugin_v1* get(void) {
  static const monarch_plugin_v1 plugin = {.struct_size = sizeof plugin, .abi = MONARCH_ABI_V1};
  return &plugin;
}

int main(void) {
  const monarch_plugin_v1_getter getter = get;
  return getter()->abi == MONARCH_ABI_V1 ? 0 : 1;
}

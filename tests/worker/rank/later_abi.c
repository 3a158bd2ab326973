/* A plugin of a later interface. */

#include <monarch/plugin_v1.h>

const monarch_plugin_v1* monarch_plugin_v1_get(void);
const monarch_plugin_v1* monarch_plugin_v1_get(void) {
  static const monarch_plugin_v1 plugin = {.struct_size = sizeof plugin, .abi = 2};
  return &plugin;
}

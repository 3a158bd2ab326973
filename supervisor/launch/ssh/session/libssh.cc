#include "supervisor/launch/ssh/session/libssh.h"

#include <dlfcn.h>
#include <libssh/libssh.h>
#include <libssh/server.h>

#include <charconv>
#include <tuple>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr char kLibrary[] = "libssh.so.4";  // this interface since 0.8

struct Library {
  void* handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  std::string error = handle == nullptr ? ::dlerror() : "";
};

const Library& library() {
  static const Library loaded;  // stays for the life of the process
  return loaded;
}

void* symbol(const char* name) {
  MONARCH_ASSERT(library().handle != nullptr);
  void* found = ::dlsym(library().handle, name);
  MONARCH_ASSERT(found != nullptr);
  return found;
}

using Version = std::tuple<unsigned, unsigned, unsigned>;

Version parse_version(std::string_view written) {
  unsigned numbers[3] = {};
  const char* at = written.data();
  const char* const end = at + written.size();
  for (unsigned& number : numbers) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    at = next != end && *next == '.' ? next + 1 : next;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace

Status load_libssh() {
  if (library().handle == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 text("SSH needs libssh on this machine (on Debian: apt-get install libssh-4): ", library().error)};
  }
  // Once in a process, before sessions in many threads: a later call does nothing.
  static const int started = ssh_init();
  if (started != SSH_OK) return Error{ErrorCode::kInternal, text("libssh ", libssh_version(), " does not start")};
  return {};
}

std::string libssh_version() {
  const std::string_view all = ssh_version(0);  // "0.10.6/openssl/zlib"
  return std::string(all.substr(0, all.find('/')));
}

std::string libssh_concern(std::string_view version) {
  const Version have = parse_version(version);
  const bool old = have < Version{0, 10, 6};
  const bool early = have >= Version{0, 11, 0} && have < Version{0, 11, 4};
  if (!old && !early) return "";
  return text("libssh ", version,
              " has known holes that 0.10.6 with a distribution's corrections and 0.11.4 do not have");
}

}  // namespace monarch

// What is called somewhere in this folder, and nothing else.
#define MONARCH_FORWARD(type, name, parameters, arguments)                                    \
  extern "C" type name parameters {                                                           \
    static const auto function = reinterpret_cast<decltype(&name)>(::monarch::symbol(#name)); \
    return function arguments;                                                                \
  }

MONARCH_FORWARD(int, ssh_init, (), ())
MONARCH_FORWARD(const char*, ssh_version, (int required), (required))

MONARCH_FORWARD(ssh_session, ssh_new, (), ())
MONARCH_FORWARD(void, ssh_free, (ssh_session session), (session))
MONARCH_FORWARD(int, ssh_options_set, (ssh_session session, ssh_options_e option, const void* value),
                (session, option, value))
MONARCH_FORWARD(void, ssh_set_blocking, (ssh_session session, int blocking), (session, blocking))
MONARCH_FORWARD(int, ssh_connect, (ssh_session session), (session))
MONARCH_FORWARD(const char*, ssh_get_error, (void* of), (of))
MONARCH_FORWARD(int, ssh_get_poll_flags, (ssh_session session), (session))
MONARCH_FORWARD(const char*, ssh_get_serverbanner, (ssh_session session), (session))
MONARCH_FORWARD(void, ssh_set_counters, (ssh_session session, ssh_counter socket, ssh_counter packets),
                (session, socket, packets))
MONARCH_FORWARD(int, ssh_is_connected, (ssh_session session), (session))

MONARCH_FORWARD(int, ssh_get_server_publickey, (ssh_session session, ssh_key* key), (session, key))
MONARCH_FORWARD(void, ssh_key_free, (ssh_key key), (key))
MONARCH_FORWARD(ssh_keytypes_e, ssh_key_type, (const ssh_key key), (key))
MONARCH_FORWARD(const char*, ssh_key_type_to_char, (ssh_keytypes_e type), (type))
MONARCH_FORWARD(int, ssh_pki_export_pubkey_base64, (const ssh_key key, char** text), (key, text))
MONARCH_FORWARD(int, ssh_pki_import_pubkey_file, (const char* path, ssh_key* key), (path, key))
MONARCH_FORWARD(int, ssh_pki_import_privkey_base64,
                (const char* text, const char* phrase, ssh_auth_callback ask, void* context, ssh_key* key),
                (text, phrase, ask, context, key))
MONARCH_FORWARD(int, ssh_pki_import_cert_file, (const char* path, ssh_key* key), (path, key))
MONARCH_FORWARD(int, ssh_pki_copy_cert_to_privkey, (const ssh_key certificate, ssh_key key), (certificate, key))
MONARCH_FORWARD(int, ssh_get_publickey_hash,
                (const ssh_key key, ssh_publickey_hash_type type, unsigned char** hash, size_t* size),
                (key, type, hash, size))
MONARCH_FORWARD(char*, ssh_get_fingerprint_hash, (ssh_publickey_hash_type type, unsigned char* hash, size_t size),
                (type, hash, size))
MONARCH_FORWARD(void, ssh_clean_pubkey_hash, (unsigned char** hash), (hash))
MONARCH_FORWARD(void, ssh_string_free_char, (char* text), (text))
MONARCH_FORWARD(int, ssh_known_hosts_parse_line, (const char* host, const char* line, ssh_knownhosts_entry** entry),
                (host, line, entry))
MONARCH_FORWARD(void, ssh_knownhosts_entry_free, (ssh_knownhosts_entry * entry), (entry))

MONARCH_FORWARD(int, ssh_userauth_none, (ssh_session session, const char* user), (session, user))
MONARCH_FORWARD(int, ssh_userauth_list, (ssh_session session, const char* user), (session, user))
MONARCH_FORWARD(int, ssh_userauth_agent, (ssh_session session, const char* user), (session, user))
MONARCH_FORWARD(int, ssh_userauth_publickey, (ssh_session session, const char* user, const ssh_key key),
                (session, user, key))
MONARCH_FORWARD(int, ssh_set_agent_socket, (ssh_session session, socket_t socket), (session, socket))

MONARCH_FORWARD(ssh_channel, ssh_channel_new, (ssh_session session), (session))
MONARCH_FORWARD(void, ssh_channel_free, (ssh_channel channel), (channel))
MONARCH_FORWARD(int, ssh_channel_open_session, (ssh_channel channel), (channel))
MONARCH_FORWARD(int, ssh_channel_open_forward,
                (ssh_channel channel, const char* host, int port, const char* from, int from_port),
                (channel, host, port, from, from_port))
MONARCH_FORWARD(int, ssh_channel_request_exec, (ssh_channel channel, const char* command), (channel, command))
MONARCH_FORWARD(int, ssh_channel_read_nonblocking, (ssh_channel channel, void* into, uint32_t size, int is_stderr),
                (channel, into, size, is_stderr))
MONARCH_FORWARD(int, ssh_channel_write, (ssh_channel channel, const void* from, uint32_t size), (channel, from, size))
MONARCH_FORWARD(int, ssh_channel_send_eof, (ssh_channel channel), (channel))
MONARCH_FORWARD(int, ssh_channel_is_eof, (ssh_channel channel), (channel))
MONARCH_FORWARD(int, ssh_channel_is_closed, (ssh_channel channel), (channel))
MONARCH_FORWARD(int, ssh_channel_get_exit_status, (ssh_channel channel), (channel))

MONARCH_FORWARD(int, ssh_channel_listen_forward, (ssh_session session, const char* address, int port, int* bound),
                (session, address, port, bound))
MONARCH_FORWARD(void, ssh_set_message_callback,
                (ssh_session session, int (*callback)(ssh_session of, ssh_message message, void* context),
                 void* context),
                (session, callback, context))
MONARCH_FORWARD(ssh_message, ssh_message_get, (ssh_session session), (session))
MONARCH_FORWARD(void, ssh_message_free, (ssh_message message), (message))
MONARCH_FORWARD(int, ssh_message_type, (ssh_message message), (message))
MONARCH_FORWARD(int, ssh_message_subtype, (ssh_message message), (message))
MONARCH_FORWARD(int, ssh_message_channel_request_open_destination_port, (ssh_message message), (message))
MONARCH_FORWARD(ssh_channel, ssh_message_channel_request_open_reply_accept, (ssh_message message), (message))
MONARCH_FORWARD(int, ssh_send_keepalive, (ssh_session session), (session))

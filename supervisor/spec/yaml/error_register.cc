// The register of errors: E00xx the file, E01xx its structure, E02xx single values, E03xx values that contradict each
// other, E04xx what this build cannot do, E09xx the command line and what a command finds around it.

#include <algorithm>
#include <array>

#include "supervisor/spec/yaml/diagnostics.h"

namespace monarch {

namespace {

constexpr ErrorDoc kErrors[] = {
    {"E0001", "this is not YAML",
     "The text does not follow the grammar of YAML: most often a bracket or a quote that is not closed, keys of one "
     "map that "
     "do not start in the same column, or a text with `: ` or a leading special character that needs quotes."},
    {"E0002", "the file is too large",
     "A spec has at most 1 MiB. It is refused before it is parsed. Data belongs into files that the program reads."},
    {"E0003", "nested too deeply", "Lists and maps are nested at most 32 levels deep; no spec needs more than ten."},
    {"E0004", "an alias or an anchor",
     "`&name` and `*name` are refused: an alias hides what a line means, and a few of them can stand for gigabytes."},
    {"E0005", "a tag",
     "`!type` is refused: the type of each value is given by its key. The one that is read is `!!binary`, of base64: "
     "an "
     "argument or a variable of a rank may have bytes that are no UTF-8."},
    {"E0006", "a merge key", "`<<` is refused, as aliases are: write the keys out."},
    {"E0007", "a second document", "One file holds one spec; what follows `---` would be ignored, so it is refused."},
    {"E0008", "the file is not plain UTF-8 text",
     "NUL, other control characters and bytes that are not UTF-8 are refused: they are invisible in an editor, and a "
     "parser "
     "may end the text at one."},
    {"E0009", "a tab in the indentation", "YAML indents with spaces only. Replace each tab by spaces."},
    {"E0010", "the file is empty",
     "There is nothing but blanks and comments in it. `version`, `job` and `meshes` are needed."},
    {"E0011", "a directive",
     "Lines that start with % at the front of the file (%YAML, %TAG) are refused: a spec needs none."},
    {"E0012", "too many values or errors", "A spec has at most 20,000 values, and the first 100 errors are shown."},
    {"E0013", "the file cannot be read",
     "The path must name a file that you may read, or a pipe, such as <(make_overlay) of a shell, which is read to its "
     "end. One that does not end within 30 s is refused, and so is a device. `-` reads standard input to its end, "
     "which "
     "must not be a terminal."},
    {"E0014", "a single value is too long",
     "A text, a comment, or a list or map in brackets has at most 128 KiB: a YAML parser holds all of it in memory, "
     "hundreds of "
     "times over. Long lists are written with one `- item` per line."},
    {"E0015", "a --set that is not PATH=VALUE",
     "`--set supervision.lease=8s` sets one key: its path with a `.` between the keys, `=`, and a value as a spec has "
     "it. "
     "Lists are "
     "set as a whole, and a key with a dot in it is put in quotes."},
    {"E0016", "arguments for no program",
     "What follows `--` is appended to the program of the only mesh. Where a spec has several, `--mesh` says which one "
     "is "
     "meant."},
    {"E0101", "a key is missing", "The map lacks a key that has no default."},
    {"E0102", "a duplicate key", "A key is written twice in one map; which one counts would be a guess."},
    {"E0103", "a value of the wrong kind",
     "The key takes a list, a map or a single value, and another of these is written."},
    {"E0104", "a key that is not a text", "Keys are names; a list, a map or nothing cannot be one."},
    {"E0105", "not exactly one launcher", "`launch` names exactly one launcher: `local`, `ssh`, `slurm` or `command`."},
    {"E0106", "not exactly one thing to run",
     "A mesh has exactly one of `program` and `actors`, an actor one of `plugin`, `python` and `module`, and a "
     "controller "
     "either `plugin` and `entry`, or `program`. Actors of one mesh are all of plugins, or all of Python."},
    {"E0107", "an unknown key",
     "The key is not part of the spec at this place. It is refused, since a key that is ignored in silence is worse "
     "than none."},
    {"E0108", "a bad name",
     "Names of jobs, meshes and dimensions are made of a-z, 0-9 and _, start with a letter and have at most 32 "
     "characters: "
     "they become parts of file names, environment variables and selectors."},
    {"E0109", "a reserved name", "`last`, `all` and `each` mean something on the command line and in `gang`."},
    {"E0110", "a file of another kind",
     "A spec says what a job is, and `monarch run` takes it; a scenario says what is done to a job, and `monarch "
     "drill` "
     "takes it. One stands where the other belongs."},
    {"E0201", "not an integer",
     "Integers are written in decimal digits. Octal (`010`, `0o7`), hexadecimal, `1e3`, `1_000` and quotes are "
     "refused: "
     "different readers of YAML take them for different numbers."},
    {"E0202", "neither true nor false", "Only `true` and `false` are taken; `yes`, `no`, `on` and `off` are refused."},
    {"E0203", "not a duration", "A duration has a unit: ms, s, m, h or d, as in `500ms`, `1.5s` or `1h30m`."},
    {"E0204", "not a size", "A size has a unit: B, KiB, MiB, GiB or TiB, as in `64MiB`."},
    {"E0205", "not one of the choices", "The key takes one of a few words."},
    {"E0206", "out of range", "The value has a least and a largest."},
    {"E0207", "not a number", "A number is written in decimal, as `4` or `0.25`, without quotes."},
    {"E0208", "not a list of hosts",
     "Hosts are written as names, or compressed as in `node[01-20,25],gpu7`. A name has letters, digits, `.`, `-` and "
     "`_`, and "
     "does not start with `-`."},
    {"E0209", "not the name of an environment variable",
     "Names have letters, digits and _, and do not start with a digit. Those that monarch itself sets cannot be set."},
    {"E0210", "not a text", "A text is missing, empty, or not what the key needs."},
    {"E0212", "an unknown version", "This build reads `version: 1`."},
    {"E0213", "names nothing", "The value names a dimension or a mesh that the spec does not have."},
    {"E0214", "a bad list of dimensions",
     "`per_host` lists the innermost dimensions that share a host, in the order of `dims`: ranks of one host are "
     "neighbours."},
    {"E0215", "a reference that names nothing",
     "$(self.rank), $(self.local_rank), $(self.node_rank), $(self.host), $(self.host_name), $(self.port.NAME), "
     "$(mesh.MESH.host), $(mesh.MESH.host_name), $(mesh.MESH.port.NAME) and $(env.NAME) are expanded in `program`, "
     "`wrap`, `env` and "
     "`workdir`; `host` is the address that others reach it by, and what is said of a mesh is said of its rank 0. "
     "A port that is `auto` is chosen when its mesh starts, so whoever names it must start later: by `depends_on`, "
     "or because that mesh is a sidecar. Any other `$(...)` is left to the program."},
    {"E0216", "a variable that is not set",
     "$(env.NAME) stands for a variable of the shell that starts the job, and this shell has none of that name. An "
     "empty one is taken."},
    {"E0217", "not a host to go through",
     "`jump` lists the hosts between this machine and the others, the nearest first, each as HOST, USER@HOST or "
     "USER@HOST:PORT; an IPv6 address stands in brackets."},
    {"E0218", "not the name of a user",
     "A user of another machine is named by letters, digits, `.`, `-` and `_`, with a letter or `_` first: it becomes "
     "an argument of SSH."},
    {"E0219", "not the fingerprint of a host key",
     "`host_key` is what ssh and ssh-keygen show of a host's key: `SHA256:` and 43 characters. No other key is taken "
     "from "
     "that host, whatever known_hosts says. Compare it with what the host's own console shows, not with what the "
     "network "
     "says."},
    {"E0220", "a path that cannot be used",
     "Paths of this machine are whole, below `~/`, or relative to the spec's folder; `~USER` and variables are not "
     "expanded. Paths of other machines are whole."},
    {"E0221", "a bad line in a file of hosts",
     "Each line of `hosts_file` has one host, or one compressed list of hosts such as `node[01-20]`. Behind a single "
     "host may stand `address=`, `user=` and `port=`; `#` starts a comment. How many ranks a host has is said by the "
     "`dims` of a mesh."},
    {"E0222", "not an address in numbers",
     "`control.address` is handed to every host as it is, and workers look up no names. It is an address of this "
     "machine that the hosts reach, as `10.0.0.1`."},
    {"E0223", "not the name of an interface",
     "Interfaces have names such as `ib0` or `eth1`, of at most 15 characters. The name must be the same on all "
     "hosts."},
    {"E0224", "no such workspace",
     "`workspace.path` must name a folder on the machine where the job is started, and its files must be readable "
     "there."},
    {"E0301", "times out of order",
     "`heartbeat < suspect_after < lost_after < lease` must hold: a host is suspected before it is given up, and given "
     "up "
     "before its lease ends, after which it may be replaced."},
    {"E0302", "the lease is too short",
     "The lease must outlast three heartbeats, or one lost packet freezes healthy ranks."},
    {"E0303", "the back-off does not fit the window",
     "All restarts that `max` allows, with their back-off, must fit into `window`. Otherwise the oldest is forgotten "
     "before the "
     "last is tried, and a gang that can never start is restarted for ever."},
    {"E0304", "too few hosts", "The pool must hold the hosts that the meshes need and the spares."},
    {"E0305", "`orphan: run` with replacements",
     "A host that lost the supervisor may go on running only if nobody would replace it meanwhile: two incarnations of "
     "one "
     "rank would have effect. It needs `reallocate: {max: 0}`."},
    {"E0306", "too many ranks", "A job has at most 65,536 ranks."},
    {"E0307", "too many hosts", "A job has at most 4,096 hosts."},
    {"E0308", "ranks that do not spread evenly",
     "The ranks of `-n` are spread evenly over the hosts of `-H`, else of `--launch`, and hosts that say how many they "
     "take (`a:4,b:4`) say the same "
     "number. Anything else takes a spec with several meshes."},
    {"E0309", "meshes in a ring",
     "A mesh starts when those of its `depends_on` are ready, and `hosts: {like: MESH}` takes the hosts of another "
     "mesh: neither may lead back to the mesh itself."},
    {"E0310", "sidecars that others cannot wait for",
     "Every mesh that is no sidecar waits for all sidecars, so a sidecar may wait for sidecars only; and a job is done "
     "when its other meshes are, so it needs one."},
    {"E0311", "more hosts than the other mesh has",
     "`hosts: {like: MESH}` takes the first hosts of that mesh, and there must be as many."},
    {"E0312", "bound to no number of cores",
     "`bind: core` gives each rank `cpus` cores of its own, and needs their number."},
    {"E0313", "one port for several ranks",
     "A port that is written as a number exists once on a machine. Several ranks of a mesh, two meshes on one host, "
     "and virtual hosts, which all share this machine, cannot have it together; `auto` gives each rank one of its "
     "own."},
    {"E0314", "an address that other hosts cannot reach",
     "127.0.0.1 and ::1 mean on each machine the machine itself, so that workers on several hosts would never reach "
     "the supervisor by them."},
    {"E0315", "too few ports",
     "`network.ports` must hold all ports that the ranks of one machine are given at a time: theirs by `ports`, and "
     "the "
     "MASTER_PORT of each gang that begins there. Virtual hosts are one machine."},
    {"E0316", "`auto` cannot be counted",
     "A dimension that is `auto` has as many ranks as a host has GPUs: of virtual hosts those of this machine that "
     "CUDA_VISIBLE_DEVICES leaves, divided by the hosts that the meshes need. One dimension of a mesh can be that, and "
     "none that is spread over hosts. Hosts elsewhere are not asked before the job starts: write their number."},
    {"E0317", "too large a workspace",
     "Every host gets a copy of all files of the workspace but those that .gitignore, .monarchignore and "
     "`workspace.exclude` name. Data belongs on a storage that the hosts share; what is named as largest is mostly "
     "what nobody meant to send."},
    {"E0318", "a folder of storage is not absolute",
     "What a job relies on is looked for on each host, where a relative path would begin in another place."},
    {"E0319", "outside of the workspace",
     "Each host has a copy of the workspace and of nothing around it, so a `workdir` that is no whole path must lie in "
     "it."},
    {"E0320", "two ways around a blocked call",
     "`control: {via: ssh}` leads the hosts' connections through the SSH sessions of the machine that started the job, "
     "and `supervisor: {on: first}` needs none of them: hosts call the first one. Both are answers to the same "
     "trouble; take one."},
    {"E0321", "a host is given up too early",
     "A host that was not heard for `lost_after` is given up, and its ranks are started elsewhere. Shorter than two "
     "heartbeats, a single late one would cost a healthy host."},
    {"E0322", "the back-off is longer than its limit",
     "The wait before a restart starts with `backoff`, doubles each time, and does not grow beyond `backoff_max`."},
    {"E0323", "the replacements do not fit the window",
     "A host that fell silent is replaced at the end of its lease. If `max` replacements, one after another, take "
     "longer than `window`, the oldest is forgotten before the last is made, and the budget never ends a job whose "
     "hosts keep failing."},
    {"E0324", "not the dimension of the gangs",
     "To shrink is to park whole gangs, so `shrink.along` is the dimension that `gang` names, or the innermost one "
     "where each rank is a gang of its own. A mesh that is a single gang cannot shrink."},
    {"E0325", "more gangs than there are",
     "`shrink.min` is the number of gangs below which the job fails; the mesh has at least as many."},
    {"E0327", "too few spares for standby gangs",
     "A standby gang waits on as many spares as a gang of its mesh has hosts; `spares` must hold all of them."},
    {"E0328", "standby gangs of a mesh that shares its hosts",
     "A standby gang takes over whole hosts, so none of a gang's may hold ranks of another gang or of another mesh."},
    {"E0329", "standby gangs with GPUs on virtual hosts",
     "Virtual hosts share the GPUs of this machine, and which of them a gang has goes by its place, which a standby "
     "gang "
     "does not have yet."},
    {"E0330", "a standby gang does not know its place",
     "The words of `program`, `wrap` and `workdir` are fixed when a standby gang is started, before it has a place. "
     "What "
     "depends on that belongs into `env`, which gate() returns."},
    {"E0331", "too few hosts for copies of checkpoints",
     "A copy is worth something on a host that is not lost together with what it is a copy of, so hosts of the gang's "
     "own keep none: `checkpoints.peer` is at most the number of hosts that the job needs and of its spares, without "
     "those of the widest gang."},
    {"E0332", "copies of checkpoints need memory",
     "`checkpoints.peer` says on how many other hosts a checkpoint is kept, and `checkpoints.memory` how much of each "
     "host's memory may go into that. Either of them alone keeps nothing."},
    {"E0333", "too many gangs or ranks for checkpoints in memory",
     "Each host is told which steps of each gang still count, and a message holds 10,000 gangs. Sidecars are not "
     "counted: nothing of theirs is kept. What a rank commits says which hosts have its checkpoint, and the journal "
     "has room for that of 16,384 ranks."},
    {"E0334", "a plugin cannot be read",
     "The plugins of actors and controllers are hashed before the job begins, so that each rank loads the same code, "
     "also after a restart. Build it first, and write its path as the spec's folder, or the workspace, has it."},
    {"E0335", "the controller's name is taken",
     "A controller is the one rank of a mesh of that name, which is how status and logs call it."},
    {"E0336", "what a mesh with idle slots cannot have",
     "Each slot of a mesh with `idle: true` is a gang of its own, which starts when a process claims it: it has no "
     "larger gangs, nobody stands by for it, and it never decides the result. `claims` says what may come with a "
     "claim, and "
     "means nothing without idle slots."},
    {"E0401", "this build cannot do that yet",
     "The key is part of the spec and correctly written, but this build does not do what it asks for. It is refused "
     "rather "
     "than ignored."},
    {"E0501", "not exactly one time of a fault",
     "Each fault of a scenario has exactly one of `at`, `every`, `on_step` and `on_event`: once, again and again, at a "
     "step of the program, or when something happens to the job."},
    {"E0502", "not a key of this fault",
     "`for` belongs to faults that last, `processes`, `percent` and `size` to those that need them, `after` and "
     "`times` "
     "to `on_event`. `monarch drill --faults` says which are which."},
    {"E0503", "a target of the wrong kind",
     "Faults of a rank take `mesh`, `at`, `rank` and `gang`, those of a host take `host`, those of the supervisor "
     "none."},
    {"E0504", "a target that names nothing",
     "The target means a mesh, a gang, a rank or a host that the job of the scenario does not have."},
    {"E0505", "a bound that cannot be met",
     "The bound is about faults that the scenario does not have, so that there would be no evidence, or it is shorter "
     "than what the spec's own times take: a lost host is given up after `lost_after`, and its ranks may be started "
     "elsewhere once its `lease` is over."},
    {"E0506", "control is too short",
     "What happens without a fault is what a drill compares with. In less than ten heartbeats nothing can be told of "
     "false suspicions."},
    {"E0507", "more lost hosts than there are",
     "Each fault that costs a host needs another one to take its place: a spare, a host of the pool that no rank "
     "needs, "
     "or one that came back. `guard.min_spares` cannot be more than the job's spares."},
    {"E0508", "longer than there is time",
     "All of a drill must fit into the job's `time_limit`, and each fault into `duration`."},
    {"E0509", "a job that cannot be drilled",
     "Faults are injected from where the supervisor lives. With `supervisor: {on: first}` that is a host of the job, "
     "from which the others are not reached."},
    {"E0510", "not a pattern with one group",
     "`expect.same_output` is a regular expression, as `monarch logs --grep` takes one, with one group in parentheses: "
     "what that takes from the output is compared."},
    {"E0511", "no such spec", "`job` names the spec of the job that is drilled, from the folder of the scenario."},
    {"E0901", "no such command",
     "The first word after `monarch` names a command, in full; `monarch --help` lists them. `monarch supervise` is "
     "started by others."},
    {"E0902", "no such flag",
     "The command does not have this flag. Flags follow the command and are written in full: `--tim` is not taken for "
     "`--timeout`. Flags of the program belong after `--`, or into the spec."},
    {"E0903", "a command is not used as it should be",
     "An argument is missing or too many, a flag lacks its value, has one that it does not take, or is given twice."},
    {"E0904", "a flag with a wrong value",
     "The value of the flag is not what it takes, or names something that the job does not have. Durations have a unit "
     "(`30s`), ranks are written as `3,7-9`."},
    {"E0905", "a variable with a wrong name or value",
     "Each flag is also a variable: MONARCH_OPT_TIMEOUT=5m is `--timeout 5m`. One that belongs to no flag, or a switch "
     "that is set to neither true nor false, is refused: ignored in silence, it would do harm later."},
    {"E0906", "no such job",
     "JOB is an id, a unique beginning of one, the name of the only such job that is live, `last`, or left out if one "
     "job is live. What fits no job of yours, or more than one, is refused."},
    {"E0907", "the folder of the state cannot be used",
     "Jobs are kept in $MONARCH_STATE_DIR, else $XDG_STATE_HOME/monarch, else ~/.local/state/monarch. The path must be "
     "absolute, the folder yours alone (mode 0700), and its file system writable."},
    {"E0908", "monarch itself failed",
     "A part of the installation is missing, the system refused something that is always granted, or the supervisor "
     "could not be followed. The message has what the system answered. Exit code 70."},
    {"E0909", "the job could not be started",
     "The journal could not be written, another supervisor holds the job, or hosts could not be started in time. "
     "`supervisor.log` in the job's folder has the details. Exit code 69, 74 or 75."},
    {"E0910", "a job on another machine that cannot be looked at",
     "The supervisor of this job lives on one of its hosts, and the command that looks at it runs there, over SSH. The "
     "message has the host, the phase and what was answered; the job itself goes on meanwhile. Exit code 69; 3 where "
     "the "
     "host's key was refused; 70 where it said what no monarch says."},
    {"E0911", "what the spec names cannot be used",
     "The spec is right in itself; a file that it names, such as launch.ssh.config, a port of control.ports or an "
     "allocation of Slurm's that is over is not what a job can begin with. Exit code 2."},
    {"E0920", "not a selector",
     "Ranks are selected by --mesh, --at, --rank, --host and --generation. Coordinates are written as "
     "`--at replica=2,gpu=0:4`, ranks and generations as `3,7-9`, hosts as `node[05-07]`."},
    {"E0921", "a selector names what the job does not have",
     "A mesh, a dimension, an index, a rank or a host of that name is not part of the job. `monarch status` and "
     "`monarch plan` show what is."},
    {"E0922", "ranks of several meshes",
     "`--rank` counts within one mesh: in a job with several, `--mesh` says which, or `--at` with a dimension that "
     "only "
     "one of them has."},
    {"E0923", "nothing is selected",
     "The selector is right, but nothing that is there now is meant by it: no such generation, or no process."},
    {"E0924", "no such signal",
     "A signal is written by its name, with or without SIG, or by its number: USR1, SIGUSR1, 10."},
    {"E0925", "a job that cannot be removed yet",
     "`monarch rm` takes away what is kept of a job that is over. One that lives, that is about to be started again by "
     "its "
     "guard, or that may live on another machine is left as it is: `monarch stop` it first, or ask that machine."},
    {"E0926", "a job that could not be removed",
     "Something of the job stands in the way: a process that SIGKILL does not end, a file that may not be deleted, "
     "another "
     "file system that is mounted in its folder. The message names it; what was removed stays removed, and `monarch "
     "rm` "
     "goes on from there."},
    {"E0927", "no completion for this shell", "Command lines can be completed in bash, zsh and fish."},
    {"E0928", "the supervisor does not do that",
     "What was asked of a job's recovery cannot be done as it is now: nothing that is meant runs, the job is stopping, "
     "or "
     "no other host is left that could hold the ranks of a host that is drained with --now, or no replacement is left "
     "in the budget. The message says which."},
    {"E0929", "no stack could be taken",
     "`monarch stacks` lets a debugger look at the ranks on each of their hosts: py-spy, eu-stack (elfutils) or gdb, "
     "found in the "
     "PATH there. It needs one, the kernel's leave (kernel.yama.ptrace_scope at most 1; in a container "
     "CAP_SYS_PTRACE), and time: "
     "`--timeout`. `monarch doctor` with the spec says where the kernel forbids it."},
    {"E0930", "nothing to explain",
     "`monarch explain` takes the path of a key, as in `supervision.lease` or `meshes.trainer.gang`, or the id of an "
     "error. With a spec, what the path names must be there."},
    {"E0931", "a file cannot be written",
     "`monarch init` makes a new file and overwrites none. The message has what the system answered."},
    {"E0932", "a command line that cannot be split",
     "`monarch init --from` takes one command as a shell would be given it. Quotes and backslashes mean what they mean "
     "there, but nothing is expanded, run, redirected or looked up: `$(...)`, `|`, `*.py` and `~` are refused unless "
     "they are quoted."},
    {"E0933", "a command line that cannot be translated",
     "The launcher, one of its flags, or a value of one is not known here, or asks for what no spec can say, such as a "
     "different number of ranks on each host. Flags that merely have no counterpart are no error: they are named, and "
     "stand in a comment of the spec."},
    {"E0935", "Slurm did not take the job",
     "A spec with `launch: slurm` runs on the nodes of a job of Slurm's. Inside of one (salloc, a script of sbatch) "
     "its nodes are taken; "
     "outside of any, a script is given to sbatch, which said no, or is not there. `monarch up --print` shows the "
     "script."},
    {"E0936", "stdout cannot be written",
     "What the command printed is lost, or a part of it: the disk is full, a quota is spent, or the file server said "
     "no. What the command did is done. Exit code 74; `run` and `attach` say it as soon as they see it, and exit as "
     "the job does: what ranks wrote is in the logs."},
};

}  // namespace

std::span<const ErrorDoc> all_errors() { return kErrors; }

const ErrorDoc* find_error(std::string_view id) {
  const auto* found =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorDoc& e) { return e.id == id; });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace monarch

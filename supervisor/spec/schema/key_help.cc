// Examples and paragraphs of the keys of a spec, for `explain`, the schema for editors, the manual page and `init`.
// Those of a launcher's keys are in its folder.

#include "supervisor/spec/schema/schema_rows.h"

namespace monarch::schema_rows {

namespace {

constexpr KeyHelp kHelp[] = {
    {"version", "1"},
    {"job", "qwen3"},
    {"launch", "{local: {hosts: 4}}",
     "The pool of hosts comes from here. The meshes take its first hosts in the order in which they are written; the "
     "next "
     "`spares` are kept connected; the rest is left alone until a host must be replaced."},
    {"network", "{interface: ib0}"},
    {"network.interface", "ib0",
     "Each host's address on it is what other hosts get as MASTER_ADDR and `$(mesh.M.host)`; ranks get its name as "
     "NCCL_SOCKET_IFNAME and "
     "GLOO_SOCKET_IFNAME unless `env` says otherwise. A host without it does not start, says which it has, and is "
     "replaced like any other. By default it is the "
     "address by which a host reaches the supervisor, and the libraries look for an interface themselves."},
    {"network.ports", "20000-20999",
     "MASTER_PORT and the ports of a mesh that are `auto` are out of these, on each host, in turn. Ports that a mesh "
     "fixes are left out."},
    {"control", "{via: ssh}"},
    {"control.address", "10.0.0.1"},
    {"control.ports", "21000-21001"},
    {"control.via", "ssh",
     "Each worker dials a port of its own host's loopback, which sshd there leads back through the session that "
     "launched it; the session "
     "then stays open, one for each host of the job, beyond `launch.ssh.parallel`. It needs an sshd that allows it "
     "(AllowTcpForwarding). A session that breaks is opened again with the same ports; a host that is not heard for "
     "`lost_after` is "
     "lost as ever. Where the connection has less than some 3 Mbit/s, much output can delay heartbeats. Hosts behind "
     "launch.ssh.jump are reached so where neither this nor control.address is written."},
    {"supervisor", "{on: first}"},
    {"supervisor.on", "first",
     "With `first`, for `launch: ssh`, the supervisor lives on the first host of the pool, and hosts call it there: "
     "this "
     "machine may be where nothing reaches it, and may go once the job runs. What `monarch` needs is copied there, "
     "beside the workers' cache; that host needs the C library of this one or a later one. Hosts are launched by this "
     "machine, which has the keys, during the start alone: a host that does not start is replaced as ever, one that is "
     "lost later is not. Ranks begin with the login environment of their host; `env_pass` and `$(env.NAME)` are of "
     "this "
     "shell. No other host can take the first one's place: if it cannot be reached, the job does not start. "
     "Who has the first host has the job: it runs what it likes as its user on each host of the pool, has the values "
     "of "
     "`env_pass` and what ranks write, and what you are shown is what it says. It gets no key and no file of this "
     "machine but those of the spec and the workspace, and reaches no machine beside the pool. What launches for it "
     "here, `monarch launch-for`, leaves once the job runs and no host is being started, and when its connection ends; "
     "a first host that means harm keeps it, and the way to the pool, for as long as that connection stands. End that "
     "process to take it back."},
    {"meshes", "{trainer: {dims: {host: 2, gpu: 8}, program: [python3, train.py]}}",
     "A mesh is an array of ranks that run the same program. A job has at least one; each gets hosts of its own, "
     "unless it "
     "says `hosts: {like: MESH}`."},
    {"meshes.*.dims", "{replica: 2, host: 4, gpu: 8}",
     "The first dimension is the outermost. MONARCH_RANK is the row-major index over all of them; MONARCH_RANK_GPU and "
     "MONARCH_SIZE_GPU tell the coordinate and the size of the dimension `gpu`. `auto` is the number of GPUs that a "
     "virtual host has: those of this machine, divided by the hosts that the meshes need; the job keeps that number."},
    {"meshes.*.per_host", "[gpu]",
     "Ranks of one host are neighbours, so these are the last dimensions, in the order of `dims`. `[]` puts every rank "
     "on a "
     "host of its own."},
    {"meshes.*.gang", "replica",
     "One failure in a gang stops and restarts all of it, and no other gang. `all` is what torchrun does: a process "
     "group "
     "cannot outlive one of its ranks. `each` fits ranks that do not talk to each other. RANK, WORLD_SIZE and "
     "MASTER_ADDR "
     "are those of the gang."},
    {"meshes.*.hosts", "{like: trainer}"},
    {"meshes.*.hosts.like", "trainer"},
    {"meshes.*.program", "[python3, train.py, --epochs, \"3\"]",
     "The first entry is the program, searched in PATH unless it has a slash; each further one is a single argument. "
     "No "
     "shell looks at them: for one, write [/bin/sh, -c, 'a | b']. One that is not UTF-8 is written in base64, as "
     "!!binary Y2Fm6Q==."},
    {"meshes.*.actors", "{policy: {plugin: ./libpolicy.so, class: Policy, args: {lr: 0.1}}}",
     "Each rank has one of each, in a process that loads the plugins, or runs `python3 -m monarch.rank`, and is ready "
     "once all are made; those of one mesh are all of plugins or all of Python. A gang is one rank unless `gang` says "
     "more; in a job with a `controller` the mesh is a sidecar: the controller decides about the "
     "end. {}: ranks that may be called by nobody. See monarch-actors(7)."},
    {"meshes.*.actors.*.plugin", "./libpolicy.so",
     "A relative path starts from the workspace, or from the spec's folder where there is none. Its sha256 is written "
     "down when the job begins, and a rank loads nothing else later. A file of 1GiB at most, which belongs to you or "
     "root, and to which nobody else may write: neither everybody nor a group, but for one that is yours alone."},
    {"meshes.*.actors.*.python", "scorer.py",
     "A class of it that is a monarch.actor.Actor. A relative path starts where that of a plugin does."},
    {"meshes.*.actors.*.module", "pkg.scorer", "Imported by the ranks' python3, as its sys.path has it."},
    {"meshes.*.actors.*.class", "Policy"},
    {"meshes.*.actors.*.args", "{lr: 0.1}"},
    {"meshes.*.actors.*.sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"meshes.*.idle", "true",
     "Unclaimed slots cost no process, port, GPU or budget, and are ready. A process of the job claims some of them "
     "(`spawn_procs` in Python, a wish at the door: monarch-post(7)), for itself: they are let go when it ends. Each "
     "is a gang of its own; one that ends before has failed, with 0 too: it is started again as `supervision.restart` "
     "says, or that is told to who has it, and decides nothing. A job of idle slots alone lasts until it is stopped."},
    {"meshes.*.claims", "{env: [HF_HOME, \"WANDB_*\"]}"},
    {"meshes.*.claims.env", "[HF_HOME, \"WANDB_*\"]",
     "Which variables a claim may set for slots of other hosts than that of its process. CUDA_VISIBLE_DEVICES may "
     "always come along, and for slots of its own host a process may set all."},
    {"meshes.*.trust", "job",
     "Values go as pickle between processes of one host alone: who unpickles what another sends runs his code. With "
     "`job` they do so between the hosts of the job, too, and a claim may name a program and variables for slots of "
     "any host; then each rank of the mesh is in the hands of whoever has one host of the job."},
    {"meshes.*.depends_on", "[server]"},
    {"meshes.*.sidecar", "true",
     "A sidecar is up before the other meshes and stopped after them. The job does not wait for its end, and its "
     "failure is "
     "not the job's."},
    {"meshes.*.env", "{NCCL_DEBUG: WARN}",
     "They come on top of the environment of the launcher and of `setup`. What monarch itself tells each rank (RANK, "
     "MASTER_ADDR, MONARCH_...) cannot be set. $(self.rank), $(self.local_rank) and $(self.node_rank) (as LOCAL_RANK "
     "and NODE_RANK), "
     "$(self.host), $(self.host_name), $(self.port.NAME), $(mesh.MESH.host), $(mesh.MESH.host_name), "
     "$(mesh.MESH.port.NAME) and $(env.NAME) are "
     "expanded here and in `program`, `wrap` and `workdir`; what is said of a mesh is said of its rank 0, `host` is a "
     "numeric address, and any other $(...) is left alone. CUDA_VISIBLE_DEVICES written here wins over `resources`."},
    {"meshes.*.env_pass", "[HF_TOKEN, \"WANDB_*\"]",
     "Only names are written down anywhere; the values are handed to the ranks and never to the journal or a log."},
    {"meshes.*.workdir", "runs/a",
     "With a `workspace` it is counted from that, and lies in the tree that each host has of it."},
    {"meshes.*.setup", "\"module load cuda; . venv/bin/activate\"",
     "Run by the first rank of the mesh that may start on a host, once per host and mesh, in its working directory; "
     "the "
     "others wait for it and, as restarts do, begin with what it exported. Nothing but exported variables and "
     "functions is "
     "kept of it: no directory, limit or alias. It knows MONARCH_JOB_ID, MONARCH_MESH and MONARCH_HOST, but neither a "
     "rank nor "
     "`env`, which comes on top of it; nothing in it is expanded but by bash. A code other than 0 is the job's, and is "
     "not "
     "tried again; it counts against `start_timeout`. What it leaves running ends with the rank that ran it. `exec "
     "PROGRAM` "
     "in it is an error, since nobody is left to tell what it exported, and so is a text of more than some 128 KiB."},
    {"meshes.*.wrap", "[apptainer, exec, --nv, image.sif]",
     "A program and its arguments, which starts the rank's: `[numactl, -l]` with `program: [python3, train.py]` runs "
     "numactl -l python3 train.py. Both are one rank, and a signal goes to both. `monarch doctor SPEC` looks whether "
     "it is "
     "there."},
    {"meshes.*.ports", "{http: auto}",
     "`auto` gives each rank a port of its own, which its host keeps free until the program is executed. A number is "
     "that "
     "port, for one rank on a machine; where another program or job has it another host takes its place, or the job "
     "does not start, and says which. The "
     "rank "
     "has MONARCH_PORT_HTTP; $(self.port.http) in `program` and `env` is its own, $(mesh.MESH.port.http) that of rank "
     "0 of "
     "a mesh, and `ready: {tcp: http}` waits until somebody listens."},
    {"meshes.*.resources", "{gpus: 1, cpus: 8, bind: numa}",
     "Of each rank. Ranks and meshes on one host get different ones, in order, and virtual hosts divide what their "
     "machine "
     "has. A host that has too few is replaced by one that is left; without one the job ends with exit code 69, and "
     "says how many are missing; so does `monarch "
     "doctor "
     "SPEC`, beforehand."},
    {"meshes.*.resources.gpus", "1",
     "The ranks find them in CUDA_VISIBLE_DEVICES; CUDA_DEVICE_ORDER is PCI_BUS_ID, so that numbers are those of "
     "nvidia-smi. "
     "Where CUDA_VISIBLE_DEVICES is set already, it says which there are. A GPU is given to one job of a user at a "
     "time: a "
     "second one does not start, and says which job has it. 0 hides all GPUs; none leaves the variable as it is."},
    {"meshes.*.resources.visible", "rank",
     "`gang` makes cuda:$LOCAL_RANK right, as torchrun does. `rank` is right where one rank counts its own from 0; one "
     "that "
     "has several sees its own alone in any case."},
    {"meshes.*.resources.cpus", "8",
     "Processors as the kernel counts them, of those that the job may use. They are only counted, unless `bind: core` "
     "binds "
     "each rank to its own."},
    {"meshes.*.resources.bind", "numa",
     "`core`: each rank runs on its own `cpus` processors, neighbours in the same node, package and core first. "
     "`numa`: on "
     "the NUMA node of its first GPU, or else of its share of the processors. Memory follows by first touch."},
    {"meshes.*.ready", "notify",
     "`exec`: when the program has been started. `notify`: when it says READY=1 over NOTIFY_SOCKET, as services of "
     "systemd "
     "do. {tcp: http}: when the port called http of `ports` accepts a connection."},
    {"meshes.*.ready.tcp", "http"},
    {"meshes.*.stop", "{signal: INT, grace: 2m}"},
    {"meshes.*.stop.signal", "INT"},
    {"meshes.*.stop.to", "group",
     "`rank`: its own process, as with torchrun, so that data loaders live until it has saved. `group`: its process "
     "group. "
     "`auto`: its own process, or its group where that is a shell that waits for a child. It holds for `stop.signal`, "
     "for "
     "what `run` passes on and for `monarch signal`, where `--to` wins."},
    {"meshes.*.stop.grace", "2m"},
    {"meshes.*.stop.after_failure", "10s",
     "Survivors of a failed gang have nothing left to save as a rule: they are killed at once, and the first cause is "
     "known "
     "sooner."},
    {"meshes.*.standby", "{gangs: 1}",
     "For programs that call gate() of monarch_rank.py (monarch-rank(7)) once they have imported and loaded what needs "
     "no "
     "place. A gang that has to be started again gets the hosts and the waiting processes of a standby gang, so that "
     "imports and loading cost it nothing; then another standby is started, where hosts are free. Each waits on as "
     "many "
     "spares as a gang has hosts, and has their GPUs to itself meanwhile, as a gang would: another job is refused "
     "them. A "
     "standby that fails, or whose GPUs another job has, is started again, with growing waits, and never ends the "
     "job."},
    {"meshes.*.standby.gangs", "1"},
    {"meshes.*.supervision", "{lease: 10s}"},
    {"controller", "{plugin: ./libdrive.so, entry: drive, args: {steps: 100}}",
     "It is the one rank of a mesh `controller`, on the first host of the first mesh. It begins once the ranks of all "
     "actors are ready, its exit code is the job's, and all else is stopped then. It is not started again unless "
     "`supervision.restart.max` says so."},
    {"controller.plugin", "./libdrive.so"},
    {"controller.entry", "drive"},
    {"controller.args", "{steps: 100}"},
    {"controller.sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"controller.program", "[python3, drive.py]",
     "Any program may call: MONARCH_POST names the door (monarch-post(7))."},
    {"controller.env", "{STEPS: \"100\"}"},
    {"controller.workdir", "src"},
    {"controller.supervision", "{restart: {max: 1}}"},
    {"workspace", "{path: ., exclude: [\"*.ckpt\"]}",
     "It is read once, when the job starts, and all its hosts get what was read then, also those that take another's "
     "place later; what is edited meanwhile is the next job's. Only contents that a host lacks are sent, and its ranks "
     "start in a copy of their own, which is removed with the job. Virtual hosts use the folder where it is."},
    {"workspace.path", "src",
     "Counted from the spec's folder; `~/` is the home of whoever starts the job. Sockets, devices, and links that "
     "lead out of the folder cannot be copied, and are left out by name."},
    {"workspace.exclude", "[\"*.ckpt\", data]",
     "What .gitignore files in the folder and below leave out is left out, as git reads them, and so are every .git "
     "and .ssh; "
     ".monarchignore files say the same afterwards, and may take in again with `!` what git leaves out. This list "
     "counts before both, from the workspace's folder."},
    {"workspace.include", "[server.pem]",
     "What may hold a secret is left out, and named once: .env and .env.* (but .env.example, .env.sample and "
     ".env.template), .netrc, _netrc, .npmrc, .pypirc, .pgpass, .vault-token, .git-credentials, .aws, .kube, "
     ".docker/config.json, files named *.pem or id_* with a private key in them, and files of any name that begin "
     "with one. This list takes it in again; what .gitignore, "
     ".monarchignore or `exclude` "
     "leave out stays out, and so does every .ssh."},
    {"workspace.max_size", "100MiB", "The error names the ten largest files. Nothing is copied to virtual hosts."},
    {"storage", "[{path: /data/ckpt, shared: true}]"},
    {"storage.[].path", "/data/ckpt"},
    {"storage.[].shared", "true"},
    {"services", "{policy: {mesh: trainer, actor: policy}}"},
    {"services.*.mesh", "trainer"},
    {"services.*.actor", "policy"},
    {"services.*.route", "session"},
    {"services.*.max_inflight", "32"},
    {"services.*.session_ttl", "1h"},
    {"stores", "{weights: {hosts: {like: trainer}, memory: 64GiB, replication: 2}}"},
    {"stores.*.hosts", "{like: trainer}"},
    {"stores.*.hosts.like", "trainer"},
    {"stores.*.memory", "64GiB"},
    {"stores.*.replication", "2"},
    {"stores.*.keep_versions", "3"},
    {"checkpoints", "{peer: 2, memory: 8GiB}",
     "A rank hands its checkpoint over by save() of monarch_rank.py (monarch-rank(7)), which also commits it. load() "
     "of the next generation finds that of the step from which the gang goes on, also on a host that had no rank "
     "before, and without storage that hosts share. A process beside each host's daemon keeps them: they outlive the "
     "rank and the daemon, not the host. As many hosts may be lost at once as there are copies."},
    {"checkpoints.peer", "2",
     "Hosts that hold no rank of the gang keep them, so a job of one gang needs spares. What a lost host kept is not "
     "copied anew; the next step that is saved has all its copies again."},
    {"checkpoints.memory", "8GiB",
     "Three steps of a rank may be there at a time: the newest that all ranks of its gang have, the one before it, "
     "and the one that is being saved. A host has them of its own ranks and of those that it keeps copies for: with "
     "two copies that is nine times what its ranks save. Where a checkpoint does not fit, steps before the newest are "
     "given up, and if that is not enough save() says so; but no host's copies keep others from an equal part of it."},
    {"start_timeout", "10m",
     "A host on which no worker has started 20 seconds before its end, or at half of it if that is later, is given up "
     "for another one, where there is one."},
    {"time_limit", "4h"},
    {"stdin", "\"0\"",
     "As `mpirun` and `srun` do it by themselves: `run` reads its own standard input and gives it to this rank, as "
     "fast as "
     "the rank reads, and then its end. Without it `run` reads nothing, and ranks have /dev/null. A rank that is "
     "started "
     "again goes on where the one before it was. Where nobody gives it, as after `up`, ranks read its end."},
    {"lifetime", "{idle: 1h}"},
    {"lifetime.idle", "1h"},
    {"lifetime.max", "3d"},
    {"logs", "{max_size: 100MiB}"},
    {"logs.max_size", "100MiB"},
    {"logs.at_limit", "rotate"},
    {"tensors", "{transports: [shm, verbs]}"},
    {"tensors.transports", "[tcp]"},
    {"tensors.pin", "false"},
    {"metrics", "127.0.0.1:9464"},
    {"on_event", "[[notify-send, monarch]]"},
    {"drills", "{allow: true}"},
    {"drills.allow", "true"},
    {"takeover", "local"},
    {"supervision", "{heartbeat: 2s, suspect_after: 6s, lost_after: 10s, lease: 12s}",
     "Four times make one chain: heartbeat < suspect_after < lost_after < lease. A mesh may have its own "
     "`supervision`; what "
     "it leaves out is taken from the top level."},
    {"supervision.heartbeat", "500ms"},
    {"supervision.suspect_after", "4s",
     "Nothing is killed on suspicion: it ends with the next heartbeat. A host whose heartbeats have come regularly "
     "is suspected sooner: as soon as the pause is one that it would make by chance once in a hundred million, and "
     "after two heartbeats at the earliest."},
    {"supervision.lost_after", "5500ms",
     "A supervisor that is slow itself, or that was stopped, gives every host more time, 30s at most. When two hosts "
     "fall silent together, or 40 % of all where that is more, nobody is given up for twice the lease: of one, two or "
     "three hosts, one that falls silent alone is lost as ever."},
    {"supervision.lease", "10s",
     "Each answer to a heartbeat renews the lease, counted from when the heartbeat was sent. At its end a host does "
     "with its "
     "ranks what `orphan` says, without being told: so a host that was cut off can be replaced, and no rank ever runs "
     "twice."},
    {"supervision.hang", "{action: restart, phases: {step: 5m}}"},
    {"supervision.hang.action", "restart",
     "A restart follows only where the time of the phase is written in figures, or where a rank was stopped by a "
     "signal "
     "(3s), frozen (5s) or in one uninterruptible wait (10s); what is `auto` is reported. A rank that a debugger holds "
     "is "
     "never killed, nor is its gang, and neither is one that `monarch signal STOP` or `monarch hold` stopped."},
    {"supervision.hang.phases", "{init: 20m, step: 5m}",
     "A deadline arms when a rank first reports a step or a phase. A program that never does has none. It is the time "
     "without a word of the rank, WATCHDOG=1 included. auto: ten times the longest that was seen, 2m at least; before "
     "any "
     "was seen, what `init` has."},
    {"supervision.hang.phases.init", "20m"},
    {"supervision.hang.phases.step", "5m"},
    {"supervision.hang.phases.checkpoint", "1h"},
    {"supervision.restart", "{max: 8, window: 1h}"},
    {"supervision.restart.max", "8", "A failure counts while it is younger than `window` and no progress came since."},
    {"supervision.restart.window", "1h"},
    {"supervision.restart.backoff", "2s"},
    {"supervision.restart.backoff_max", "1m"},
    {"supervision.restart.jitter", "0.5"},
    {"supervision.reallocate", "{max: 0}"},
    {"supervision.reallocate.max", "2"},
    {"supervision.reallocate.window", "4h"},
    {"supervision.shrink", "{along: replica, min: 2}"},
    {"supervision.shrink.along", "replica"},
    {"supervision.shrink.min", "2"},
    {"supervision.shrink.regrow", "false"},
    {"supervision.fatal_exit_codes", "[2, 3, 126, 127]"},
    {"supervision.on_peer_lost", "{signal: USR1}"},
    {"supervision.on_peer_lost.signal", "USR1"},
    {"supervision.orphan", "stop",
     "`hold` freezes the ranks and kills them after `orphan_ttl`; a host that is heard again before that goes on as if "
     "nothing had been. `run` leaves them alone, and needs `reallocate: {max: 0}`: nobody may take their place "
     "meanwhile."},
    {"supervision.orphan_ttl", "2m"},
};

}  // namespace

std::span<const KeyHelp> help() { return kHelp; }

}  // namespace monarch::schema_rows

#!/usr/bin/env bash
# A whole site on this one machine: three NATS servers, two of each central stage
# and three agents, each host in a network namespace of its own, with services under
# load on the agents' hosts, one of them on two of these. See docs/cluster.md.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/examples/cluster.sh [--trimtab FILE] [--nats-server FILE] [--dir DIR] [--for SECONDS]

Starts three NATS servers (n1 to n3), two hosts with a collector, an analyzer, a
planner and a console each (c1, c2), and three hosts with an agent each (h1 to h3),
in network namespaces of this machine. The service checkout runs on h1 and on h2,
search on h1 too, reports on h3, each in a cgroup of its own and under load. Prints
where the console is and what state each process has, until Ctrl-C; then nothing is
left.

  --trimtab FILE      the program; default: bin/trimtab of this checkout (make build)
  --nats-server FILE  default: nats-server in PATH, else one built from the module
  --dir DIR           where files go: it must not exist; default: a temporary directory
  --for SECONDS       end after that time; default: at Ctrl-C
  --help              this text

It needs root, ip and nsenter, and a cgroup hierarchy with the cpu controller.

Example: make build && sudo deploy/examples/cluster.sh
         then open the console at the address that it prints; cut a host off with
         ip link set tt0-h1 down (the names are in what it prints)
END
}

trimtab='' nats='' dir='' seconds=''
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --trimtab | --nats-server | --dir | --for)
      [ $# -gt 1 ] || { echo "cluster.sh: $1 needs a value; --help shows an example" >&2; exit 1; }
      case $1 in --trimtab) trimtab=$2 ;; --nats-server) nats=$2 ;; --dir) dir=$2 ;; --for) seconds=$2 ;; esac
      shift 2 ;;
    *) echo "cluster.sh: unknown argument $1; --help shows what there is" >&2; exit 1 ;;
  esac
done

here=$(cd "$(dirname "$0")/../.." && pwd)
missing=()
[ "$(id -u)" -eq 0 ] || missing+=("root: network namespaces and cgroups are made")
for tool in ip nsenter setsid curl awk; do
  command -v $tool >/dev/null || missing+=("the program $tool")
done
: "${trimtab:=$here/bin/trimtab}"
[ -x "$trimtab" ] || missing+=("the program $trimtab: run make build, or name another with --trimtab")
if [ -z "$nats" ]; then
  nats=$(command -v nats-server || true)
  [ -n "$nats" ] || command -v go >/dev/null || missing+=("nats-server, or go to build it")
fi
[ -z "$nats" ] || [ -x "$nats" ] || missing+=("the program $nats")
[ -z "$dir" ] || [ ! -e "$dir" ] || missing+=("a directory $dir that is not there yet")
cpu='' accounting=''
for d in /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup; do
  if [ -e $d/cpu.cfs_quota_us ] || grep -qsw cpu $d/cgroup.subtree_control; then cpu=$d; break; fi
done
[ -n "$cpu" ] || missing+=("a cgroup hierarchy with the cpu controller below /sys/fs/cgroup")
if [ -e /sys/fs/cgroup/cpuacct ] && ! [ "$cpu" -ef /sys/fs/cgroup/cpuacct ]; then accounting=/sys/fs/cgroup/cpuacct; fi
if [ ${#missing[@]} -gt 0 ]; then
  printf 'cluster.sh: missing: %s\n' "${missing[@]}" >&2
  exit 1
fi

# Names and addresses that no other run of this script has.
for run in $(seq 0 99) none; do
  [ "$run" != none ] || { echo "cluster.sh: a hundred of these run already" >&2; exit 1; }
  if ip link add "tt$run" type bridge 2>/dev/null; then break; fi
done
net=10.231.$run group=trimtab-cluster-$run
done='' order=()
declare -A pids=()

# stop ends processes by name and waits for each, 20 s, before it kills.
stop() {
  local name i
  for name in "$@"; do kill -TERM "${pids[$name]}" 2>/dev/null || true; done
  for name in "$@"; do
    for i in $(seq 200); do kill -0 "${pids[$name]}" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "${pids[$name]}" 2>/dev/null || true
    unset "pids[$name]"
  done
}

# matching prints the names of the processes that begin with one of the words.
matching() {
  local word name
  for word in "$@"; do
    for name in "${!pids[@]}"; do [[ $name != "$word"* ]] || echo "$name"; done
  done
}

# empty ends what is still in a cgroup and those below it, and removes them.
empty() {
  local i
  for i in $(seq 50); do
    [ -d "$1" ] || return 0
    find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    find "$1" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    sleep 0.1
  done
  echo "cluster.sh: cannot remove $1" >&2
}

finish() {
  [ -z "$done" ] || return 0
  done=1
  trap '' INT TERM HUP
  echo "ending ..."
  set +e
  # In the order of the flow; the agents put the baselines back.
  stop $(matching load-)
  stop $(matching collector- console- agent-)
  stop $(matching planner- analyzer-)
  stop $(matching service- nats-)
  local h d
  for h in n1 n2 n3 c1 c2 h1 h2 h3; do
    # What an agent that was killed has left watches over its journal.
    ip netns pids "$group-$h" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
    # The link by itself: connections that wait for the other end keep the
    # namespace for a while, and so what is in it.
    ip link del "tt$run-$h" 2>/dev/null
    ip netns del "$group-$h" 2>/dev/null
  done
  for d in "$cpu" $accounting; do empty "$d/$group"; done
  ip link del "tt$run" 2>/dev/null
  [ -z "$dir" ] || rm -rf "$dir"
  echo "ended: no process, namespace, cgroup or file is left"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -z "$dir" ]; then dir=$(mktemp -d /tmp/trimtab-cluster-XXXXXX); else mkdir -p "$dir"; dir=$(cd "$dir" && pwd); fi
if [ -z "$nats" ]; then
  echo "building nats-server ..."
  nats=$dir/nats-server
  (cd "$here" && go build -o "$nats" github.com/nats-io/nats-server/v2)
fi

# The network: a bridge that this machine is at, too.
ip address add "$net.1/24" dev "tt$run"
ip link set "tt$run" up
declare -A address=([n1]=$net.11 [n2]=$net.12 [n3]=$net.13 [c1]=$net.21 [c2]=$net.22 [h1]=$net.31 [h2]=$net.32 [h3]=$net.33)
for h in "${!address[@]}"; do
  ip netns add "$group-$h"
  ip link add "tt$run-$h" type veth peer name eth0 netns "$group-$h"
  ip link set "tt$run-$h" master "tt$run" up
  ip -n "$group-$h" link set lo up
  ip -n "$group-$h" address add "${address[$h]}/24" dev eth0
  ip -n "$group-$h" link set eth0 up
done

ended() { ! kill -0 "${pids[$1]}" 2>/dev/null; }

# start NAME HOST COMMAND...: a process in the network namespace of a host. Its log
# is in the directory. A session of its own keeps Ctrl-C from it.
start() {
  local name=$1 host=$2
  shift 2
  setsid nsenter --net="/run/netns/$group-$host" "$@" >>"$dir/$name.log" 2>&1 &
  [ -n "${pids[$name]:-}" ] || order+=("$name")
  pids[$name]=$!
  disown # so that the shell is silent when it is killed
  echo "$name ${pids[$name]}" >>"$dir/pids"
}

# Services whose needs go up and down in turn, and too little for all to peak: what
# h1 has binds search and an instance of checkout, what h3 has binds reports, and the
# pool is the sum over the hosts, while that is less than what is declared here.
config() { # FILE CGROUP_ROOT
  cat >"$1" <<END
pool: {cpu: 1.2, unit: 0.01, step: 0.12}
objective: egalitarian
round: 1s
lease: 20s
guard: {max_fall: 0.5, max_lowered: 1, max_moved: 0.5, dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 1s, partitions: 1}
actuator: {cgroup_root: "$2", lock_dir: "$dir/locks", max_lowered: 1}
otlp: {grpc: "0.0.0.0:4317", http: "off"}
jaeger: {grpc: "off"}
workloads:
  - {name: checkout, slo: {latency: 200ms, fraction: 0.9}, match: {spans: {service.namespace: checkout}}, knob: {cgroup: "shop/checkout@*", cpu: {min: 0.05, max: 0.45}}, mode: act}
  - {name: search, slo: {latency: 200ms, fraction: 0.9}, match: {spans: {service.namespace: search}}, knob: {host: h1, cgroup: shop/search, cpu: {min: 0.05, max: 0.45}}, mode: act}
  - {name: reports, slo: {latency: 200ms, fraction: 0.9}, match: {spans: {service.namespace: reports}}, knob: {host: h3, cgroup: reports, cpu: {min: 0.05, max: 0.45}}, mode: act}
END
}
# A site has one file. Here the hosts have one kernel, so each has a group in place
# of its root, with as many cores as the host is to have.
declare -A cores=([h1]=0.5 [h2]=0.4 [h3]=0.2)
config "$dir/trimtab.yaml" "$cpu/$group"
for h in h1 h2 h3; do config "$dir/trimtab-$h.yaml" "$cpu/$group/$h"; done

# The site's files, at the paths that this machine has.
"$trimtab" init cluster --servers "${address[n1]},${address[n2]},${address[n3]}" --hosts h1,h2,h3 --out "$dir/site" >"$dir/init.log"
for n in n1 n2 n3; do
  sed -i "s#/etc/nats/#$dir/site/nats-${address[$n]}/#; s#/var/lib/nats#$dir/$n#" "$dir/site/nats-${address[$n]}/nats-server.conf"
  start "nats-$n" "$n" "$nats" -c "$dir/site/nats-${address[$n]}/nats-server.conf"
done

# cgroup makes one with so many cores, or without a limit: a leaf for a service, else
# one for others in it.
cgroup() { # PATH CORES [leaf]
  local d
  for d in "$cpu" $accounting; do mkdir "$d/$1"; done
  d=$cpu/$1
  # Version 2 hands the controller down by hand, to groups without a process.
  [ ! -e "$d/cgroup.subtree_control" ] || [ -n "${3:-}" ] || echo +cpu >"$d/cgroup.subtree_control"
  [ -n "$2" ] || return 0
  if [ -e "$d/cpu.max" ]; then limit "$2" ' 100000' >"$d/cpu.max"; else limit "$2" '' >"$d/cpu.cfs_quota_us"; fi
}
limit() { awk -v cores="$1" -v period="$2" 'BEGIN { print int(cores * 100000 + 0.5) period }'; }
cgroup "$group" ''
for h in h1 h2 h3; do cgroup "$group/$h" "${cores[$h]}"; done
for h in h1 h2; do cgroup "$group/$h/shop" ''; done

# A process of a role, with health and metrics where this machine can see them.
declare -A port=([console]=9600 [planner]=9601 [analyzer]=9602 [collector]=9603 [agent]=9604) web=()
role() { # ROLE HOST DIRECTORY [FLAG...]
  local role=$1 host=$2 user=$3 name=$1-$2
  shift 3
  web[$name]=${address[$host]}:${port[$role]}
  local file=$dir/trimtab.yaml
  [ ! -e "$dir/trimtab-$host.yaml" ] || file=$dir/trimtab-$host.yaml
  start "$name" "$host" "$trimtab" "$role" --config.file "$file" --nats.config.file "$dir/site/$user/nats.yaml" \
    --storage.path "$dir/$name" --web.listen-address "${web[$name]}" --web.allowed-host "${address[$host]}" "$@"
}
# The planner makes the streams, as soon as two servers have found each other. As
# systemd would, this starts it again when it has given up.
echo "waiting for the NATS servers ..."
for i in $(seq 120); do
  if [ -z "${pids[planner-c1]:-}" ] || ended planner-c1; then role planner c1 planner; fi
  [ "$(curl -s -m 2 -o "$dir/curl" -w '%{http_code}' "http://${web[planner-c1]}/-/healthy")" != 200 ] || break
  sleep 0.5
done
role planner c2 planner
for r in analyzer collector console; do
  for c in c1 c2; do role $r $c $r; done
done
# service starts one in a cgroup of its own, with load on it.
service() { # NAME HOST CGROUP CORES PORT PEAK AT
  local on=$1-$2 d c=c1
  [ "$2" != h2 ] || c=c2
  cgroup "$group/$2/$3" "$4" leaf
  start "service-$on" "$2" "$trimtab" demo-service --name "$1" --workload "$1" --listen "127.0.0.1:$5" --otlp "${address[$c]}:4317" --cpu 6ms --cpu-cov 0.5
  for d in "$cpu" $accounting; do echo "${pids[service-$on]}" >"$d/$group/$2/$3/cgroup.procs"; done
  start "load-$on" "$2" "$trimtab" demo-load "http://127.0.0.1:$5/" --base 5 --peak "$6" --day 45s --at "$7"
}
service checkout h1 shop/checkout@1 0.2 8080 40 0.3
service checkout h2 shop/checkout@2 0.2 8080 40 0.3
service search h1 shop/search 0.2 8081 50 0
service reports h3 reports 0.15 8080 30 0.6
for h in h1 h2 h3; do role agent $h agent-$h --host $h; done

echo "console: http://${web[console-c1]} and http://${web[console-c2]}"
echo "files, logs and process ids: $dir    quotas: $cpu/$group/h1 to h3"
echo "cut a host off: ip link set tt$run-h1 down    and back: ip link set tt$run-h1 up"

# state prints what a process is: ended, running, ready, or why it is not ready.
state() {
  if ended "$1"; then echo "ended"; return; fi
  [ -n "${web[$1]:-}" ] || { echo "running"; return; }
  local said
  said=$(curl -s -m 2 -w '\n%{http_code}' "http://${web[$1]}/-/ready") || true
  case ${said##*$'\n'} in
    200) echo "ready" ;;
    503) echo "not ready: $(head -n 1 <<<"$said")" ;;
    *) echo "does not answer" ;;
  esac
}

declare -A last=()
until=$((SECONDS + ${seconds:-0}))
while [ -z "$seconds" ] || [ $SECONDS -lt $until ]; do
  for name in "${order[@]}"; do
    now=$(state "$name")
    if [ "${last[$name]:-}" != "$now" ]; then printf '%s %-19s %s\n' "$(date +%T)" "$name" "$now"; fi
    last[$name]=$now
  done
  sleep 1 & wait $! || true # at once at a signal
done

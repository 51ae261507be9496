#!/bin/sh
# A weight says nothing to a CPU that nobody else wants: below a group's quota, a service with
# one thread loses half of the quota to a neighbour with a thousandth of its weight.
#
# Kernel: 6.18, cgroup v1 (cpu, cpuacct), two CPUs. With v2 the same is done; it was not tried.
# Setting: a group with a quota of 66 ms in 100 ms. In it "main", one endless loop, weight 1000
# times that of "other", which has one endless loop, too.
# Seen: main has 50% of the time that the group has, not 99.9%: it can run on one CPU only, the
# other loop takes a second CPU that is idle, and both use up the quota at the same speed. So
# weights of 1000:1, 1:1 and 1:1000 give the same. With two loops in main, which can use both
# CPUs, it has 97 to 99%; with a quota of 1 ms on "other" 98%.
#
# Needs root, and a machine that does nothing else: another program on the second CPU would be
# the neighbour of "other", and hide it. Ends in about 20 s, without a trace.
set -eu

fail() { echo "weight-below-a-quota: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "run it as root"
[ "$(nproc)" -ge 2 ] || fail "needs two CPUs"

name=weight-below-a-quota.$$
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  version=2 top=/sys/fs/cgroup/$name
  grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control || echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
else
  version=1 top=/sys/fs/cgroup/cpu/$name
  [ -e /sys/fs/cgroup/cpu/cpu.shares ] || fail "no cpu controller"
fi
all=""
clean() {
  exec 2>/dev/null
  for p in $all; do kill -9 "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  sleep 0.2
  rmdir "$top/main" "$top/other" "$top" 2>/dev/null || true
  if [ $version = 1 ]; then rmdir "/sys/fs/cgroup/cpuacct/$name/main" "/sys/fs/cgroup/cpuacct/$name/other" "/sys/fs/cgroup/cpuacct/$name" 2>/dev/null || true; fi
}
trap clean EXIT
mkdir "$top"
if [ $version = 2 ]; then
  echo +cpu > "$top/cgroup.subtree_control"
else
  [ -d "/sys/fs/cgroup/cpuacct/$name" ] || mkdir -p "/sys/fs/cgroup/cpuacct/$name"
fi
for g in main other; do
  mkdir -p "$top/$g"
  [ $version = 2 ] || mkdir -p "/sys/fs/cgroup/cpuacct/$name/$g"
done

quota() { # group, microseconds in 100 ms, or -1
  if [ $version = 2 ]; then
    q=$2; [ "$q" != -1 ] || q=max
    echo "$q 100000" > "$1/cpu.max"
  else
    echo 100000 > "$1/cpu.cfs_period_us"; echo "$2" > "$1/cpu.cfs_quota_us"
  fi
}
weight() { # group, 1 is the least
  if [ $version = 2 ]; then echo "$2" > "$1/cpu.weight"; else echo "$(($2 * 10))" > "$1/cpu.shares"; fi
}
used() { # group: microseconds of CPU
  if [ $version = 2 ]; then sed -n 's/^usage_usec //p' "$top/$1/cpu.stat"
  else echo $(($(cat "/sys/fs/cgroup/cpuacct/$name/$1/cpuacct.usage") / 1000)); fi
}
loop() { # group
  sh -c '
    for d in "$@"; do echo $$ > "$d/cgroup.procs"; done
    while :; do :; done' loop "$top/$1" $([ $version = 2 ] || echo "/sys/fs/cgroup/cpuacct/$name/$1") &
  all="$all $!"
}
share() { # per cent of what both used in 4 s that main used
  sleep 0.5
  m=$(used main) o=$(used other)
  sleep 4
  m=$(($(used main) - m)) o=$(($(used other) - o))
  echo $((100 * m / (m + o)))
}

quota "$top" 66000
loop main
loop other

weight "$top/main" 1000; weight "$top/other" 1
heavy=$(share)
weight "$top/main" 1; weight "$top/other" 1000
light=$(share)
weight "$top/main" 1000; weight "$top/other" 1
quota "$top/other" 1000
capped=$(share)
quota "$top/other" -1
loop main
both=$(share)

echo "kernel $(uname -r), cgroup v$version: one loop in main has $heavy% with 1000 times the weight," \
  "$light% with a thousandth, $capped% beside a quota of 1 ms; two loops $both%"
for v in "$heavy" "$light"; do
  [ "$v" -ge 45 ] && [ "$v" -le 56 ] || fail "expected 50%: it changed, or the machine does something else"
done
[ "$capped" -ge 95 ] && [ "$both" -ge 95 ] || fail "expected 95% or more of both"

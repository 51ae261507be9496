#!/bin/sh
# The memory that redis counts can be a quarter more than the memory that it takes, without any swap.
#
# redis 7.0, jemalloc. Setting: 1000 values of 128 KiB, no eviction, no swap.
# Seen: each value and its header are a few bytes more than jemalloc's size class of 128 KiB, so redis
# counts the next class, 160 KiB, in used_memory; the kernel counts the pages that were written, 128 KiB.
# mem_fragmentation_ratio is 0.8 to 0.9. Its manual takes a ratio below 1 for memory that was swapped
# out, and maxmemory, which is compared with used_memory, evicts while a fifth of the memory that it
# allows is never taken. So the peak of a control group with such a redis is well below maxmemory, and a
# limit by maxmemory gives away what a limit by the working set does not.
#
# Needs redis-server and redis-cli. Ends within seconds.
set -eu
dir=$(mktemp -d)
redis-server --port 0 --unixsocket "$dir/socket" --dir "$dir" --save "" --appendonly no >"$dir/log" &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
ask() { redis-cli -s "$dir/socket" "$@"; }
for _ in $(seq 100); do ask ping >/dev/null 2>&1 && break; sleep 0.1; done
ask eval "local v = string.rep('v', 131072) for i = 1, 1000 do redis.call('set', 'key:' .. i, v) end" 0 >/dev/null
sleep 2 # the figures of the allocator are refreshed once in a while
value() { ask info memory | tr -d '\r' | sed -n "s/^$1://p"; }
swapped=$(sed -n 's/^VmSwap:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status")
counted=$(value used_memory) taken=$(value used_memory_rss)
echo "redis $(ask info server | tr -d '\r' | sed -n 's/^redis_version://p'): it counts $((counted >> 20)) MiB, takes $((taken >> 20)) MiB, and has $swapped KiB swapped out; mem_fragmentation_ratio $(value mem_fragmentation_ratio)"
[ "$swapped" -eq 0 ] && [ "$taken" -lt "$counted" ] || { echo "redis-fragmentation-below-one: this redis does otherwise" >&2; exit 1; }

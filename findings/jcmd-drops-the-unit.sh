#!/bin/sh
# jcmd VM.set_flag takes "200m" for a size, and sets 200 bytes.
#
# OpenJDK 17.0.15 of Debian 12. Setting: a running JVM with a heap of 1 GiB; SoftMaxHeapSize is
# set once on the command line, then by jcmd, with the same text.
# Seen: -XX:SoftMaxHeapSize=200m is 209715200. "jcmd PID VM.set_flag SoftMaxHeapSize 200m" says
# "Command executed successfully", and the flag is 200: the unit is dropped, not refused; so is that of
# 1g, which is 1 byte, and 262144k. The collector is told to keep within a heap of nothing, and nobody is
# told. Only a plain number of bytes means the same in both.
#
# Needs java, javac and jcmd 17. Ends within seconds.
set -eu
dir=$(mktemp -d)
cat >"$dir/Sleeper.java" <<'JAVA'
public class Sleeper {
  public static void main(String[] args) throws Exception {
    System.out.println("ready");
    Thread.sleep(60_000);
  }
}
JAVA
javac -d "$dir" "$dir/Sleeper.java"
java -Xmx1g -XX:SoftMaxHeapSize=200m -cp "$dir" Sleeper >"$dir/log" &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in $(seq 100); do grep -q ready "$dir/log" && break; sleep 0.1; done
flag() { jcmd "$pid" VM.flags -all | sed -n 's/.* SoftMaxHeapSize  *= \([0-9]*\) .*/\1/p'; }
started=$(flag)
said=$(jcmd "$pid" VM.set_flag SoftMaxHeapSize 200m | tail -1)
unit=$(flag)
jcmd "$pid" VM.set_flag SoftMaxHeapSize 209715200 >/dev/null
bytes=$(flag)
echo "$(java -version 2>&1 | sed -n 2p): -XX:SoftMaxHeapSize=200m is $started; jcmd with 200m says '$said', and it is $unit; with 209715200 it is $bytes"
[ "$started" = 209715200 ] && [ "$unit" = 200 ] && [ "$bytes" = 209715200 ] || { echo "jcmd-drops-the-unit: this JDK does otherwise" >&2; exit 1; }

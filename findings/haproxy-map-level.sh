#!/bin/sh
# HAProxy lets every level of a stats socket change and clear maps and stick tables.
#
# HAProxy: 2.6.12-1+deb12u4 of Debian 12.
# Setting: three stats sockets, of the levels user, operator and admin; a map that a rule reads, and a
# stick table.
# Seen: at the level user, of which the manual says that "only non-sensitive stats can be read, and no
#   change is allowed", "set map", "add map", "clear map" and "clear table" are taken
#   without an error, and change what HAProxy does. "set maxconn server" is refused below admin.
#   Whoever reaches any stats socket can therefore lift or set what rules read from a map: its file
#   mode is the only protection.
#
# Needs python3 and haproxy (apt-get install haproxy=2.6.12-1+deb12u4). Ends in about 2 s.
set -eu
fail() { echo "haproxy-map-level: $*" >&2; exit 1; }
haproxy=$(PATH=$PATH:/usr/sbin command -v haproxy) || fail "install haproxy=2.6.12-1+deb12u4"
dir=$(mktemp -d)
pid=
clean() { [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; } || true; rm -rf "$dir"; }
trap clean EXIT
echo "key 1" > "$dir/map"
cat > "$dir/haproxy.cfg" <<CFG
global
  stats socket $dir/user mode 600 level user
  stats socket $dir/operator mode 600 level operator
  stats socket $dir/admin mode 600 level admin
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend in
  bind unix@$dir/in
  http-request deny if { str(key),map_str_int($dir/map,0) gt 5 }
  default_backend b
backend b
  stick-table type string len 8 size 10 store gpc0
  server s 127.0.0.1:9
CFG
"$haproxy" -db -f "$dir/haproxy.cfg" > "$dir/log" 2>&1 &
pid=$!
"$haproxy" -v | head -1
python3 - "$dir" <<'PY'
import socket, sys, time
dir, bad = sys.argv[1], []

def ask(level, command):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(dir + "/" + level)
    s.sendall(command.encode() + b"\n")
    out = b""
    while True:
        more = s.recv(65536)
        if not more:
            return out.decode().strip()
        out += more

def holds(what, got, want):
    print("%s: %r" % (what, got))
    if got != want:
        bad.append("%s: %r, and was %r" % (what, got, want))

def value():
    return [l.split()[1:] for l in ask("admin", "show map " + dir + "/map").split("\n") if l]

for _ in range(100):
    try:
        ask("admin", "show info")
        break
    except OSError:
        time.sleep(0.05)
for n, level in enumerate(("user", "operator")):
    holds("level of the socket", ask(level, "show cli level"), level)
    holds("set maxconn at " + level, ask(level, "set maxconn server b/s 3"), "Permission denied")
    holds("set map at " + level, ask(level, "set map %s/map key %d" % (dir, 7 + n)), "")
    holds("then the map", value(), [["key", str(7 + n)]])
holds("clear table at user", ask("user", "clear table b"), "")
holds("clear map at user", ask("user", "clear map " + dir + "/map"), "")
holds("then the map", value(), [])
if bad:
    sys.exit("haproxy-map-level: this HAProxy does otherwise:\n  " + "\n  ".join(bad))
PY

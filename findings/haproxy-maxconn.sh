#!/bin/sh
# HAProxy takes maxconn modulo 2^32, never tells minconn, and loses it; a reload keeps the socket.
#
# HAProxy: 2.6.12-1+deb12u4 of Debian 12.
# Setting: a server without a limit and one with "minconn 5 maxconn 50", set through the runtime
# API with "set maxconn server BACKEND/SERVER N", read with "show stat" (slim).
# Seen:
#   1. -5 is taken without an error and reads 4294967291, 4294967300 reads 4; 0 reads as nothing: no
#      limit. Success is an empty line.
#   2. "set server B/S maxconn" and "get maxconn" are not there.
#   3. No answer of the API has minconn. With minconn 5, the server has 5 at work while the backend
#      is idle, whatever smaller maxconn is set: 3 reads 3 and lets in 5. Once maxconn was equal to
#      minconn, they stay equal: after "50" the server, which let in 5 before, lets in 50.
#   4. "show stat NAME 4 -1" finds the first proxy of that name: where a frontend and a backend share
#      it, it lists no server.
#   5. After a reload (SIGUSR2 to the master, expose-fd listeners) the file of the socket is the same
#      one, and maxconn that of the configuration: only Pid and Start_time_sec of "show info" tell.
#
# Needs python3 and haproxy (apt-get install haproxy=2.6.12-1+deb12u4). Ends in about 10 s.
set -eu
fail() { echo "haproxy-maxconn: $*" >&2; exit 1; }
haproxy=$(PATH=$PATH:/usr/sbin command -v haproxy) || fail "install haproxy=2.6.12-1+deb12u4"
dir=$(mktemp -d)
master=
clean() { [ -z "$master" ] || { kill "$master" 2>/dev/null; wait "$master" 2>/dev/null; } || true; rm -rf "$dir"; }
trap clean EXIT
cat > "$dir/haproxy.cfg" <<CFG
global
  stats socket $dir/s mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  timeout queue 20s
  option abortonclose
frontend moving
  bind unix@$dir/moving
  default_backend idle
frontend twice
  bind unix@$dir/twice
backend twice
  server s 127.0.0.1:9
backend plain
  server s 127.0.0.1:9
backend idle
  fullconn 10000
  server s unix@$dir/upstream minconn 5 maxconn 50
CFG
"$haproxy" -W -f "$dir/haproxy.cfg" > "$dir/log" 2>&1 &
master=$!
"$haproxy" -v | head -1
python3 - "$dir" "$master" <<'PY'
import os, signal, socket, sys, threading, time
dir, master = sys.argv[1], int(sys.argv[2])

def ask(command):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(dir + "/s")
    s.sendall(command.encode() + b"\n")
    out = b""
    while True:
        more = s.recv(65536)
        if not more:
            return out.decode()
        out += more

def limit(backend):
    header, row = ask("show stat %s 4 -1" % backend).split("\n")[:2]
    return row.split(",")[header[2:].split(",").index("slim")]

def who():
    return [l for l in ask("show info").split("\n") if l.startswith(("Pid", "Start_time_sec"))]

bad = []
def holds(what, got, want):
    print("%s: %r" % (what, got))
    if got != want:
        bad.append("%s: %r, and was %r" % (what, got, want))

for _ in range(100):
    try:
        first = who()
        break
    except OSError:
        time.sleep(0.05)

for sent, want in (("-5", "4294967291"), ("4294967300", "4"), ("0", "")):
    holds("answer to " + sent, ask("set maxconn server plain/s " + sent).strip(), "")
    holds("then slim", limit("plain"), want)
holds("set server … maxconn is refused", ask("set server plain/s maxconn 3").startswith("usage: set server"), True)
holds("get maxconn is refused", ask("get maxconn").startswith("Unknown command"), True)
holds("minconn is in an answer", any("minconn" in ask(c) for c in ("show stat idle 4 -1", "show servers state idle", "show servers conn idle", "show stat typed")), False)

holds("servers of a backend with the name of a frontend", ask("show stat twice 4 -1").count("\ntwice,"), 0)

# An upstream that answers nobody: what it accepted is what HAProxy let in.
accepted = []
upstream = socket.socket(socket.AF_UNIX)
upstream.bind(dir + "/upstream")
upstream.listen(128)
def serve():
    while True:
        accepted.append(upstream.accept()[0])
threading.Thread(target=serve, daemon=True).start()

def let_in():
    """How many of 60 requests reach the upstream at once."""
    before, clients = len(accepted), []
    for _ in range(60):
        c = socket.socket(socket.AF_UNIX)
        c.connect(dir + "/moving")
        c.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        clients.append(c)
    time.sleep(0.7)
    n = len(accepted) - before
    for c in clients:
        c.close()
    for _ in range(10):  # those that wait come as others go
        for c in accepted:
            c.close()
        time.sleep(0.1)
    return n

holds("let in with minconn 5, maxconn 50", let_in(), 5)
ask("set maxconn server idle/s 3")
holds("slim after 3", limit("idle"), "3")
holds("let in then", let_in(), 5)
ask("set maxconn server idle/s 5")
ask("set maxconn server idle/s 50")
holds("slim after 5 and 50", limit("idle"), "50")
holds("let in then", let_in(), 50)

ask("set maxconn server plain/s 7")
file = os.stat(dir + "/s").st_ino
for n in range(200):
    if n % 20 == 0:
        os.kill(master, signal.SIGUSR2)
    time.sleep(0.05)
    try:
        if who() != first:
            break
    except OSError:
        pass
holds("another process after the reload", who() != first, True)
holds("the same file", os.stat(dir + "/s").st_ino == file, True)
holds("slim after the reload", limit("plain"), "")
if bad:
    sys.exit("haproxy-maxconn: this HAProxy does otherwise:\n  " + "\n  ".join(bad))
PY

#!/bin/sh
# A client of HTTP/2 loses the status of a refusal which HAProxy sends before it has the whole body.
#
# HAProxy 2.6.12 and curl 7.88.1 of Debian 12. Setting: a front of HTTP/2 without TLS that answers each
# POST with 429 itself, with and without "http-request wait-for-body", and one of HTTP/1.1.
# Seen: HAProxy sends the complete answer, and then ends the stream with RST_STREAM and CANCEL. RFC 9113
# (8.1) has NO_ERROR there, which tells the client to keep the answer. curl ends with code 92 and has
# no status: to whoever called it, a refusal with its Retry-After looks like a broken connection. So in
# all of 20 posts of 100 kB. wait-for-body does not help: it waits until its buffer of 16 kB is full.
# Over HTTP/1.1 at most a few are lost, to a reset of the connection.
#
# Needs haproxy and curl. Ends within seconds.
set -eu
dir=$(mktemp -d)
port=$(awk 'BEGIN { srand(); print 20000 + int(rand() * 10000) }')
trap 'kill "$(cat "$dir/pid" 2>/dev/null)" 2>/dev/null || true; rm -rf "$dir"' EXIT
cat >"$dir/haproxy.cfg" <<CFG
defaults
  mode http
  timeout client 10s
  timeout server 10s
  timeout connect 1s
frontend two
  bind 127.0.0.1:$port proto h2
  http-request wait-for-body time 5s if { path /waits }
  http-request return status 429 hdr Retry-After 1
frontend one
  bind 127.0.0.1:$((port + 1))
  http-request return status 429 hdr Retry-After 1
CFG
haproxy -f "$dir/haproxy.cfg" -D -p "$dir/pid"
head -c 100000 /dev/zero >"$dir/body"
# lost ARGUMENTS... counts the posts of 20 whose status curl does not know.
lost() {
  n=0
  for _ in $(seq 20); do
    status=$(curl -s -o /dev/null -w '%{http_code}' --data-binary @"$dir/body" "$@" || true)
    [ "$status" = 429 ] || n=$((n + 1))
  done
  echo $n
}
two=$(lost --http2-prior-knowledge "http://127.0.0.1:$port/")
waits=$(lost --http2-prior-knowledge "http://127.0.0.1:$port/waits")
one=$(lost "http://127.0.0.1:$((port + 1))/")
echo "$(haproxy -v | head -1), $(curl --version | cut -d' ' -f1,2 | head -1): of 20 refusals lost over HTTP/2 $two, with wait-for-body $waits, over HTTP/1.1 $one"
[ "$two" -ge 15 ] && [ "$waits" -ge 15 ] && [ "$one" -le 5 ] || { echo "haproxy-early-answer-over-http2: these versions do otherwise" >&2; exit 1; }

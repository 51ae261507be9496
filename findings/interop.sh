#!/bin/bash
# @opentelemetry/auto-instrumentations-node 0.81.2 (Node.js >= 18.19): a server that ends
# at SIGTERM, as Node.js has it by default, no longer ends once the package's register.js
# is loaded. It adds a handler of SIGTERM that shuts the SDK down and does not end the
# process, and with a handler Node.js does not end it either: the server goes on to
# answer, and its spans are no longer sent. Whoever stops it waits for the SIGKILL.
# What it shows needs Node.js and npm. It fails if that changes.
set -euo pipefail
dir=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done; rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true}' >package.json
npm install --silent --no-fund --no-audit --ignore-scripts --save-exact \
	@opentelemetry/auto-instrumentations-node@0.81.2 @opentelemetry/api@1.9.1 @opentelemetry/core@2.9.0
cat >server.js <<'JS'
const server = require('http').createServer((q, a) => a.end('ok')).listen(0, '127.0.0.1', () =>
  require('fs').writeFileSync(process.env.READY, String(server.address().port)))
JS

# alive NAME ARGUMENTS...: sends SIGTERM to a server and says "yes" if it answers 10 s later.
alive() {
	local name=$1 pid
	shift
	READY=$dir/$name OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none OTEL_NODE_RESOURCE_DETECTORS=none \
		node "$@" server.js >"$dir/$name.log" 2>&1 &
	pid=$!
	pids+=("$pid")
	for _ in $(seq 600); do [ -s "$dir/$name" ] && break || sleep 0.1; done
	kill -TERM "$pid"
	sleep 10
	node -e 'require("http").get({ port: process.argv[1], host: "127.0.0.1" }, a => process.exit(a.statusCode === 200 ? 0 : 1)).on("error", () => process.exit(1))' "$(cat "$dir/$name")" && said=yes || said=no
}

alive plain
plain=$said
alive registered --require @opentelemetry/auto-instrumentations-node/register
registered=$said
echo "Node.js $(node --version), auto-instrumentations-node 0.81.2; does the server answer 10 s after SIGTERM?"
echo "without register.js: $plain"
echo "with register.js:    $registered"
[ "$plain" = no ] && [ "$registered" = yes ]

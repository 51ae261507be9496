// A cache with HTTP before it: one value for each user, dropped some time after it was made.
"use strict";
const http = require("http");

const [host, port] = process.argv[2].split(":");
const bytes = Number(process.argv[3]);
const kept = Number(process.argv[4]);
const entries = new Map(); // in the order in which they were made

setInterval(() => {
  const now = Date.now();
  for (const [user, e] of entries) {
    if (e.until >= now) break;
    entries.delete(user);
  }
}, 1000);

http.createServer((request, response) => {
  let e = entries.get(request.url);
  if (!e) {
    e = { value: Buffer.alloc(bytes, request.url), until: Date.now() + kept };
    entries.set(request.url, e);
  }
  response.end(String(e.value[bytes >> 1]));
}).listen({ host, port: Number(port), backlog: 1024 });

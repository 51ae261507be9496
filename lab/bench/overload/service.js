// An API of Node.js with one thread: for each unit of work it writes a list as JSON and reads
// it back.
"use strict";
const http = require("http");

const [host, port] = process.argv[2].split(":");

function unit(seed) {
  const list = [];
  for (let i = 0; i < 20; i++) list.push({ id: seed + i, name: "item " + ((i * 7919) % 997), price: i * 1.5 });
  return JSON.parse(JSON.stringify(list)).length;
}

const server = http.createServer((request, response) => {
  const work = Number(new URL(request.url, "http://localhost").searchParams.get("work"));
  let sum = 0;
  for (let k = 0; k < work; k++) sum += unit(k);
  response.end(JSON.stringify({ sum }) + "\n");
});
server.keepAliveTimeout = 0; // none
server.listen({ host, port: Number(port), backlog: 4096 });

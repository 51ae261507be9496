'use strict'
// A service as an application has it: each request asks a dependency and waits for
// it. Beside requests it polls, once a second, as clients of queues do. It knows
// nothing of traces: what `--require` loads before it adds them.
const http = require('http')

const get = path => new Promise((resolve, reject) => {
  http.get(process.env.DEPENDENCY + path, answer => {
    answer.resume()
    answer.on('end', resolve)
  }).on('error', reject)
})

http.createServer((request, answer) => {
  get('/work' + request.url).then(() => answer.end('ok\n'), () => { answer.statusCode = 502; answer.end() })
}).listen(process.env.PORT, '127.0.0.1')

setInterval(() => get('/poll').catch(() => {}), 1000)

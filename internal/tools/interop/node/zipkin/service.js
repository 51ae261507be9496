'use strict'
// ../service.js with zipkin-js as its README sets it up: the HTTP logger and its
// defaults, the middleware of express, and the wrapper of fetch.
const express = require('express')
const CLSContext = require('zipkin-context-cls')
const { Tracer, BatchRecorder, jsonEncoder: { JSON_V2 } } = require('zipkin')
const { HttpLogger } = require('zipkin-transport-http')
const { expressMiddleware } = require('zipkin-instrumentation-express')
const wrapFetch = require('zipkin-instrumentation-fetch')

const tracer = new Tracer({
  ctxImpl: new CLSContext('zipkin', true),
  recorder: new BatchRecorder({ logger: new HttpLogger({ endpoint: process.env.ZIPKIN_ENDPOINT, jsonEncoder: JSON_V2 }) }),
  localServiceName: process.env.OTEL_SERVICE_NAME
})
const zipkinFetch = wrapFetch(fetch, { tracer })
const get = path => zipkinFetch(process.env.DEPENDENCY + path).then(answer => answer.text())

express()
  .use(expressMiddleware({ tracer }))
  .use((request, answer) => { get('/work' + request.url).then(() => answer.end('ok\n'), () => answer.status(502).end()) })
  .listen(process.env.PORT, '127.0.0.1')

setInterval(() => get('/poll').catch(() => {}), 1000)

'use strict'
// The first generation has no file that sets it up: this is what its guide says,
// with the defaults of sdk-node 0.25 and of its JSON exporter.
const { NodeSDK } = require('@opentelemetry/sdk-node')
const { CollectorTraceExporter } = require('@opentelemetry/exporter-collector')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { Resource } = require('@opentelemetry/resources')

new NodeSDK({
  resource: new Resource({ 'service.name': process.env.OTEL_SERVICE_NAME }),
  traceExporter: new CollectorTraceExporter(),
  instrumentations: [new HttpInstrumentation()]
}).start()

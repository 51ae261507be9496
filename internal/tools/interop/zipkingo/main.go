// Command zipkingo is a service in Go with zipkin-go as its README sets it up: the
// HTTP reporter with its defaults, and its middleware around server and client.
// ZIPKIN_ENDPOINT is where spans go.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/openzipkin/zipkin-go"
	zipkinhttp "github.com/openzipkin/zipkin-go/middleware/http"
	reporter "github.com/openzipkin/zipkin-go/reporter/http"

	"github.com/trimtab/trimtab/internal/tools/interop/service"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "zipkingo:", err)
		os.Exit(1)
	}
}

func run() error {
	endpoint, err := zipkin.NewEndpoint(os.Getenv("OTEL_SERVICE_NAME"), "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		return fmt.Errorf("make an endpoint: %w", err)
	}
	tracer, err := zipkin.NewTracer(reporter.NewReporter(os.Getenv("ZIPKIN_ENDPOINT")), zipkin.WithLocalEndpoint(endpoint))
	if err != nil {
		return fmt.Errorf("make a tracer: %w", err)
	}
	transport, err := zipkinhttp.NewTransport(tracer)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return service.Run(&http.Client{Transport: transport}, zipkinhttp.NewServerMiddleware(tracer))
}

package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/nats-io/nats-server/v2/server"
)

// serveNATS runs a nats-server with a configuration file until ctx ends.
func serveNATS(ctx context.Context, file string) error {
	stop, err := profiled()
	if err != nil {
		return err
	}
	defer stop()
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		return fmt.Errorf("read configuration of nats-server: %w", err)
	}
	o.NoSigs = true
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("make nats-server: %w", err)
	}
	s.ConfigureLogger()
	s.Start()
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// profiled profiles this process from now until stop, to the file that
// FLEET_PROFILE names; without it, it does nothing.
func profiled() (stop func(), err error) {
	name := os.Getenv("FLEET_PROFILE")
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

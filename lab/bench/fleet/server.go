package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// profiled profiles this process from now until stop, to cpu.pprof and heap.pprof
// in the directory that TRIMTAB_PROFILE names; without it, it does nothing.
func profiled() (stop func(), err error) {
	dir := os.Getenv("TRIMTAB_PROFILE")
	if dir == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
		if f, err := os.Create(filepath.Join(dir, "heap.pprof")); err == nil {
			_ = pprof.Lookup("heap").WriteTo(f, 0)
			_ = f.Close()
		}
	}, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

const (
	// rate is what each sender is asked, in requests per second.
	rate = 20
	// settle is when load is first read: three batches of 5 s and what trimtab waits.
	settle = 20 * time.Second
	// flush is how long the last batch may take.
	flush = 8 * time.Second
)

// outcome is a row: what a sender sent, and what trimtab counted.
type outcome struct {
	sender
	Sent sent
	// Spans that the sender must have made, and kept before any sampling: two for
	// each request and one for each poll.
	Spans   int
	Counted counted
	// Missing is why there are no figures.
	Missing error
}

// player plays senders.
type player struct {
	home    *home
	trimtab string
	during  time.Duration
}

// play runs one sender beside a trimtab of its own.
func (p *player) play(ctx context.Context, s sender) (o outcome) {
	o.sender = s
	dir, err := os.MkdirTemp("", "trimtab-interop-")
	if err != nil {
		o.Missing = fmt.Errorf("make a directory: %w", err)
		return o
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.Missing = p.played(ctx, dir, &o); o.Missing != nil {
		for _, name := range []string{"service.log", "between.log"} {
			if log, err := os.ReadFile(filepath.Join(dir, name)); err == nil && len(log) > 0 {
				o.Missing = fmt.Errorf("%w; %s: %.2000s", o.Missing, name, log)
			}
		}
	}
	return o
}

func (p *player) played(ctx context.Context, dir string, o *outcome) error {
	needs, err := depend()
	if err != nil {
		return err
	}
	defer func() { _ = needs.Close() }()
	if o.Route == byFile {
		return p.recorded(ctx, dir, needs, o)
	}
	t, err := start(ctx, p.trimtab, dir, "", "slo: {latency: 200ms, fraction: 0.95}")
	if err != nil {
		return err
	}
	defer t.Process.Close()
	grpc, http := t.grpc, t.http
	if o.Route != direct {
		between, at, err := p.between(ctx, dir, o.Route, t)
		if err != nil {
			return err
		}
		defer between.Close()
		grpc, http = at[0], at[1]
	}
	var reading sync.WaitGroup
	var watched error
	err = p.serve(ctx, dir, needs, o, grpc, http, func(ctx context.Context) {
		reading.Go(func() { o.Counted, watched = t.watch(ctx, settle) })
	})
	reading.Wait()
	if err != nil || watched != nil {
		return fmt.Errorf("play %s: %w", o.Name, errors.Join(err, watched))
	}
	return o.Counted.finish(ctx, t)
}

// serve starts the service, drives it, waits for its last batch, and ends it.
// beside is called when the load begins; its context ends with the load.
func (p *player) serve(ctx context.Context, dir string, needs *dependency, o *outcome, grpc, http string, beside func(context.Context)) error {
	at, err := rig.FreeAddresses(1)
	if err != nil {
		return err
	}
	in, command := o.command(p.home)
	places := strings.NewReplacer("{grpc}", "http://"+grpc, "{http}", "http://"+http)
	env := []string{"env", "PORT=" + at[0][strings.LastIndexByte(at[0], ':')+1:], "DEPENDENCY=" + needs.address, "OTEL_SERVICE_NAME=web",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + http, "ZIPKIN_ENDPOINT=http://" + http + "/api/v2/spans"}
	for _, e := range o.Env {
		env = append(env, places.Replace(e))
	}
	// SIGKILL: what OpenTelemetry's register.js adds for SIGTERM keeps a server running.
	service, err := rig.StartAt(ctx, rig.Program{Args: append(env, command...), Dir: in, Log: filepath.Join(dir, "service.log"), Stop: syscall.SIGKILL}, nil, "http://"+at[0]+"/")
	if err != nil {
		return err
	}
	defer service.Close()
	loaded, over := context.WithCancel(ctx)
	beside(loaded)
	o.Sent = drive(ctx, at[0], rate, p.during)
	over()
	pause.For(ctx, flush)
	o.Spans = 2*int(needs.works.Load()) + int(needs.polls.Load())
	return nil
}

// recorded plays a sender whose spans trimtab reads from files.
func (p *player) recorded(ctx context.Context, dir string, needs *dependency, o *outcome) error {
	file := filepath.Join(dir, "spans.json")
	sink, err := record(file)
	if err != nil {
		return err
	}
	defer func() { _ = sink.Close() }()
	if err := p.serve(ctx, dir, needs, o, "", sink.address, func(context.Context) {}); err != nil {
		return err
	}
	if err := sink.write(); err != nil {
		return err
	}
	return o.Counted.contributions(ctx, p.trimtab, file, p.during)
}

// contributions reads a recording as a person would.
func (c *counted) contributions(ctx context.Context, binary, file string, during time.Duration) error {
	out, err := exec.CommandContext(ctx, binary, "contributions", "-o", "json", file).Output()
	if err != nil {
		return fmt.Errorf("read %s: %w: %s", file, err, out)
	}
	var said struct {
		Requests   float64 `json:"requests"`
		Components []struct {
			Name string  `json:"name"`
			Mean float64 `json:"mean_ms"`
		} `json:"components"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return fmt.Errorf("read contributions: %w", err)
	}
	c.Load = said.Requests / during.Seconds()
	c.Least, c.Most = c.Load, c.Load
	return nil
}

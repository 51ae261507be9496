package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// subject is trimtab as a policy: the program itself, as a process, with a
// file as README shows it.
type subject struct {
	// Binary is the program, Objective what its file says; "default": nothing.
	Binary, Objective string
	// Keep: the log stays, and the row names it.
	Keep bool
	// Override is YAML that is laid over the file.
	Override []byte
	// Quotas gives each service one, which is no default.
	Quotas bool
	// Fast lets quotas move between rounds, below the group for all services.
	Fast bool
	// Signal is what it learns from.
	Signal source
	// Fronts are the gates before the services; nil: there are none.
	Fronts *fronts

	process *rig.Process
	// agent is that of the second host; nil: there is one host.
	agent     *rig.Process
	log       string
	baselines [3]float64
	used      time.Duration
	// web is where it tells of its bands.
	web   string
	bands bands
}

// source is a way to tell trimtab how services do.
type source interface {
	// open gets ready what trimtab's file refers to, once addresses are known.
	open(ctx context.Context, t *trial, a addresses) error
	// lines returns what the file needs at its top, and for a service.
	lines(a addresses) string
	service(s *service) string
	// begin is called when trimtab is ready.
	begin(ctx context.Context, a addresses) error
	observe(service int, from time.Time, took time.Duration, failed bool)
	// flush sends what is still held back; then trimtab ends, then close.
	flush()
	close()
}

// addresses are where trimtab listens.
type addresses struct{ Web, GRPC, HTTP, Jaeger, NATS string }

func (p *subject) open(ctx context.Context, t *trial) error {
	if p.Quotas || p.Fast {
		if err := t.set(ctx, equal(t)); err != nil {
			return err
		}
	}
	var err error
	if p.baselines, _, err = t.quotas(ctx); err != nil {
		return err
	}
	at, err := rig.FreeAddresses(5)
	if err != nil {
		return err
	}
	a := addresses{at[0], at[1], at[2], at[3], at[4]}
	p.web = a.Web
	if err := p.Signal.open(ctx, t, a); err != nil {
		return err
	}
	if p.Fronts != nil {
		if err := p.Fronts.open(ctx, t, a.GRPC); err != nil {
			return err
		}
	}
	file := filepath.Join(t.dir, "trimtab.yaml")
	more := ""
	if t.beside != nil {
		more = fmt.Sprintf("nats: {listen: %q}\n", a.NATS)
	}
	text, err := p.file(t.host, a, more)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write trimtab's file: %w", err)
	}
	p.log = filepath.Join(t.dir, "trimtab.log")
	if p.used, err = t.Control.Used(); err != nil {
		return err
	}
	program := rig.Program{Args: []string{p.Binary, "run", "--config.file", file}, Dir: t.dir, Log: p.log, Stop: syscall.SIGTERM}
	if p.process, err = rig.StartAt(ctx, program, t.Control, "http://"+a.Web+"/-/ready"); err != nil {
		return err
	}
	if t.beside != nil {
		if err := p.join(ctx, t, a); err != nil {
			return err
		}
	}
	return p.Signal.begin(ctx, a)
}

// secondHost is what the agent of the second host calls it; the first is this machine's name.
const secondHost = "second"

func hostName() string { name, _ := os.Hostname(); return name }

// locks is where the agent of a host that a group plays has its locks.
func (h *host) locks() string { return filepath.Join(h.dir, "locks") }

// join starts the agent of the second host.
func (p *subject) join(ctx context.Context, t *trial, a addresses) (err error) {
	dir := filepath.Join(t.dir, secondHost)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory of the agent: %w", err)
	}
	own := a
	if own.Web, err = rig.FreeAddress(); err != nil {
		return err
	}
	text, err := p.file(t.host, own, fmt.Sprintf("nats: {url: %q}\n", "nats://"+a.NATS))
	if err != nil {
		return err
	}
	text = []byte(strings.NewReplacer(filepath.Join(t.Root, t.above.Name), filepath.Join(t.Root, t.beside.Name), t.locks(), t.locks()+"-2").Replace(string(text)))
	file, log := filepath.Join(dir, "trimtab.yaml"), filepath.Join(dir, "trimtab.log")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the agent's file: %w", err)
	}
	p.agent, err = rig.StartAt(ctx, rig.Program{Args: []string{p.Binary, "agent", "--config.file", file, "--host", secondHost, "--web.listen-address", own.Web}, Dir: dir, Log: log, Stop: syscall.SIGTERM}, t.Control, "http://"+own.Web+"/-/ready")
	return err
}

// file is trimtab's file: what README shows, free addresses to listen on, and more.
func (p *subject) file(h *host, a addresses, more string) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "pool: {cpu: %v}\n", h.Pool)
	if p.Objective != "default" {
		fmt.Fprintf(&b, "objective: %s\n", p.Objective)
	}
	fmt.Fprintf(&b, "web: {listen_address: %q}\notlp: {grpc: %q, http: %q}\njaeger: {grpc: %q}\n", a.Web, a.GRPC, a.HTTP, a.Jaeger)
	b.WriteString(more)
	switch mount, err := hostfs.CPUHierarchy(); {
	case h.beside != nil:
		fmt.Fprintf(&b, "actuator: {cgroup_root: %q, lock_dir: %q}\n", filepath.Join(h.Root, h.above.Name), h.locks())
	case err != nil || mount != h.Root:
		fmt.Fprintf(&b, "actuator: {cgroup_root: %q}\n", h.Root)
	}
	if p.Fast {
		fmt.Fprintf(&b, "fast: {mode: act, parent: %s}\n", h.above.Name)
	}
	b.WriteString(p.Signal.lines(a))
	b.WriteString("workloads:\n")
	cpu := "{}"
	switch {
	case p.Quotas:
		cpu = "{cap: always}"
	case h.beside != nil:
		cpu = "{cap: never}" // on each host
	}
	for i, s := range h.services {
		on := ""
		if h.beside != nil && i > 0 {
			on = fmt.Sprintf("host: %s, ", [3]string{1: hostName(), 2: secondHost}[i])
		}
		limit := ""
		if p.Fronts != nil {
			limit = fmt.Sprintf(", concurrency: {gate: %q}", p.Fronts.admin[i])
		}
		fmt.Fprintf(&b, "  - name: %s\n%s    knob: {%scgroup: %s, cpu: %s%s}\n    mode: act\n", s.Name, p.Signal.service(s), on, h.path(s), cpu, limit)
	}
	return overlay([]byte(b.String()), p.Override)
}

func (p *subject) run(ctx context.Context, t *trial) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.bands.watch(watching, p.web, t.services[:], t.begin)
	}()
	defer func() { stop(); <-watched }()
	select {
	case <-ctx.Done():
		return nil
	case <-p.process.Done():
		return p.process.Gone()
	}
}

func (p *subject) observe(i int, from time.Time, took time.Duration, failed bool) {
	p.Signal.observe(i, from, took, failed)
}

// close ends trimtab as an operator does, and looks whether all quotas are
// again what trimtab found.
func (p *subject) close(ctx context.Context, t *trial, r *row) {
	defer p.Fronts.close() // after trimtab, which takes its limits back
	if p.process == nil {
		p.Signal.close()
		return
	}
	if used, err := t.Control.Used(); err == nil {
		r.OwnCores = (used - p.used).Seconds() / t.whole.Seconds()
	}
	p.Signal.flush()
	if p.agent != nil {
		p.agent.Close() // its limits are put back before the bus goes away
	}
	p.process.Close()
	p.Signal.close()
	var exit interface{ ExitCode() int }
	if errors.As(p.process.Err(), &exit) {
		r.Notes = append(r.Notes, fmt.Sprintf("trimtab ended with %v", p.process.Err()))
	}
	now, _, err := t.quotas(ctx)
	if err != nil {
		r.Unsafe = append(r.Unsafe, fmt.Sprintf("quotas cannot be read after trimtab ended: %v", err))
	}
	for i, s := range t.services {
		if math.Abs(now[i]-p.baselines[i]) > 1e-6 {
			r.Unsafe = append(r.Unsafe, fmt.Sprintf("%s has %v cores after trimtab ended, and had %v before", s.Name, now[i], p.baselines[i]))
		}
	}
	if t.beside == nil { // a curve does not know hosts
		if b := p.bands.compare(t.Pool, p.Quotas || p.Fast, t.services, r.seen.outcomes, &r.seen.watched); b.Of > 0 {
			r.Notes = append(r.Notes, "bands: "+b.Text())
		}
	}
	if p.Keep {
		r.Log = p.log
	}
	if said, err := os.ReadFile(p.log); err == nil {
		r.Warnings = complaints(string(said))
	}
}

// complaints returns the lines of a log that are errors or warnings.
func complaints(log string) (out []string) {
	for line := range strings.Lines(log) {
		for _, mark := range []string{"level=WARN", "level=ERROR", `"level":"WARN"`, `"level":"ERROR"`, "WARN ", "ERROR ", "panic:", "trimtab: error:"} {
			if strings.Contains(line, mark) {
				out = append(out, strings.TrimSpace(line))
				break
			}
		}
	}
	return out
}

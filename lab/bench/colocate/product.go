package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// product is trimtab itself with a policy: the program as a process, with a file as
// an operator writes it.
type product struct {
	policy string
	// alone tells that no job is to run: it learns the service.
	alone bool
	spans spans

	b       *bench
	dir     string
	web     string
	process *rig.Process
}

// storage is the directory below a row's in which trimtab keeps what it learnt.
const storage = "storage"

func (p *product) open(ctx context.Context, b *bench, dir string) error {
	p.b, p.dir = b, dir
	at, err := rig.FreeAddresses(4)
	if err != nil {
		return err
	}
	p.web = at[0]
	if b.learnt != "" {
		if err := os.CopyFS(filepath.Join(dir, storage), os.DirFS(b.learnt)); err != nil {
			return fmt.Errorf("copy what trimtab learnt: %w", err)
		}
	}
	file := filepath.Join(dir, "trimtab.yaml")
	if err := os.WriteFile(file, []byte(p.file(at)), 0o600); err != nil {
		return fmt.Errorf("write trimtab's file: %w", err)
	}
	program := rig.Program{Args: []string{b.Trimtab, "run", "--config.file", file}, Dir: dir, Log: p.log(), Stop: syscall.SIGTERM}
	if p.process, err = rig.StartAt(ctx, program, b.host.Control, "http://"+p.web+"/-/ready"); err != nil {
		return err
	}
	if err := p.spans.open(ctx, at[1]); err != nil || p.alone {
		return err
	}
	return b.host.begin(true)
}

func (p *product) log() string { return filepath.Join(p.dir, "trimtab.log") }

// file is trimtab's file: what it must have, addresses that are free, and where
// a job begins and how far a step goes on this small machine.
func (p *product) file(at []string) string {
	var f strings.Builder
	fmt.Fprintf(&f, "pool: {name: shop, cpu: 2}\nstorage: {path: %s}\n", filepath.Join(p.dir, storage))
	fmt.Fprintf(&f, "web: {listen_address: %q}\notlp: {grpc: %q, http: %q}\njaeger: {grpc: %q}\n", at[0], at[1], at[2], at[3])
	// Other trimtabs on this machine, such as those of tests, are not to share with it.
	fmt.Fprintf(&f, "actuator: {lock_dir: %q", filepath.Join(p.dir, "lock"))
	if mount, err := hostfs.CPUHierarchy(); err != nil || mount != p.b.host.Root {
		fmt.Fprintf(&f, ", cgroup_root: %q", p.b.host.Root)
	}
	f.WriteString("}\n")
	fmt.Fprintf(&f, "beside: {jobs: {policy: %s, mode: act, start: {cpu: %v}, step: {cpu: %v}}}\n", p.policy, p.b.Start, p.b.Step)
	fmt.Fprintf(&f, "workloads:\n  - name: shop\n    slo: {latency: %v, fraction: %v}\n    match: {spans: {service.namespace: shop}}\n", p.b.slo(), fraction)
	if p.b.Limits != nil {
		fmt.Fprintf(&f, "    servpods: {nginx: {%[1]s}, redis: {%[1]s}}\n", limits(*p.b.Limits))
	}
	// A service without a quota that shares a pool would claim the whole host.
	f.WriteString("    mode: off\n")
	for _, j := range p.b.host.jobs {
		fmt.Fprintf(&f, "  - name: %s\n    class: best-effort\n    knob: {cgroup: %s, cpu: {min: %v, max: 1}}\n", j.Name, j.group.Name, leastQuota)
		if j.Worker {
			fmt.Fprintf(&f, "    progress: {file: %s}\n    predict: {kind: training}\n", filepath.Join(j.dir, progressFile))
		}
	}
	return f.String()
}

// limits are declared thresholds as the file has them.
func limits(l [2]float64) string {
	var all []string
	for i, name := range []string{"loadlimit", "slacklimit"} {
		if l[i] > 0 {
			all = append(all, fmt.Sprintf("%s: %v", name, l[i]))
		}
	}
	return strings.Join(all, ", ")
}

// run follows what trimtab decides, for those who look on with -keep.
func (p *product) run(ctx context.Context) error {
	tick := time.NewTicker(window)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.process.Done():
			return p.process.Gone()
		case <-tick.C:
		}
		if !p.b.Keep {
			continue
		}
		if v, err := rig.Get(ctx, "http://"+p.web+"/api/v1/jobs"); err == nil {
			fmt.Fprintf(p.b.err, "%s %s\n", p.policy, v)
		}
	}
}

func (p *product) tell(begin time.Time, o *outcome) { p.spans.tell(begin, o) }

// close ends trimtab as an operator does.
func (p *product) close(_ context.Context, r *row) {
	p.spans.Close()
	if p.process == nil {
		return
	}
	p.process.Close()
	var exit interface{ ExitCode() int }
	if errors.As(p.process.Err(), &exit) {
		r.Notes = append(r.Notes, fmt.Sprintf("trimtab ended with %v", p.process.Err()))
	}
	said, err := os.ReadFile(p.log())
	if err != nil {
		return
	}
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic:") {
			r.Notes = append(r.Notes, "trimtab says: "+strings.TrimSpace(line))
		}
	}
}

const (
	// learnFor is how long each load is played to trimtab alone.
	learnFor = 10500 * time.Millisecond
)

// learnAt are the loads, as shares of the most, that trimtab has seen before the first
// row: what a service's history is elsewhere.
func learnAt() []float64 { return []float64{0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1} }

// learn lets trimtab see the service alone at several loads, and keeps what it learnt
// for all rows, which begin with a copy of it.
func (b *bench) learn(ctx context.Context) (err error) {
	if b.Trimtab == "" || b.Direct {
		return nil
	}
	if b.History != "" {
		if _, err := os.Stat(b.History); err == nil {
			b.learnt = b.History
			return nil
		}
	}
	fmt.Fprintln(b.err, "trimtab sees the service alone")
	dir := filepath.Join(b.host.dir, "learn")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make directory to learn in: %w", err)
	}
	p := &product{policy: alone, alone: true}
	r := &row{}
	if err := p.open(ctx, b, dir); err != nil {
		p.close(ctx, r)
		return err
	}
	for _, share := range learnAt() {
		generate(ctx, b.host.shop, time.Now(), constant(1, learnFor).arrivals(share*b.alone.Max, b.Seed), p.tell)
	}
	// What is under way must reach it.
	err = wait(ctx, 3*time.Second)
	p.close(ctx, r)
	if err != nil {
		return err
	}
	b.learnt = filepath.Join(dir, storage)
	if b.History != "" {
		return os.CopyFS(b.History, os.DirFS(b.learnt))
	}
	return nil
}

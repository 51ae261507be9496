package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// realHost has the one agent that is a real process, and the instances of
// realWorkload, in cgroups.
const realHost, realWorkload = "real", "real"

// realJobs is the workload of the best-effort jobs beside them.
const realJobs = "batch"

// errHierarchy says that there is nowhere to make cgroups.
var errHierarchy = errors.New("no cgroup hierarchy is writable")

// groups makes the cgroups of the real agent.
func (f *fleet) groups() error {
	root, err := hostfs.CPUHierarchy()
	if err != nil || cgroup.Writable(root) != nil {
		return fmt.Errorf("make cgroups: %w", errors.Join(errHierarchy, err))
	}
	if f.root, err = os.MkdirTemp(root, "trimtab-fleet-"); err != nil {
		return fmt.Errorf("make cgroups: %w", err)
	}
	if f.Tasks > 0 {
		if err := f.taskGroups(root); err != nil {
			return fmt.Errorf("make cgroups: %w", err)
		}
	}
	for i := range f.Cgroups {
		if err := os.Mkdir(f.group(i), 0o755); err != nil {
			return fmt.Errorf("make cgroups: %w", err)
		}
	}
	return nil
}

// removeGroups undoes groups.
func (f *fleet) removeGroups() {
	for i := range f.Cgroups {
		_ = os.Remove(f.group(i)) // an empty one goes
	}
	f.removeTaskGroups()
	_ = os.Remove(f.root)
}

// group is the directory of the i-th cgroup: the first are the jobs.
func (f *fleet) group(i int) string {
	workload := realWorkload
	if i < f.Jobs {
		workload = realJobs
	}
	return filepath.Join(f.root, fmt.Sprintf("%s@%d", workload, i))
}

// realText is the part of the configuration that is the real agent's.
func (f *fleet) realText() string {
	text := fmt.Sprintf("  - {name: %[1]s, slo: {latency: %[2]v, fraction: %[3]g}, load: 'sum(n)', performance: 'sum(d)', knob: {host: %[4]s, cgroup: '%[1]s@*', cpu: {min: %[5]g, max: %[6]g}}, mode: act}\n",
		realWorkload, threshold, target, realHost, leastCores, mostCores)
	if f.Jobs > 0 {
		text += fmt.Sprintf("  - {name: %s, class: best-effort, knob: {host: %s, cgroup: '%[1]s@*', cpu: {min: %[3]g, max: %[4]g}}}\ncolocate: {mode: act}\n",
			realJobs, realHost, leastCores, mostCores)
	}
	if f.Tasks > 0 {
		text += f.tasksText()
	}
	return text
}

// startReal starts the real agent.
func (f *fleet) startReal(ctx context.Context) error {
	if f.Cgroups == 0 {
		return nil
	}
	site := filepath.Join(f.dir, "site", "agent-"+realHost)
	if err := rewrite(filepath.Join(site, "nats.yaml"), "tls://127.0.0.1:4222", f.url, "tls://127.0.0.1:7422", f.leaf); err != nil {
		return err
	}
	web, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	p, err := f.start("agent", f.Binary, "agent", "--host", realHost, "--config.file", filepath.Join(f.dir, "trimtab.yaml"), "--nats.config.file", filepath.Join(site, "nats.yaml"),
		"--web.listen-address", web, "--storage.path", filepath.Join(f.dir, "agent"), "--log.level", "warn")
	if err != nil {
		return err
	}
	p.web = web
	return p.await(ctx, "/-/healthy", patience)
}

// follow prints what the real agent takes, each minute of a long measurement.
func (f *fleet) follow(ctx context.Context, began time.Time) bool {
	for left := f.For; left > 0; left -= time.Minute {
		if !pause.For(ctx, min(left, time.Minute)) {
			return false
		}
		for _, p := range f.parts {
			if p.name == "agent" {
				cpu, err := p.cpu()
				fmt.Printf("  %3.0f min: the real agent has used %.1f s of CPU, and has %.1f MiB %v\n", time.Since(began).Minutes(), cpu, p.resident(), errText(err))
				p.printHelpers()
				f.printJobs(ctx, p.web)
			}
		}
	}
	return true
}

// printJobs prints what the real agent has decided on its best-effort jobs.
func (f *fleet) printJobs(ctx context.Context, web string) {
	if f.Jobs == 0 {
		return
	}
	c := client.Client{URL: "http://" + web}.Jobs(ctx)
	if c == nil {
		fmt.Println("           it does not tell about its best-effort jobs")
		return
	}
	fmt.Printf("           %d best-effort jobs, decisions: %v\n", len(c.Jobs), c.Counts)
}

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

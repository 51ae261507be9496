package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// result is one row of the table.
type result struct {
	size
	// instances are those of each workload.
	leaves, instances int
	ready             time.Duration
	report            report
	// rounds is how many plans the planner should have made.
	rounds int
	used   map[string]used // by process
	// store is the bytes in the store of the NATS server, streams those of each.
	store   int64
	streams map[string]int64
	views   []view
	// said are the distinct complaints of each log.
	said []string
}

// used is what one process took.
type used struct {
	cores, resident, peak float64 // of one core; MiB
	// waited is for how long one of its threads could have run and had no CPU, in
	// seconds per second: what other processes of this machine, and the other
	// parts of the fleet, cost it.
	waited  float64
	metrics int // bytes of /metrics
}

// view is one page of the console.
type view struct {
	path  string
	took  time.Duration
	bytes int
}

// read measures for a while and fills the result in.
func (f *fleet) read(ctx context.Context, r *result) error {
	before, waited := map[string]float64{}, map[string]float64{}
	for _, p := range f.parts {
		cpu, err := p.cpu()
		if err != nil {
			return err
		}
		before[p.name], waited[p.name] = cpu, p.waited()
		if f.Profile != "" && p.web != "" {
			_ = p.cmd.Process.Signal(syscall.SIGUSR1) // of a build that profiles
		}
	}
	began := time.Now()
	if _, err := io.WriteString(f.agents.ask, "begin\n"); err != nil {
		return fmt.Errorf("talk to the agents: %w", err)
	}
	if !f.follow(ctx, began) {
		return ctx.Err()
	}
	took := time.Since(began).Seconds()
	r.used = map[string]used{}
	for _, p := range f.parts {
		cpu, err := p.cpu()
		if err != nil {
			return err
		}
		if f.Profile != "" && p.web != "" {
			_ = p.cmd.Process.Signal(syscall.SIGUSR2)
		}
		status := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
		r.used[p.name] = used{cores: (cpu - before[p.name]) / took, resident: p.resident(), peak: rig.Number(status, "VmHWM:") / 1024,
			waited: (p.waited() - waited[p.name]) / took}
	}
	if _, err := io.WriteString(f.agents.ask, "report\n"); err != nil || !f.agents.answers.Scan() {
		return fmt.Errorf("talk to the agents: %w: %s", errEnded, f.agents.tail())
	}
	if err := json.Unmarshal(f.agents.answers.Bytes(), &r.report); err != nil {
		return fmt.Errorf("read the report of the agents: %w", err)
	}
	r.rounds = int(took/f.Round.Seconds()) - 1 // the last had not its whole round
	r.store, r.streams = rig.Stored(filepath.Join(f.dir, "nats")), map[string]int64{}
	streams, _ := filepath.Glob(filepath.Join(f.dir, "nats", "jetstream", "*", "streams", "*")) // the pattern is good
	for _, dir := range streams {
		r.streams[filepath.Base(dir)] = rig.Stored(dir)
	}
	f.askPages(ctx, r)
	for _, p := range f.parts {
		r.said = append(r.said, p.complaints()...)
	}
	return nil
}

// askPages reads /metrics of each process and the first pages of the console.
func (f *fleet) askPages(ctx context.Context, r *result) {
	for _, p := range f.parts {
		if p.web == "" {
			continue
		}
		if _, n, err := p.get(ctx, "/metrics"); err == nil {
			u := r.used[p.name]
			u.metrics = n
			r.used[p.name] = u
		}
		if p.name != "console" {
			continue
		}
		for _, path := range []string{"/", "/api/v1/status"} {
			took, n, err := p.get(ctx, path)
			if err != nil {
				r.said = append(r.said, fmt.Sprintf("console: GET %s: %v", path, err))
				continue
			}
			r.views = append(r.views, view{path, took, n})
		}
	}
}

// cpu is what the process has used so far, in seconds.
func (p *part) cpu() (float64, error) {
	pid := p.pid
	if p.cmd != nil {
		pid = p.cmd.Process.Pid
	}
	used, err := rig.CPUSeconds(pid)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", p.name, err, p.tail())
	}
	return used, nil
}

// resident is its memory, in MiB.
func (p *part) resident() float64 {
	return rig.Number(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid), "VmRSS:") / 1024
}

// waited is for how long its threads waited for a CPU so far, in seconds.
func (p *part) waited() (sum float64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid)) // the pattern is good
	for _, file := range files {
		text, err := os.ReadFile(file)
		if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
			ns, _ := strconv.ParseFloat(fields[1], 64) // the kernel writes a number here
			sum += ns / 1e9
		}
	}
	return sum
}

// get returns how long a page took and how large it is, uncompressed.
func (p *part) get(ctx context.Context, path string) (time.Duration, int, error) {
	began := time.Now()
	page, err := rig.Get(ctx, "http://"+p.web+path)
	return time.Since(began), len(page), err
}

// complaints are the warnings and errors of a log, each kind once with its number.
func (p *part) complaints() (out []string) {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []string{err.Error()}
	}
	digits := regexp.MustCompile(`[0-9]+`)
	counts, first := map[string]int{}, []string{}
	for line := range strings.Lines(string(text)) {
		_, said, ok := strings.Cut(line, "level=")
		if !ok {
			_, said, ok = strings.Cut(line, "] [")
		}
		if !ok || strings.HasPrefix(said, "INF") {
			continue
		}
		kind := digits.ReplaceAllString(said[:min(len(said), 160)], "#")
		if counts[kind]++; counts[kind] == 1 {
			first = append(first, said[:min(len(said), 300)])
		}
	}
	for _, said := range first {
		kind := digits.ReplaceAllString(said[:min(len(said), 160)], "#")
		out = append(out, fmt.Sprintf("%s, %d times: %s", p.name, counts[kind], strings.TrimSpace(said)))
	}
	return out[:min(len(out), 8)]
}

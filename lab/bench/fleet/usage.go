package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	if _, err := io.WriteString(f.ask, "begin\n"); err != nil {
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
		r.used[p.name] = used{cores: (cpu - before[p.name]) / took, resident: p.resident(), peak: number(status, "VmHWM:") / 1024,
			waited: (p.waited() - waited[p.name]) / took}
	}
	if _, err := io.WriteString(f.ask, "report\n"); err != nil || !f.answers.Scan() {
		return fmt.Errorf("talk to the agents: %w: %s", errEnded, f.agents.tail())
	}
	if err := json.Unmarshal(f.answers.Bytes(), &r.report); err != nil {
		return fmt.Errorf("read the report of the agents: %w", err)
	}
	r.rounds = int(took/f.Round.Seconds()) - 1 // the last had not its whole round
	r.store, r.streams = stored(filepath.Join(f.dir, "nats")), map[string]int64{}
	streams, _ := filepath.Glob(filepath.Join(f.dir, "nats", "jetstream", "*", "streams", "*")) // the pattern is good
	for _, dir := range streams {
		r.streams[filepath.Base(dir)] = stored(dir)
	}
	f.askPages(r)
	for _, p := range f.parts {
		r.said = append(r.said, p.complaints()...)
	}
	return nil
}

// askPages reads /metrics of each process and the first pages of the console.
func (f *fleet) askPages(r *result) {
	for _, p := range f.parts {
		if p.web == "" {
			continue
		}
		if _, n, err := p.get("/metrics"); err == nil {
			u := r.used[p.name]
			u.metrics = n
			r.used[p.name] = u
		}
		if p.name != "console" {
			continue
		}
		for _, path := range []string{"/", "/api/v1/status"} {
			took, n, err := p.get(path)
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
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read what %s used: %w: %s", p.name, err, p.tail())
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	sum := 0.0
	for _, at := range []int{11, 12} { // utime and stime, in ticks of 10 ms
		ticks, err := strconv.ParseFloat(fields[at], 64)
		if err != nil {
			return 0, fmt.Errorf("read what %s used: %w", p.name, err)
		}
		sum += ticks / 100
	}
	return sum, nil
}

// resident is its memory, in MiB.
func (p *part) resident() float64 {
	return number(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid), "VmRSS:") / 1024
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

// number reads the number after a key in a file of /proc; 0 where it is not.
func number(file, key string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), key)
	n, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64) // the kernel writes a number here
	return n
}

// stored is how many bytes the files below a directory have.
func stored(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil // a file that went away meanwhile holds nothing
	})
	return sum
}

// get returns how long a page took and how large it is, uncompressed.
func (p *part) get(path string) (time.Duration, int, error) {
	began := time.Now()
	resp, err := http.Get("http://" + p.web + path)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for %s: %w", path, err)
	}
	defer resp.Body.Close()
	var start bytes.Buffer
	n, err := io.Copy(&start, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s: %w", resp.Status, start.String(), errAnswer)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("ask for %s: %w", path, err)
	}
	return time.Since(began), int(n), nil
}

// errAnswer says that a page is not there.
var errAnswer = fmt.Errorf("not what was asked for")

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

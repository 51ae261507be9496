package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat"

	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// process is the program that is measured.
type process struct {
	cmd       *exec.Cmd
	storage   string
	web, otlp string
	ready     time.Duration
}

// start writes the configuration, and runs the program until it is ready.
func (o *options) start(ctx context.Context, dir, binary string, g *groups) (*process, error) {
	p := &process{storage: filepath.Join(dir, "data")}
	var err error
	if p.web, err = rig.FreeAddress(); err != nil {
		return nil, err
	}
	if p.otlp, err = rig.FreeAddress(); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "trimtab.yaml")
	if err := os.WriteFile(file, o.text(p, g), 0o644); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	p.cmd = exec.Command(binary, "run", "--config.file", file, "--log.level=error")
	p.cmd.Stderr = os.Stderr
	if p.cmd.Env = os.Environ(); o.Memory != "" {
		p.cmd.Env = append(p.cmd.Env, "GOMEMLIMIT="+o.Memory)
	}
	if o.Profile != "" {
		p.cmd.Env = append(p.cmd.Env, "TRIMTAB_PROFILE="+o.Profile)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	if err := startWithSlack(p.cmd, o.Slack); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	for ctx.Err() == nil {
		resp, err := http.Get("http://" + p.web + "/-/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				p.ready = time.Since(began)
				return p, nil
			}
		}
		if time.Since(began) > time.Minute {
			break
		}
		pause.For(ctx, 10*time.Millisecond)
	}
	p.stop()
	return nil, errors.New("not ready after a minute")
}

// startWithSlack starts a program whose sleeps may end late by slack, as
// TimerSlackNSec= of a systemd unit has it.
func startWithSlack(c *exec.Cmd, slack time.Duration) error {
	// On a thread of its own, since the setting is a thread's, and goes to the
	// process that it starts. The thread stays: Pdeathsig tells of its end.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack.Nanoseconds()), 0, 0, 0)
		if err == nil {
			err = c.Start()
		}
		started <- err
		select {}
	}()
	return <-started
}

// text is the configuration.
func (o *options) text(p *process, g *groups) []byte {
	var b bytes.Buffer
	cpu := max(1, int(math.Ceil(firstCores*float64(o.Groups))))
	unit := 0.01
	if cpu > 1000 {
		unit = 0.1 // a pool has at most 100,000 units
	}
	fmt.Fprintf(&b, `pool: {cpu: %d, unit: %g}
round: %v
lease: %v
actuator: {cgroup_root: %q, lock_dir: %q}
storage: {path: %q}
web: {listen_address: %q}
otlp: {grpc: %q, http: "off"}
jaeger: {grpc: "off"}
workloads:
`, cpu, unit, o.Round, max(10*time.Second, 3*o.Round), g.root, p.storage+"-locks", p.storage, p.web, p.otlp)
	for i := range o.Groups {
		fmt.Fprintf(&b, "  - {name: %[1]s, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: %[1]s, cpu: {min: 0.05, max: 1}}, mode: %[2]s}\n", name(i), o.Mode)
	}
	return b.Bytes()
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	if err := p.cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "small: trimtab ended with", err)
	}
}

// reading is what the process has used so far.
type reading struct {
	at time.Time
	// cpu in s, resident memory, heap and what the storage holds in MiB,
	// written to files in bytes.
	cpu, resident, heap, stored, written float64
}

func (p *process) read(ctx context.Context) (r reading, err error) {
	r.at = time.Now()
	if r.cpu, err = rig.CPUSeconds(p.cmd.Process.Pid); err != nil {
		return r, err
	}
	root := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	r.resident = rig.Number(root+"status", "VmRSS:") / 1024
	r.written = rig.Number(root+"io", "wchar:")
	families, err := rig.Metrics(ctx, "http://"+p.web+"/metrics")
	if err != nil {
		return r, err
	}
	for _, m := range families["go_memstats_heap_inuse_bytes"].GetMetric() {
		r.heap = m.GetGauge().GetValue() / (1 << 20)
	}
	r.stored = float64(rig.Stored(p.storage)) / (1 << 20)
	return r, nil
}

// line says what happened since before.
func (r reading) line(before reading) string {
	took := r.at.Sub(before.at)
	text := fmt.Sprintf("%.1f MiB resident, %.1f MiB of heap, storage %.1f MiB", r.resident, r.heap, r.stored)
	if took <= 0 {
		return text
	}
	hours := took.Hours()
	return fmt.Sprintf("%5.0f s: %.2f s of CPU time, %.1f%% of a core, %s (resident %+.1f MiB/h, storage %+.1f MiB/h, %.0f MiB/h written to files and sockets)",
		took.Seconds(), r.cpu-before.cpu, 100*(r.cpu-before.cpu)/took.Seconds(), text, (r.resident-before.resident)/hours, (r.stored-before.stored)/hours, (r.written-before.written)/hours/(1<<20))
}

// growth is the slope per hour of the line through what of says of each reading.
func growth(readings []reading, of func(*reading) float64) float64 {
	hours, values := make([]float64, len(readings)), make([]float64, len(readings))
	for i := range readings {
		hours[i], values[i] = readings[i].at.Sub(readings[0].at).Hours(), of(&readings[i])
	}
	_, slope := stat.LinearRegression(hours, values, nil, false)
	return slope
}

// ask returns how long a page took and how large it is.
func (p *process) ask(ctx context.Context, path string) (time.Duration, int, error) {
	began := time.Now()
	page, err := rig.Get(ctx, "http://"+p.web+path)
	return time.Since(began), len(page), err
}

// lag prints how long values waited for their stage, and steps took.
func (p *process) lag(ctx context.Context) error {
	families, err := rig.Metrics(ctx, "http://"+p.web+"/metrics")
	if err != nil {
		return err
	}
	for _, name := range []string{"trimtab_stage_lag_seconds", "trimtab_stage_step_seconds"} {
		for _, m := range families[name].GetMetric() {
			h := m.GetHistogram()
			if h.GetSampleCount() == 0 {
				continue
			}
			p99 := math.Inf(1)
			for _, b := range h.GetBucket() {
				if float64(b.GetCumulativeCount()) >= 0.99*float64(h.GetSampleCount()) {
					p99 = b.GetUpperBound()
					break
				}
			}
			fmt.Printf("%s of %s: p99 at most %g s, mean %.2g s, %d times\n", name, m.GetLabel()[0].GetValue(), p99, h.GetSampleSum()/float64(h.GetSampleCount()), h.GetSampleCount())
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/internal/proctest"
)

// program is `trimtab run` as a process of its own, with a directory that
// holds all it may touch but its cgroups.
type program struct {
	*testing.T
	dir             string
	web, otlp, http string
	jaeger, nats    string
	q               quotas
	// text is the configuration; args are added to the command line.
	text string
	args []string
	cmd  *exec.Cmd
	// line is what it was launched with last.
	line []string
	// self is the binary, and as whom it runs; zero: the test's own.
	self string
	as   *syscall.Credential
}

// prepare writes the configuration of two workloads that share one core; more
// is added at its top level.
func prepare(t *testing.T, q quotas, more string) *program {
	t.Helper()
	p := &program{T: t, dir: t.TempDir(), q: q, web: loopback.Address(t), otlp: loopback.Address(t), http: loopback.Address(t), jaeger: loopback.Address(t), nats: loopback.Address(t)}
	p.text = fmt.Sprintf(`
pool: {cpu: 1, unit: 0.01, step: 0.1}
objective: egalitarian
round: 1s
lease: 10s
guard: {max_fall: 0.5, max_lowered: 1, max_moved: 0.5, dead_band: 0.02, reversal_window: 0s}
actuator: {cgroup_root: %q}
storage: {path: %q}
nats: {listen: %q}
web: {listen_address: %q}
otlp: {grpc: %q, http: %q}
jaeger: {grpc: %q}
workloads:
  - {name: hungry, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: hungry, cpu: {min: 0.05, max: 0.9}}, mode: act}
  - {name: modest, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: modest, cpu: {min: 0.05, max: 0.9}}, mode: act}
`, q.root, p.storage(), p.nats, p.web, p.otlp, p.http, p.jaeger)
	if !strings.Contains(more, "analyzer:") {
		more += "analyzer: {report_interval: 200ms, partitions: 1}\n"
	}
	p.text += more
	return p
}

func (p *program) storage() string { return filepath.Join(p.dir, "data") }

// run starts the program and returns at once.
func (p *program) run() {
	p.Helper()
	file := filepath.Join(p.dir, "trimtab.yaml")
	if err := os.WriteFile(file, []byte(p.text), 0o644); err != nil {
		p.Fatal(err)
	}
	p.launch(append([]string{"run", "--config.file", file}, p.args...)...)
}

// launch starts a command line as a process.
func (p *program) launch(args ...string) {
	p.Helper()
	// Not a pipe: the watchdog has it, too, and outlives a killed program.
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.Fatal(err)
	}
	defer log.Close()
	self := p.self
	if self == "" {
		self = os.Args[0]
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.cmd, p.line = cmd, args
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.end()
	})
}

// end ends the watchdogs, which would write into what is being removed.
func (p *program) end() {
	p.Helper()
	proctest.End(p, p.dir+"/")
}

// start runs the program until it is ready.
func (p *program) start() {
	p.Helper()
	p.run()
	p.becomesReady()
}

func (p *program) becomesReady() {
	p.Helper()
	p.until("ready", func() error {
		code, body, err := p.get("/-/ready")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("%d %s: %w", code, body, err)
		}
		return nil
	})
}

// log returns the end of what the program said.
func (p *program) log() string {
	b, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(b[max(0, len(b)-8000):])
}

// until waits until f returns nil.
func (p *program) until(what string, f func() error) {
	p.Helper()
	deadline := time.NewTimer(5 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			p.Fatalf("%s: not after five minutes: %v\n%s", what, err, p.log())
		case <-tick.C:
		}
	}
}

// during calls f again and again for d.
func (p *program) during(d time.Duration, f func()) {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f()
		select {
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}

func (p *program) get(path string) (int, string, error) {
	resp, err := http.Get("http://" + p.web + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// metrics reads /metrics.
func (p *program) metrics() map[string]*dto.MetricFamily {
	p.Helper()
	_, body, err := p.get("/metrics")
	if err != nil {
		p.Fatalf("metrics: %v\n%s", err, p.log())
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	return families
}

// sum adds all series of a metric that have these labels, given as name, value.
func (p *program) sum(name string, labels ...string) float64 {
	p.Helper()
	return sumOf(p.metrics(), name, labels...)
}

func sumOf(families map[string]*dto.MetricFamily, name string, labels ...string) (sum float64) {
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.Label {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// serve keeps requests coming in the background until stop is called.
func (p *program) serve() (stop func()) {
	p.Helper()
	s := newSender(p, p.otlp, p.q)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			_ = s.send(ctx) // errors show as workloads without data
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	stop = func() { cancel(); <-done }
	p.Cleanup(stop)
	return stop
}

// limits returns both limits, and fails when they are over the capacity.
func (p *program) limits() (hungry, modest float64) {
	p.Helper()
	if hungry, modest = both(p.q.read); hungry+modest > 1+1e-6 {
		p.Errorf("the sum is %v + %v: over the capacity of 1", hungry, modest)
	}
	return hungry, modest
}

// moved is nil once both limits are elsewhere than at the baselines.
func (p *program) moved() error {
	if h, m := p.limits(); h == 0.5 || m == 0.5 {
		return fmt.Errorf("hungry %v, modest %v", h, m)
	}
	return nil
}

// restored is nil once both limits are at the baselines.
func (p *program) restored() error {
	if h, m := p.limits(); h != 0.5 || m != 0.5 {
		return fmt.Errorf("hungry %v, modest %v", h, m)
	}
	return nil
}

// stop ends the program as systemd does, and expects that it ends well.
func (p *program) stop() {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("ended with %v\n%s", err, p.log())
	}
}

// kill kills the program, and its watchdogs when asked for: also one that was just
// started for one that was killed.
func (p *program) kill(watchdog bool) {
	p.Helper()
	if watchdog {
		for _, pid := range p.processes() {
			if pid != p.cmd.Process.Pid {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
	if watchdog {
		p.end()
	}
}

// processes lists those that have the program's directory among their arguments.
func (p *program) processes() []int { return proctest.With(p.dir + "/") }

// noneLeft is nil once no process of the program is left.
func (p *program) noneLeft() error { return proctest.Left(p.dir + "/") }

// command runs a command line as a process and returns its exit code.
func (p *program) command(args ...string) (code int, out string) {
	p.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "TRIMTAB_URL=http://"+p.web)
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		p.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

// foreign returns the content of every file below the quotas' root that is
// none of the two limits.
func (p *program) foreign() map[string]string {
	p.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(p.q.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		if settable := name == "cpu.cfs_quota_us" || name == "cpu.max" || name == "cpu.cfs_period_us" || name == "cpu.shares" ||
			name == "cpu.rt_runtime_us" || name == "notify_on_release" || name == "cgroup.clone_children" || name == "other"; !settable {
			return nil
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// sameForeign compares, with the limits at their baselines.
func (p *program) sameForeign(before map[string]string) {
	p.Helper()
	if after := p.foreign(); !maps.Equal(before, after) {
		for path := range after {
			if before[path] != after[path] {
				p.Errorf("%s was %q and is %q", path, before[path], after[path])
			}
		}
	}
}

// rss returns the program's resident memory in bytes.
func (p *program) rss() int64 {
	p.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				p.Fatal(err)
			}
			return n << 10
		}
	}
	p.Fatal("no VmRSS")
	return 0
}

// anyQuotas are real groups of version 1 where they may be made, else files.
func anyQuotas(t *testing.T) quotas {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	if err != nil || os.Getuid() != 0 {
		return fixtureQuotas(t)
	}
	top, err := os.MkdirTemp(root, "trimtab-test-")
	if err != nil {
		return fixtureQuotas(t)
	}
	t.Cleanup(func() {
		for _, name := range []string{"hungry", "modest", "other", "."} {
			_ = os.Remove(filepath.Join(top, name))
		}
		_ = os.Remove(top)
	})
	read := func(name string) float64 {
		b, err := os.ReadFile(filepath.Join(top, name, "cpu.cfs_quota_us"))
		if err != nil {
			t.Error(err)
			return 0
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		if err != nil {
			t.Error(err)
		}
		return v / 100000
	}
	for _, name := range []string{"hungry", "modest", "other"} {
		dir := filepath.Join(top, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cpu.cfs_quota_us"), []byte("50000"), 0o644); err != nil {
			if name == "hungry" {
				return fixtureQuotas(t) // not a version 1 hierarchy
			}
			t.Fatal(err)
		}
	}
	return quotas{top, read}
}

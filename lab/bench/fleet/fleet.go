package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// pool is the one that all hosts share.
const pool = "default"

// patience bounds each wait for a process.
const patience = 10 * time.Minute

// fleet is one size at work.
type fleet struct {
	*options
	size
	dir, self string
	// url and leaf are where the NATS server takes clients and leaf nodes.
	url, leaf string
	parts     []*part
	agents    played
	root      string // of the cgroups of the real agent
	every     *cgroup.Group
	report    time.Duration
}

// played is the process that plays agents: it is asked by lines, and answers by lines.
type played struct {
	*part
	ask     io.WriteCloser
	answers *bufio.Scanner
}

// part is one process.
type part struct {
	name, web, log string
	cmd            *exec.Cmd
	ended          chan struct{}
	pid            int // of a helper, which has no cmd
}

// measure runs a fleet and returns what it took.
func (o *options) measure(ctx context.Context, s size, dir string) (r *result, err error) {
	f := &fleet{options: o, size: s, dir: dir}
	if f.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	defer f.stop()
	began := time.Now()
	for _, step := range []func(context.Context) error{f.write, f.startServer, f.startStages, f.startReal, f.startAgents} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	for _, p := range f.parts {
		if p.web == "" {
			continue
		}
		if why := p.await(ctx, "/-/ready", f.Round*4); why != nil {
			fmt.Println("not ready:", p.name, why)
		}
	}
	r = &result{size: s, leaves: min(o.Leaves, s.agents), instances: o.Instances, ready: time.Since(began)}
	if err := f.submit(ctx); err != nil {
		return nil, err
	}
	fmt.Printf("%d agents, %d workloads, reports every %v: ready after %.0f s\n", s.agents, s.workloads, f.report, r.ready.Seconds())
	if !pause.For(ctx, o.Settle) {
		return nil, ctx.Err()
	}
	return r, f.read(ctx, r)
}

// write writes the files of the site and its configuration.
func (f *fleet) write(ctx context.Context) error {
	var hosts []string
	if f.Cgroups > 0 {
		if err := f.groups(); err != nil {
			return err
		}
		hosts = append(hosts, realHost)
	}
	for i := range f.size.agents {
		hosts = append(hosts, hostName(i))
	}
	if out, err := exec.CommandContext(ctx, f.Binary, "init", "cluster", "--servers", "127.0.0.1", "--hosts", strings.Join(hosts, ","), "--out", filepath.Join(f.dir, "site")).CombinedOutput(); err != nil {
		return fmt.Errorf("write site: %w\n%s", err, out)
	}
	client, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	leaf, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	f.url, f.leaf = "tls://"+client, "tls://"+leaf
	at := filepath.Join(f.dir, "site", "nats-127.0.0.1")
	conf := filepath.Join(at, "nats-server.conf")
	if err := rewrite(conf, "/etc/nats/", at+"/", "/var/lib/nats", filepath.Join(f.dir, "nats"), "0.0.0.0:4222", client, "0.0.0.0:7422", leaf); err != nil {
		return err
	}
	for _, role := range []string{"planner", "analyzer", "console"} {
		if err := rewrite(filepath.Join(f.dir, "site", role, "nats.yaml"), "tls://127.0.0.1:4222", f.url); err != nil {
			return err
		}
	}
	file := filepath.Join(f.dir, "trimtab.yaml")
	if err := os.WriteFile(file, f.text(), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	f.report = c.Analyzer.ReportInterval
	return nil
}

// rewrite replaces texts of a file.
func rewrite(file string, pairs ...string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("rewrite: %w", err)
	}
	return os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600)
}

// lease is that of all plans.
func (f *fleet) lease() time.Duration { return max(time.Minute, 3*f.Round) }

// text is the configuration of the site. Nobody asks the queries: they say that
// load and performance are not those of spans.
func (f *fleet) text() []byte {
	var b bytes.Buffer
	if f.Report > 0 {
		fmt.Fprintf(&b, "analyzer: {report_interval: %v}\n", f.Report)
	}
	cpu := math.Ceil(firstCores * float64(f.workloads*f.Instances+f.Cgroups-f.Jobs))
	fmt.Fprintf(&b, "pool: {cpu: %g, unit: %g}\nround: %v\nlease: %v\nstorage: {path: %q}\nprometheus: {url: 'http://127.0.0.1:9'}\nworkloads:\n",
		cpu, max(0.01, cpu/100000), f.Round, f.lease(), filepath.Join(f.dir, "data"))
	for i := range f.workloads {
		name := workloadName(i)
		fmt.Fprintf(&b, `  - {name: %[1]s, slo: {latency: %[2]v, fraction: %[3]g}, load: 'sum(rate(n{w="%[1]s"}[10s]))', performance: 'sum(rate(d_bucket{w="%[1]s",le="%[4]g"}[10s])) / sum(rate(d_count{w="%[1]s"}[10s]))', `+
			"knob: {%[5]scgroup: %[1]s, cpu: {min: %[6]g, max: %[7]g}}, mode: act}\n",
			name, threshold, target, threshold.Seconds(), f.host(i), leastCores, mostCores)
	}
	if f.Cgroups > 0 {
		fmt.Fprintf(&b, "%sactuator: {cgroup_root: %q, lock_dir: %q}\n", f.realText(), f.root, filepath.Join(f.dir, "locks"))
	}
	return b.Bytes()
}

// host is where the file says that a workload is, where it has one instance.
func (f *fleet) host(i int) string {
	if f.Instances > 1 {
		return ""
	}
	return "host: " + hostName(hostOf(i, 0, f.size.agents)) + ", "
}

func (f *fleet) startServer(ctx context.Context) error {
	p, err := f.start("nats", f.self, "play-nats", filepath.Join(f.dir, "site", "nats-127.0.0.1", "nats-server.conf"))
	if err != nil {
		return err
	}
	return p.until(ctx, patience, func() error {
		c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "tls://"))
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// startStages starts the planner, which makes the streams, then the others.
func (f *fleet) startStages(ctx context.Context) error {
	for _, role := range []string{"planner", "analyzer", "console"} {
		web, err := rig.FreeAddress()
		if err != nil {
			return err
		}
		p, err := f.start(role, f.Binary, role, "--config.file", filepath.Join(f.dir, "trimtab.yaml"), "--nats.config.file", filepath.Join(f.dir, "site", role, "nats.yaml"),
			"--web.listen-address", web, "--storage.path", filepath.Join(f.dir, role), "--log.level", "warn")
		if err != nil {
			return err
		}
		p.web = web
		if err := p.await(ctx, "/-/healthy", patience); err != nil {
			return err
		}
	}
	return nil
}

// journals is where the actuators keep theirs: in memory where that can be.
func (f *fleet) journals() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "trimtab-fleet-")
	if err != nil {
		return filepath.Join(f.dir, "journals"), nil
	}
	return dir, os.Symlink(dir, filepath.Join(f.dir, "journals"))
}

func (f *fleet) startAgents(ctx context.Context) error {
	journals, err := f.journals()
	if err != nil {
		return fmt.Errorf("make journals: %w", err)
	}
	text, err := json.Marshal(cast{
		Site: filepath.Join(f.dir, "site"), Journals: journals, URL: f.url, Leaf: f.leaf, Agents: f.size.agents, Leaves: f.Leaves, Instances: f.Instances,
		Workloads: f.workloads, Report: f.report, MaxLease: f.lease() + 10*time.Second, Within: f.Round, Colocate: f.Jobs > 0,
	})
	if err != nil {
		return fmt.Errorf("write what to play: %w", err)
	}
	file := filepath.Join(f.dir, "agents.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write what to play: %w", err)
	}
	if f.agents.part, err = f.start("agents", f.self, "play-agents", file); err != nil {
		return err
	}
	if !f.agents.answers.Scan() || f.agents.answers.Text() != "ready" {
		return fmt.Errorf("open agents: %w: see %s", errEnded, f.agents.tail())
	}
	return nil
}

// errEnded says that a process ended which should not have.
var errEnded = errors.New("the process ended")

// start starts a process; that of the agents is talked to.
func (f *fleet) start(name string, command ...string) (*part, error) {
	p := &part{name: name, log: filepath.Join(f.dir, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = os.Environ()
	if f.Profile != "" {
		at := filepath.Join(f.Profile, name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		p.cmd.Env = append(p.cmd.Env, "TRIMTAB_PROFILE="+at)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if name == "agents" {
		p.cmd.Stdout = nil
		out, bad := p.cmd.StdoutPipe()
		in, worse := p.cmd.StdinPipe()
		if err := errors.Join(bad, worse); err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		f.agents.ask, f.agents.answers = in, bufio.NewScanner(out)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	f.parts = append(f.parts, p)
	return p, nil
}

// stop ends all processes, the agents first and the server last.
func (f *fleet) stop() {
	if f.agents.ask != nil {
		_ = f.agents.ask.Close() // the agents end with their input
	}
	for i := len(f.parts) - 1; i >= 0; i-- {
		p := f.parts[i]
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.ended:
		case <-time.After(time.Minute):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}
	if f.root != "" {
		f.removeGroups()
	}
	if dir, err := os.Readlink(filepath.Join(f.dir, "journals")); err == nil {
		_ = os.RemoveAll(dir)
	}
	if !f.Keep {
		_ = os.RemoveAll(f.dir)
	}
}

// await waits until a page answers with 200.
func (p *part) await(ctx context.Context, page string, most time.Duration) error {
	return p.until(ctx, most, func() error { _, _, err := p.get(ctx, page); return err })
}

// until waits until ask returns nil.
func (p *part) until(ctx context.Context, most time.Duration, ask func() error) error {
	deadline := time.Now().Add(most)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("wait for %s: %w: %s", p.name, errEnded, p.tail())
		default:
		}
		if time.Now().After(deadline) || !pause.For(ctx, 50*time.Millisecond) {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
}

// tail is the end of the log.
func (p *part) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

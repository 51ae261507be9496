//go:build integration

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// script is deploy/examples/cluster.sh while it runs.
type script struct {
	*testing.T
	cmd *exec.Cmd
	dir string
	mu  sync.Mutex
	out bytes.Buffer
	// run is the number in its names, net the first three bytes of its addresses,
	// group the cgroup with one below it for each host.
	run, net, group string
	ended           chan error
}

func (s *script) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *script) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

func startScript(t *testing.T) *script {
	t.Helper()
	s := &script{T: t, dir: filepath.Join(t.TempDir(), "site"), ended: make(chan error, 1)}
	s.cmd = exec.Command("../../deploy/examples/cluster.sh", "--trimtab", os.Args[0], "--dir", s.dir)
	s.cmd.Stdout, s.cmd.Stderr = s, s
	s.cmd.WaitDelay = time.Minute
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { s.end() })
	for {
		out := s.said()
		if m := regexp.MustCompile(`console: http://([\d.]+)\.21:9600.*\n.*quotas: (\S+)/h1 to h3\n.*ip link set tt(\d+)-h1`).FindStringSubmatch(out); m != nil {
			s.net, s.group, s.run = m[1], m[2], m[3]
			return s
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			if strings.Contains(out, "cluster.sh: missing:") {
				t.Skip(out)
			}
			t.Fatalf("the script ended: %v\n%s", err, s.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end ends it as Ctrl-C does, which a test that runs in the background may have
// been told to ignore.
func (s *script) end() {
	s.Helper()
	if s.ended == nil {
		return
	}
	if s.Failed() {
		logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
		for _, file := range logs {
			b, _ := os.ReadFile(file)
			s.Logf("%s: …%s", filepath.Base(file), b[max(0, len(b)-6000):])
		}
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ended
	s.ended = nil
	s.Log(s.said())
}

// process is one of them, to be asked from outside.
func (s *script) process(role, host string) *program {
	last := map[string]string{"c1": "21", "c2": "22", "h1": "31", "h2": "32", "h3": "33"}[host]
	port := map[string]string{"console": "9600", "planner": "9601", "analyzer": "9602", "collector": "9603", "agent": "9604"}[role]
	return &program{T: s.T, dir: s.dir, web: s.net + "." + last + ":" + port}
}

// kill is kill -9, of a process by its name.
func (s *script) kill(name string) {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "pids"))
	if err != nil {
		s.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^`+name+` (\d+)$`).FindAllStringSubmatch(string(b), -1)
	pid, err := strconv.Atoi(m[len(m)-1][1]) // the newest of that name
	if err != nil {
		s.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
}

// quota is what a host's service has, in cores.
func (s *script) quota(host string) (float64, error) {
	at := filepath.Join(s.group, host)
	b, err := os.ReadFile(filepath.Join(at, "cpu.max"))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join(at, "cpu.cfs_quota_us"))
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
	return v / 100000, err
}

const scriptPool = 1.2 // cores, in the script's trimtab.yaml

// hosts of the script, each with one knob.
func scriptHosts() []string { return []string{"h1", "h2", "h3"} }

// watch samples all quotas until stop is called. Two readings that are equal were
// all there at one time, between them; others say nothing of a sum.
func (s *script) watch() (stop func() (samples, over int)) {
	done, result := make(chan struct{}), make(chan [2]int)
	read := func() (all [3]float64, err error) {
		for i, h := range scriptHosts() {
			if all[i], err = s.quota(h); err != nil {
				break
			}
		}
		return all, err
	}
	go func() {
		samples, over := 0, 0
		var told [3]float64
		for {
			select {
			case <-done:
				result <- [2]int{samples, over}
				return
			case <-time.After(2 * time.Millisecond):
			}
			first, err := read()
			again, errAgain := read()
			if err != nil || errAgain != nil || first != again {
				continue
			}
			samples++
			if sum := first[0] + first[1] + first[2]; sum > scriptPool+1e-3 || slices.Max(first[:]) > scriptPool || slices.Min(first[:]) <= 0 {
				if over++; first != told {
					s.Errorf("%v: %v is over the capacity", time.Now().UTC(), first)
				}
				told = first
			}
		}
	}()
	return func() (int, int) { close(done); r := <-result; return r[0], r[1] }
}

// accepted counts the plans that an agent carried out, written its writes.
func accepted(p *program) float64 {
	return p.sum("trimtab_actuator_plans_total", "result", "accepted")
}
func written(p *program) float64 {
	return p.sum("trimtab_actuator_actions_total", "status", "written")
}

// more waits until an agent has carried out n more plans.
func more(p *program, n float64) {
	p.Helper()
	before := accepted(p)
	p.until("more plans are carried out", func() error {
		if now := accepted(p); now < before+n {
			return fmt.Errorf("%v of %v", now-before, n)
		}
		return nil
	})
}

// A whole site on this machine, as deploy/examples/cluster.sh starts it: plans are
// carried out on all hosts, a planner and a NATS server die, the link of a host is
// cut, and nobody is ever over capacity. Then nothing is left.
func TestTheClusterScriptKeepsItsPromisesWhileThingsDie(t *testing.T) {
	s := startScript(t)
	stop := s.watch()
	var agents []*program
	planners := []*program{s.process("planner", "c1"), s.process("planner", "c2")}
	for _, h := range scriptHosts() {
		agents = append(agents, s.process("agent", h))
	}
	all := append([]*program{}, agents...)
	for _, role := range []string{"console", "planner", "analyzer", "collector"} {
		all = append(all, s.process(role, "c1"), s.process(role, "c2"))
	}
	for _, p := range all {
		p.becomesReady()
	}
	for _, a := range agents {
		a.until("a plan moves its knob", func() error {
			if written(a) == 0 {
				return fmt.Errorf("nothing written")
			}
			return nil
		})
	}

	// The planner that leads, and a NATS server.
	leads := slices.IndexFunc(planners, func(p *program) bool { return p.sum("trimtab_stage_outputs_total", "stage", "planner") > 0 })
	if leads < 0 {
		t.Fatal("no planner leads")
	}
	s.kill(fmt.Sprintf("planner-c%d", leads+1))
	s.kill("nats-n1")
	other := planners[1-leads]
	other.until("the other planner leads", func() error {
		if epoch := other.sum("trimtab_leader_epoch"); epoch < 2 {
			return fmt.Errorf("term %v", epoch)
		}
		return nil
	})
	for _, a := range agents {
		more(a, 2)
	}

	// The link of a host.
	link, baseline := "tt"+s.run+"-h3", scriptPool/3
	ip(t, "link", "set", link, "down")
	agents[0].until("the baseline of the host that is cut off", func() error {
		if v, err := s.quota("h3"); err != nil || math.Abs(v-baseline) > 1e-3 {
			return fmt.Errorf("it has %v: %v", v, err)
		}
		return nil
	})
	log := filepath.Join(s.dir, "agent-h3.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	more(agents[0], 5)
	more(agents[1], 5)
	if v, err := s.quota("h3"); err != nil || math.Abs(v-baseline) > 1e-3 {
		t.Errorf("the host that is cut off has %v, its baseline is %v: %v", v, baseline, err)
	}
	ip(t, "link", "set", link, "up")
	agents[2].becomesReady()
	more(agents[2], 2)
	var first []string
	agents[2].until("a plan moves it again", func() error {
		after, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if first = regexp.MustCompile(`msg=action .*before=(\S+) set=(\S+) status=written`).FindStringSubmatch(string(after[len(before):])); first == nil {
			return fmt.Errorf("nothing written")
		}
		return nil
	})
	from, _ := strconv.ParseFloat(first[1], 64)
	to, _ := strconv.ParseFloat(first[2], 64)
	if math.Abs(from-baseline) > 1e-3 || math.Abs(to-from) > scriptPool/10+1e-3 {
		t.Errorf("it goes on with a jump: %s", first[0])
	}

	samples, over := stop()
	t.Logf("%d samples of all quotas, %d over capacity", samples, over)
	if samples == 0 {
		t.Error("nothing was sampled")
	}
	s.end()
	s.nothingIsLeft()
}

func (s *script) nothingIsLeft() {
	s.Helper()
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("files are left: %v", err)
	}
	if _, err := os.Stat(s.group); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("a cgroup is left: %v", err)
	}
	out, err := exec.Command("ip", "netns", "list").CombinedOutput()
	if err != nil || strings.Contains(string(out), "trimtab-cluster-"+s.run+"-") {
		s.Errorf("a namespace is left: %s%v", out, err)
	}
	if err := exec.Command("ip", "link", "show", "tt"+s.run).Run(); err == nil {
		s.Error("the bridge is left")
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		if b, _ := os.ReadFile(file); bytes.Contains(b, []byte(s.dir)) {
			s.Errorf("a process is left: %q", b)
		}
	}
}

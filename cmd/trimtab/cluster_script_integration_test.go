//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

	"github.com/nats-io/nats.go"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
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

// quota is what one of its cgroups has, in cores.
func (s *script) quota(path string) (float64, error) {
	at := filepath.Join(s.group, path)
	b, err := os.ReadFile(filepath.Join(at, "cpu.max"))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join(at, "cpu.cfs_quota_us"))
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%s has no limit", path)
	}
	return v / 100000, err
}

// limit gives one of its cgroups so many cores.
func (s *script) limit(path string, cores float64) {
	s.Helper()
	at, text := filepath.Join(s.group, path), strconv.Itoa(int(math.Round(cores*100000)))
	err := os.WriteFile(filepath.Join(at, "cpu.cfs_quota_us"), []byte(text), 0)
	if _, v2 := os.Stat(filepath.Join(at, "cpu.max")); v2 == nil {
		err = os.WriteFile(filepath.Join(at, "cpu.max"), []byte(text+" 100000"), 0)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// hierarchies are where its cgroups are: what limits, and what accounts.
func (s *script) hierarchies() []string {
	all := []string{s.group}
	if a := hostfs.Accounting(s.group); a != "" {
		all = append(all, a)
	}
	return all
}

const scriptPool = 1.2 // cores, in the script's trimtab.yaml

func scriptHosts() []string { return []string{"h1", "h2", "h3"} }

// watch samples all quotas until stop is called. Two readings that are equal were
// all there at one time, between them; others say nothing of a sum.
func (s *script) watch() (stop func() (samples, over int)) {
	done, result := make(chan struct{}), make(chan [2]int)
	read := func() (all map[string]float64, err error) {
		paths, _ := filepath.Glob(filepath.Join(s.group, "h*", "shop", "*@*"))
		all = map[string]float64{"h1/shop/search": 0, "h3/reports": 0}
		for _, p := range paths {
			rest, _ := filepath.Rel(s.group, p)
			all[rest] = 0
		}
		for _, h := range scriptHosts() {
			all[h] = 0
		}
		for p := range all {
			if all[p], err = s.quota(p); err != nil {
				break
			}
		}
		return all, err
	}
	go func() {
		samples, over := 0, 0
		var told map[string]float64
		for {
			select {
			case <-done:
				result <- [2]int{samples, over}
				return
			case <-time.After(5 * time.Millisecond):
			}
			first, err := read()
			again, errAgain := read()
			if err != nil || errAgain != nil || !maps.Equal(first, again) {
				continue
			}
			samples++
			given := map[string]float64{}
			for p, v := range first {
				if host, _, ok := strings.Cut(p, "/"); ok {
					given[host] += v
					given["pool"] += v
				}
			}
			bad := given["pool"] > scriptPool+1e-3
			for _, h := range scriptHosts() {
				bad = bad || given[h] > first[h]+1e-3
			}
			if bad {
				if over++; !maps.Equal(first, told) {
					s.Errorf("%v: %v is over a capacity", time.Now().UTC(), first)
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

// tellTheirUse waits until these instances of checkout have told what they use, each
// with its host. The observer may read along.
func (s *script) tellTheirUse(p *program, want ...trimtab.LoadShare) {
	s.Helper()
	site := filepath.Join(s.dir, "site")
	conn, err := nats.Connect("tls://"+s.net+".12:4222", nats.RootCAs(filepath.Join(site, "ca.pem")),
		nats.ClientCert(filepath.Join(site, "observer", "cert.pem"), filepath.Join(site, "observer", "key.pem")))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	sub, err := conn.SubscribeSync("trimtab.sample.*")
	if err != nil {
		s.Fatal(err)
	}
	told := map[trimtab.LoadShare]bool{}
	p.until("each instance tells its use", func() error {
		for {
			m, err := sub.NextMsg(time.Second)
			if err != nil {
				return fmt.Errorf("%v tell: %w", told, err)
			}
			v, _, err := codec.Decode(trimtab.KindSample, m.Data)
			if err != nil {
				s.Fatal(err)
			}
			if m := v.(*trimtab.Sample); m.Workload == "checkout" && m.Quantity == trimtab.Usage && m.Missing == "" {
				told[trimtab.LoadShare{Host: m.Host, Instance: m.Instance}] = true
			}
			if len(told) < len(want) {
				continue
			}
			for _, w := range want {
				if !told[w] || len(told) > len(want) {
					s.Fatalf("%v tell their use, want %v", told, want)
				}
			}
			return nil
		}
	})
}

// hostsOf are those that a console shows, by name.
func hostsOf(p *program) (map[string]view.Host, error) {
	var all view.Hosts
	_, body, err := p.get("/api/v1/hosts")
	if err == nil {
		err = json.Unmarshal([]byte(body), &all)
	}
	out := map[string]view.Host{}
	for _, h := range all.Hosts {
		out[h.Name] = h
	}
	return out, err
}

// have waits until the console shows what the hosts were measured to have.
func (s *script) have(console *program, want map[string]float64) {
	s.Helper()
	console.until("what the hosts have", func() error {
		all, err := hostsOf(console)
		if err != nil {
			return err
		}
		for name, cores := range want {
			if rooms := all[name].Rooms; len(rooms) != 1 || rooms[0].Capacity == nil || math.Abs(*rooms[0].Capacity-cores) > 1e-9 {
				return fmt.Errorf("%s has %+v, want %v cores", name, rooms, cores)
			}
		}
		return nil
	})
}

// instances waits until the console shows so many of checkout.
func (s *script) instances(console *program, want int) {
	s.Helper()
	console.until(fmt.Sprintf("%d instances", want), func() error {
		if e := console.explanation("checkout"); e.Instances != want {
			return fmt.Errorf("there are %d: %s", e.Instances, e.State)
		}
		return nil
	})
}

// comesAgain removes the cgroup of an instance while its service goes on in another,
// and makes it again.
func (s *script) comesAgain(console *program, path string, cores float64) {
	s.Helper()
	move := func(from, to string) {
		for _, root := range s.hierarchies() {
			b, err := os.ReadFile(filepath.Join(root, from, "cgroup.procs"))
			if err != nil {
				s.Fatal(err)
			}
			for _, pid := range strings.Fields(string(b)) {
				if err := os.WriteFile(filepath.Join(root, to, "cgroup.procs"), []byte(pid), 0); err != nil {
					s.Fatal(err)
				}
			}
			if err := os.Remove(filepath.Join(root, from)); err != nil {
				s.Fatal(err)
			}
		}
	}
	create := func(path string) {
		for _, root := range s.hierarchies() {
			if err := os.Mkdir(filepath.Join(root, path), 0o755); err != nil {
				s.Fatal(err)
			}
		}
	}
	away := filepath.Join(filepath.Dir(path), "away")
	create(away)
	move(path, away)
	s.instances(console, 1)
	create(path)
	s.limit(path, cores)
	move(away, path)
	s.instances(console, 2)
}

// A whole site on this machine, as deploy/examples/cluster.sh starts it: a workload has
// an instance on each of two hosts, plans are carried out on all hosts, an instance
// goes and comes, a host gets more, a planner and a NATS server die, the link of a
// host is cut, and no host nor the pool is ever over capacity. Then nothing is left.
func TestTheClusterScriptKeepsItsPromisesWhileThingsDie(t *testing.T) {
	s := startScript(t)
	stop := s.watch()
	var agents []*program
	planners := []*program{s.process("planner", "c1"), s.process("planner", "c2")}
	for _, h := range scriptHosts() {
		agents = append(agents, s.process("agent", h))
	}
	console := s.process("console", "c1")
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

	// Instances and hosts.
	first, second := trimtab.LoadShare{Host: "h1", Instance: "1"}, trimtab.LoadShare{Host: "h2", Instance: "2"}
	s.tellTheirUse(console, first, second)
	s.instances(console, 2)
	s.have(console, map[string]float64{"h1": 0.5, "h2": 0.4, "h3": 0.2})
	console.until("one plan moves both instances", func() error {
		plan, err := console.acting()
		moves := map[trimtab.LoadShare]bool{}
		for _, a := range plan.Actions {
			if a.Workload == "checkout" && a.Of != nil {
				moves[trimtab.LoadShare{Host: a.Host, Instance: a.Instance}] = true
			}
		}
		if err != nil || !moves[first] || !moves[second] {
			return fmt.Errorf("plan %s moves %v: %w", plan.ID(), moves, err)
		}
		return nil
	})
	console.until("a host binds", func() error {
		all, err := hostsOf(console)
		if err != nil {
			return err
		}
		for _, h := range all {
			if h.Binds > 0 {
				return nil
			}
		}
		return fmt.Errorf("none")
	})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, `pool \S+: .* of 1\.1 cores given(.|\n)*\nh1 .* of 0\.5 cores`},
		{[]string{"explain", "checkout"}, `on h1, 1 (.|\n)*on h2, 2 `},
	} {
		console.until("what the command line shows", func() error {
			code, out := console.command(c.args...)
			if code != exitDone || !regexp.MustCompile(c.want).MatchString(out) {
				return fmt.Errorf("%d: %s", code, out)
			}
			t.Log(out)
			return nil
		})
	}

	// An instance goes and comes, and a host gets more: then less is declared than the
	// hosts have together.
	const again, baseline = "h2/shop/checkout@2", 0.3
	s.comesAgain(console, again, baseline)
	s.limit("h3", 0.5)
	s.have(console, map[string]float64{"h1": 0.5, "h2": 0.4, "h3": 0.5})

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
	link := "tt" + s.run + "-h2"
	ip(t, "link", "set", link, "down")
	agents[0].until("the baseline of the host that is cut off", func() error {
		if v, err := s.quota(again); err != nil || math.Abs(v-baseline) > 1e-3 {
			return fmt.Errorf("it has %v: %v", v, err)
		}
		return nil
	})
	log := filepath.Join(s.dir, "agent-h2.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	more(agents[0], 5)
	more(agents[2], 5)
	if v, err := s.quota(again); err != nil || math.Abs(v-baseline) > 1e-3 {
		t.Errorf("the host that is cut off has %v, its baseline is %v: %v", v, baseline, err)
	}
	ip(t, "link", "set", link, "up")
	agents[1].becomesReady()
	more(agents[1], 2)
	var moved []string
	agents[1].until("a plan moves it again", func() error {
		after, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if moved = regexp.MustCompile(`msg=action .*before=(\S+) set=(\S+) status=written`).FindStringSubmatch(string(after[len(before):])); moved == nil {
			return fmt.Errorf("nothing written")
		}
		return nil
	})
	from, _ := strconv.ParseFloat(moved[1], 64)
	to, _ := strconv.ParseFloat(moved[2], 64)
	if math.Abs(from-baseline) > 1e-3 || to > from+scriptPool/10+1e-3 || to < from/2-1e-3 {
		t.Errorf("it goes on with a jump: %s", moved[0])
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

//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/quantity"
)

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
			if err := natsbus.Read(trimtab.KindSample, m, func(v trimtab.Value, _ trimtab.Origin) {
				if m := v.(*trimtab.Sample); m.Workload == "checkout" && m.Quantity == quantity.Usage && m.Missing == "" {
					told[trimtab.LoadShare{Host: m.Host, Instance: m.Instance}] = true
				}
			}); err != nil {
				s.Fatal(err)
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
			if rooms := all[name].Resources; len(rooms) != 1 || rooms[0].Capacity == nil || math.Abs(*rooms[0].Capacity-cores) > 1e-9 {
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
	t.Parallel()
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

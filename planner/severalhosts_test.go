package planner_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
)

// two is what there is, or what is needed, of cpu and memory.
type two struct{ cpu, memory float64 }

func (v *two) of(resource string) *float64 {
	if resource == "memory" {
		return &v.memory
	}
	return &v.cpu
}

// site2 is hosts with knobs of cpu and memory, which do what they are told.
type site2 struct {
	*fleet
	has    map[string]two
	audits []*trimtab.Audit // of the plans
}

func newSite2(has map[string]two) *site2 {
	return &site2{fleet: newFleet(map[trimtab.KnobID]trimtab.Amount{}, map[string]float64{}), has: has}
}

// put places an instance with both knobs.
func (s *site2) put(host, workload, instance string, now two) {
	id := at(host, workload, instance)
	s.now[id] = trimtab.Units(now.cpu)
	id.Resource = "memory"
	s.now[id] = trimtab.Units(now.memory)
}

func (s *site2) says(host string, t time.Time) *trimtab.Holding {
	h, has := s.holding(host, t), s.has[host]
	h.Capacity = map[string]float64{"cpu": has.cpu, "memory": has.memory}
	for i := range h.Targets {
		if k := &h.Targets[i]; k.Resource == "memory" {
			k.Min, k.Max = gib/64, 16*gib
		}
	}
	return h
}

// over says which host gives more than it has; "": none.
func (s *site2) over() string {
	gives := map[string]*two{}
	for id, v := range s.now {
		if gives[id.Host] == nil {
			gives[id.Host] = &two{}
		}
		*gives[id.Host].of(id.Resource) += v.Value
	}
	for host, g := range gives {
		if g.cpu > s.has[host].cpu+1e-6 || g.memory > s.has[host].memory+1 {
			return fmt.Sprintf("host %s gives %+v of %+v", host, *g, s.has[host])
		}
	}
	return ""
}

// settle runs rounds in which everything arrives, and returns the last plan that
// moves anything.
func (s *site2) settle(t interface{ Fatal(args ...any) }, p *planner.Planner, rounds int, needs map[string]two) (last *trimtab.Plan) {
	for i := range rounds {
		now := t0.Add(time.Duration(i) * time.Second)
		for _, host := range s.hosts() {
			p.Step(now, s.says(host, now))
		}
		for name, need := range needs {
			p.Step(now, both(name, now, need.cpu, need.memory))
		}
		for out := plans(p.Step(now, nil)); len(out) > 0; {
			plan := out[0]
			if len(plan.Actions) > 0 || last == nil {
				last = plan
			}
			if out = out[1:]; plan.Audit != nil {
				s.audits = append(s.audits, plan.Audit)
			}
			for _, host := range s.hosts() {
				answer := s.carryOut(plan, host, now)
				if over := s.over(); over != "" {
					t.Fatal(over)
				}
				out = append(out, plans(p.Step(now, answer))...)
			}
		}
	}
	return last
}

// effective is what a workload has of a resource: its instances serve equal parts.
func (s *site2) effective(workload, resource string) float64 {
	least, n := math.Inf(1), 0.0
	for id, v := range s.now {
		if id.Workload == workload && id.Resource == resource {
			least, n = math.Min(least, v.Value), n+1
		}
	}
	return least * n
}

// overHosts is a pool of several resources for workloads on hosts.
func overHosts(pool two, names ...string) planner.Config {
	c := several(trimtab.Act)
	c.Capacity, c.Others[0].Capacity, c.Shared, c.Step = pool.cpu, pool.memory, true, 1000
	c.Others[0].Step = 1000
	c.Workloads = nil
	for _, n := range names {
		c.Workloads = append(c.Workloads, planner.WorkloadConfig{Name: n, Mode: trimtab.Act, SLO: 0.9, Min: 0.1,
			Others: map[string]planner.Bounds{"memory": {Min: gib / 8}}})
	}
	return c
}

// a is alone on h1, b and c share h2. The pool by itself would give 3 cores to a and
// b, and 2 to c: of that h2 holds 4, and a core of h1 stays idle.
func TestSeveralResourcesAreSharedWithWhatEachHostHas(t *testing.T) {
	s := newSite2(map[string]two{"h1": {4, 8 * gib}, "h2": {4, 8 * gib}})
	for _, at := range [][2]string{{"h1", "a"}, {"h2", "b"}, {"h2", "c"}} {
		s.put(at[0], at[1], "", two{1, gib})
	}
	p := leads(t, overHosts(two{8, 16 * gib}, "a", "b", "c"))
	s.settle(t, p, 20, map[string]two{"a": {6, gib}, "b": {6, 4 * gib}, "c": {2, 4 * gib}})
	for name, want := range map[string]float64{"a": 4, "b": 2, "c": 2} {
		if got := s.effective(name, "cpu"); math.Abs(got-want) > 0.25 {
			t.Errorf("%s has %v cores, want about %v", name, got, want)
		}
	}
}

// Whatever the fleet, no host gives more of a resource than it has at any instant, and
// in the end whoever has less than it needs has a host, or a pool, that is used up.
func TestOfSeveralResourcesNoHostIsOverAndNothingOfUseIsIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite2(map[string]two{})
		hosts := []string{"h1", "h2", "h3"}[:rapid.IntRange(1, 3).Draw(t, "hosts")]
		pool := two{}
		for _, h := range hosts {
			has := two{float64(rapid.IntRange(20, 60).Draw(t, "cpu")) / 10, float64(rapid.IntRange(20, 60).Draw(t, "memory")) / 4 * gib}
			s.has[h] = has
			pool.cpu, pool.memory = pool.cpu+has.cpu, pool.memory+has.memory
		}
		if rapid.Bool().Draw(t, "less by the file") {
			pool.cpu *= 0.6
		}
		names, needs := []string{"a", "b", "c", "d"}, map[string]two{}
		for _, n := range names {
			needs[n] = two{float64(rapid.IntRange(5, 80).Draw(t, "needs")) / 10, float64(rapid.IntRange(5, 80).Draw(t, "needs")) / 4 * gib}
			for k := range rapid.IntRange(1, 4).Draw(t, "instances") {
				s.put(rapid.SampledFrom(hosts).Draw(t, "on"), n, fmt.Sprint(k), two{0.1, gib / 8})
			}
		}
		cfg := overHosts(pool, names...)
		s.settle(t, leads(t, cfg), 12, needs)
		for _, n := range names {
			if s.satisfied(n, needs[n]) || s.usedUp(n, pool) {
				continue
			}
			t.Fatalf("%s has %v cores and %v GiB of %+v, and nothing that it uses is used up: %v of %+v, pool %+v",
				n, s.effective(n, "cpu"), s.effective(n, "memory")/gib, needs[n], s.now, s.has, pool)
		}
	})
}

// slackOf is what rounding, to a unit for each workload and a quantum for each
// instance, may leave of a resource.
func slackOf(resource string) float64 {
	if resource == "memory" {
		return 6 * gib / 64
	}
	return 6 * 0.1
}

func (s *site2) satisfied(workload string, need two) bool {
	// The demand is a bit less than the need: where the lower bound is 0.9.
	return s.effective(workload, "cpu") >= 0.85*need.cpu && s.effective(workload, "memory") >= 0.85*need.memory
}

// usedUp reports whether a host of the workload, or the pool, has nothing left of a
// resource.
func (s *site2) usedUp(workload string, pool two) bool {
	for _, resource := range []string{"cpu", "memory"} {
		total, by := 0.0, map[string]float64{}
		for id, v := range s.now {
			if id.Resource == resource {
				total, by[id.Host] = total+v.Value, by[id.Host]+v.Value
			}
		}
		if total >= *pool.of(resource)-slackOf(resource) {
			return true
		}
		for id := range s.now {
			has := s.has[id.Host]
			if id.Workload == workload && id.Resource == resource && by[id.Host] >= *has.of(resource)-slackOf(resource) {
				return true
			}
		}
	}
	return false
}

func TestAHostThatClaimsToHaveEverythingLeavesTheOthersTheirLimits(t *testing.T) {
	s := newSite2(map[string]two{"h1": {1e15, 1e300}, "h2": {2, 8 * gib}})
	for _, at := range [][2]string{{"h1", "a"}, {"h2", "b"}} {
		s.put(at[0], at[1], "", two{1, gib})
	}
	p := leads(t, overHosts(two{8, 16 * gib}, "a", "b"))
	plan := s.settle(t, p, 20, map[string]two{"a": {6, gib}, "b": {6, 4 * gib}})
	if a, b := s.effective("a", "cpu"), s.effective("b", "cpu"); a < 5 || math.Abs(b-2) > 0.1 {
		t.Errorf("a has %v cores and b %v, want the 2 of h2 for b", a, b)
	}
	for _, action := range plan.Actions {
		if got := action.Why.Binding.String(); action.Workload == "b" && got != "host: h2" {
			t.Errorf("b is bound by %q", got)
		}
	}
}

// h2 is full, and most of h1 is free: b, which runs on h2, can get nothing of that.
func TestTheAuditCountsAsSlackWhatIsFreeOnTheHostsOfAWorkload(t *testing.T) {
	s := newSite2(map[string]two{"h1": {6, 8 * gib}, "h2": {2, 8 * gib}})
	for _, at := range [][2]string{{"h1", "a"}, {"h2", "b"}} {
		s.put(at[0], at[1], "", two{1, gib})
	}
	p := leads(t, overHosts(two{8, 16 * gib}, "a", "b"))
	s.settle(t, p, 20, map[string]two{"a": {1, gib}, "b": {6, 4 * gib}})
	first, last := s.audits[0], s.audits[len(s.audits)-1]
	if first.Now.Slack < 0.1 {
		t.Errorf("at first %+v, want that b could have more of h2", first.Now)
	}
	if last.Now.Slack > 0.02 || last.Target.Slack > 0.02 {
		t.Errorf("in the end %+v, wanted %+v: want no slack, nothing is free on h2", last.Now, last.Target)
	}
}

package planner_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// host is an actuator that keeps the action contract: it refuses what is not
// newer than what it accepted, what ran out, and what expects another value.
type host struct {
	name            string
	epoch, sequence uint64
	step            int
	// now is by target, and by target and resource where that is not cpu.
	now   map[string]trimtab.Amount
	names []string
	// more are the names that have a knob of memory too.
	more []string
	// slow hosts write what takes effect later, or never; pending are the values
	// in force of what did not yet.
	slow    bool
	pending map[string]trimtab.Amount
}

// inForce returns what a knob gives.
func (h *host) inForce(key string) trimtab.Amount {
	if v, ok := h.pending[key]; ok {
		return v
	}
	return h.now[key]
}

// effective is inForce as a message says it.
func (h *host) effective(key string) *trimtab.Amount {
	if v, ok := h.pending[key]; ok && v != h.now[key] {
		return &v
	}
	return nil
}

func knobKey(target, resource string) string {
	if resource == "cpu" {
		return target
	}
	return target + " " + resource
}

// carryOut executes a plan and answers; effect is called after every write,
// which fails when it returns false.
func (h *host) carryOut(p *trimtab.Plan, now time.Time, effect func(target string) (fails, readable bool)) *trimtab.Outcome {
	o := &trimtab.Outcome{Pool: p.Pool, Host: h.name, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: now}
	newer := p.Epoch > h.epoch || p.Epoch == h.epoch && (p.Sequence > h.sequence || p.Sequence == h.sequence && p.Step > h.step)
	if !newer || now.Sub(p.Time) > p.Lease.Duration() {
		o.Refused = "not newer, or too late"
		return o
	}
	h.epoch, h.sequence, h.step = p.Epoch, p.Sequence, p.Step
	for _, a := range p.Actions {
		key := knobKey(a.Workload, a.Resource)
		before, ok := h.now[key]
		if a.Host != h.name || !ok {
			continue
		}
		r := trimtab.Result{KnobID: a.KnobID, Before: before, Asked: a.Set, Found: before, Effective: h.effective(key), Known: true, Status: trimtab.Recommended}
		switch {
		case a.Mode != trimtab.Act:
		case !before.Equal(a.Expect, 1e-9):
			r.Status, r.Reason = trimtab.Refused, "found another value"
		default:
			r.Status = trimtab.Written
			fails, readable := effect(a.Workload)
			if fails {
				r.Status = trimtab.Failed
			} else {
				if _, waits := h.pending[key]; h.slow && !waits {
					h.pending[key] = before
				}
				h.now[key] = a.Set
			}
			r.Found, r.Effective, r.Known = h.now[key], h.effective(key), readable
			if r.Effective != nil && !fails {
				r.Status = trimtab.Pending
			}
			if !readable {
				r.Status, r.Found, r.Effective = trimtab.Failed, trimtab.Amount{}, nil
			}
		}
		o.Results = append(o.Results, r)
	}
	return o
}

func (h *host) holding(now time.Time) *trimtab.Holding {
	out := &trimtab.Holding{Host: h.name, Time: now, Epoch: h.epoch, Sequence: h.sequence}
	for _, n := range h.names {
		out.Targets = append(out.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: out.Pool, Host: out.Host, Workload: n, Resource: "cpu"}, Knob: "test", Now: h.now[n], Effective: h.effective(n), Baseline: trimtab.Unlimited(), Min: 0.1, Max: 8})
	}
	for _, n := range h.more {
		out.Targets = append(out.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: out.Pool, Host: out.Host, Workload: n, Resource: "memory"}, Knob: "test", Now: h.now[n+" memory"], Effective: h.effective(n + " memory"), Baseline: trimtab.Unlimited(), Min: gib / 8, Max: 16 * gib})
	}
	return out
}

const gib = 1 << 30

// world is planners, hosts and a network that loses, repeats and reorders.
type world struct {
	t        *rapid.T
	cfg      planner.Config
	now      time.Time
	planners []*planner.Planner
	epoch    uint64
	hosts    []*host
	// down are plans on their way to hosts[i], up what is on its way to the
	// planners.
	down [][]*trimtab.Plan
	up   []trimtab.Value
	// cap is what may be in use of cpu, capMemory of memory.
	cap, capMemory float64
	// lowered sees every fall that a plan asks for.
	lowered func(a *trimtab.Action)
}

// total is what all limits on cpu add up to.
func (w *world) total() float64 { return w.totalOf("cpu") }

func (w *world) memory() float64 {
	if len(w.cfg.Others) == 0 {
		return 0
	}
	return w.totalOf("memory")
}

func (w *world) totalOf(resource string) float64 {
	sum := 0.0
	for _, h := range w.hosts {
		for key := range h.now {
			a := h.inForce(key)
			if strings.HasSuffix(key, " memory") != (resource == "memory") {
				continue
			}
			if a.Unlimited { // it takes what others leave; what it was lowered to counts
				a = h.now[key]
			}
			if !a.Unlimited {
				sum += a.Value
			}
		}
	}
	return sum
}

func (w *world) hand(p *planner.Planner, v trimtab.Value) {
	for _, out := range p.Step(w.now, v) {
		plan := out.(*trimtab.Plan)
		if err := plan.Validate(); err != nil {
			w.t.Fatal(err)
		}
		for i := range plan.Actions {
			if a := &plan.Actions[i]; a.Set.Less(a.Expect) && w.lowered != nil {
				w.lowered(a)
			}
		}
		for i := range w.hosts {
			w.down[i] = append(w.down[i], plan)
		}
	}
}

func (w *world) lead() {
	p, err := planner.New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.epoch++
	w.planners = append(w.planners, p)
	w.hand(p, &trimtab.Leader{Pool: "p", Epoch: w.epoch})
}

// deliver takes one message from a queue, mostly the oldest, and may leave it
// there to be delivered again.
func take[V any](t *rapid.T, q *[]V) V {
	i := 0
	if rapid.IntRange(0, 3).Draw(t, "reorder") == 0 {
		i = rapid.IntRange(0, len(*q)-1).Draw(t, "which")
	}
	v := (*q)[i]
	if rapid.IntRange(0, 4).Draw(t, "again") > 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	return v
}

func (w *world) step() {
	t := w.t
	for _, h := range w.hosts {
		if h.slow && rapid.IntRange(0, 3).Draw(t, "takes effect") == 0 {
			clear(h.pending)
		}
	}
	switch op := rapid.IntRange(0, 19).Draw(t, "op"); {
	case op < 6: // a plan arrives at a host
		i := rapid.IntRange(0, len(w.hosts)-1).Draw(t, "host")
		if len(w.down[i]) == 0 {
			return
		}
		plan := take(t, &w.down[i])
		if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
			return
		}
		before := maps.Clone(w.hosts[i].now)
		o := w.hosts[i].carryOut(plan, w.now, func(target string) (bool, bool) {
			return rapid.IntRange(0, 9).Draw(t, "fails") == 0, rapid.IntRange(0, 9).Draw(t, "unreadable") > 0
		})
		for key, was := range before { // the first limit of a workload is no rise
			if now := w.hosts[i].now[key]; was.Unlimited && !now.Unlimited {
				if strings.HasSuffix(key, " memory") {
					w.capMemory = math.Max(w.capMemory, w.memory())
				} else {
					w.cap = math.Max(w.cap, w.total())
				}
			}
		}
		if got := w.total(); got > math.Max(w.cap, w.cfg.Capacity)+1e-6 {
			t.Fatalf("%v in use, capacity %v", got, w.cfg.Capacity)
		}
		w.cap = math.Min(w.cap, w.total())
		if len(w.cfg.Others) > 0 {
			if got := w.memory(); got > math.Max(w.capMemory, w.cfg.Others[0].Capacity)+1 {
				t.Fatalf("%v of memory in use, capacity %v", got, w.cfg.Others[0].Capacity)
			}
			w.capMemory = math.Min(w.capMemory, w.memory())
		}
		w.up = append(w.up, o)
	case op < 12: // an answer arrives
		if len(w.up) == 0 {
			return
		}
		v := take(t, &w.up)
		if rapid.IntRange(0, 9).Draw(t, "lost") > 0 {
			for _, p := range w.planners {
				w.hand(p, v)
			}
		}
	case op < 14:
		h := w.hosts[rapid.IntRange(0, len(w.hosts)-1).Draw(t, "host")]
		w.up = append(w.up, h.holding(w.now))
	case op < 17: // time passes
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 1200).Draw(t, "ms")) * time.Millisecond)
		for _, p := range w.planners {
			w.hand(p, nil)
		}
	case op < 18:
		w.estimate()
	case rapid.IntRange(0, 3).Draw(t, "dies") == 0: // the planner dies; or is cut off and goes on
		if rapid.Bool().Draw(t, "split") || len(w.planners) > 2 {
			w.planners = nil
		}
		w.lead()
	case op == 19:
		n := w.cfg.Workloads[rapid.IntRange(0, len(w.cfg.Workloads)-1).Draw(t, "w")].Name
		for _, p := range w.planners {
			w.hand(p, &trimtab.Alert{Workload: n, Name: "slow", Group: n, Firing: true, Time: w.now})
		}
	}
}

// estimate gives every planner a new curve of every workload.
func (w *world) estimate() {
	for _, c := range w.cfg.Workloads {
		e := estimate(c.Name, w.now, ramp(rapid.Float64Range(0.2, 6).Draw(w.t, "full")))
		if len(c.Others) > 0 && rapid.IntRange(0, 9).Draw(w.t, "learnt") > 0 {
			e.Curves = map[string]*trimtab.Curve{"memory": ramp(rapid.Float64Range(0.2*gib, 12*gib).Draw(w.t, "full of memory"))}
		}
		for _, p := range w.planners {
			w.hand(p, e)
		}
	}
}

func newWorld(t *rapid.T) *world {
	cfg := planner.Config{Pool: "p", Resource: "cpu", Capacity: 8, Unit: 0.1, Round: time.Second, Lease: time.Hour, Confirm: 2 * time.Second, StaleAfter: time.Hour,
		Policy: rapid.SampledFrom([]policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Egalitarian{}, welfare.Social{}, welfare.TieBreak{Objective: welfare.Egalitarian{}}, dominant.Policy{}}).Draw(t, "policy"),
		Guard:  guard.Config{Disabled: rapid.Bool().Draw(t, "unguarded"), Window: time.Second, Lowered: 1}}
	several := rapid.IntRange(0, 2).Draw(t, "several") == 0
	if several {
		cfg.Policy, cfg.Others = dominant.Policy{}, []planner.Resource{{Name: "memory", Capacity: 16 * gib, Unit: gib / 64}}
	}
	w := &world{t: t, now: t0}
	hosts, slow := rapid.IntRange(1, 3).Draw(t, "hosts"), rapid.Bool().Draw(t, "slow")
	for i := range hosts {
		w.hosts = append(w.hosts, &host{name: fmt.Sprint("h", i), now: map[string]trimtab.Amount{}, pending: map[string]trimtab.Amount{}, slow: slow && rapid.Bool().Draw(t, "slow host")})
	}
	n := rapid.IntRange(2, 5).Draw(t, "workloads")
	for i := range n {
		name := fmt.Sprint("w", i)
		mode := rapid.SampledFrom([]trimtab.Mode{trimtab.Act, trimtab.Act, trimtab.Act, trimtab.Recommend, trimtab.Off}).Draw(t, "mode")
		cfg.Workloads = append(cfg.Workloads, planner.WorkloadConfig{Name: name, Mode: mode, SLO: 0.9, Min: 0.1})
		h := w.hosts[i%hosts]
		h.names = append(h.names, name)
		h.now[name] = trimtab.Units(float64(rapid.IntRange(1, 80/n).Draw(t, "has")) / 10)
		if rapid.IntRange(0, 9).Draw(t, "unlimited") == 0 {
			h.now[name] = trimtab.Unlimited()
		}
		if several && rapid.IntRange(0, 4).Draw(t, "memory knob") > 0 {
			cfg.Workloads[i].Others = map[string]planner.Bounds{"memory": {Min: gib / 8}}
			h.more = append(h.more, name)
			h.now[name+" memory"] = trimtab.Units(float64(rapid.IntRange(1, 16*8/n).Draw(t, "has of memory")) * gib / 8)
		}
	}
	w.cfg, w.down = cfg, make([][]*trimtab.Plan, hosts)
	w.cap, w.capMemory = w.total(), w.memory()
	w.lead()
	for _, h := range w.hosts {
		w.hand(w.planners[0], h.holding(w.now))
	}
	w.estimate()
	return w
}

// R14, R16, R7: loss, repetition, reordering, failing writes, writes that take
// effect late, planners that die between any two effects or go on with a stale epoch.
func TestTheSumNeverExceedsTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			w.step()
		}
	})
}

package planner_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
	"github.com/trimtab/trimtab/quantity"
)

// TestRoundsAsFiles plays the files of testdata/rounds: who has what, what is known of each,
// and which plans come of it. After a change of the planner, -rewrite writes what comes now;
// read the difference. Commands:
//
//	pool [objective=NAME,…] [capacity=8] [shared [reserves]] [limited] [mode=recommend] [each=CORES]
//	    begins anew with a pool of three workloads, on hosts that have so much each; a line for each:
//	    NAME has=CORES|nolimit [min=CORES] [host=h1] [mode=recommend] [unlimited]
//	    limited: something before each can limit its requests in service, but for unlimited ones.
//	    Of several objectives all must lead to the same plans, or each is printed.
//	rounds [n=1] [every=11s]
//	    plays rounds, with what is known of each workload; a line for each:
//	    NAME needs=CORES [met=1] [met-with=CORES] [backlog=0] [cost=0.01] [starved=SECONDS]
//	         [stopped=SECONDS] [late=M/N] [uses=CORES] [never] [rates] [unknown] [stands-in=NAME]
//	         [takes=SECONDS]
//	    met is the share of requests in time, and 1 once the workload has met-with; the SLO is 0.9.
//	    late: of the N requests since the last report, M were late. unknown: there is no estimate.
//	    never: by its curve no amount meets the SLO. rates: what waits is not measured.
//	    takes: how long 95% of its requests took at most.
//	    stands-in: its signals stopped, and something else says what it needs.
//	hears [after=3s]
//	    the same, without the end of a round: only what is urgent is planned for.
//	alert NAME [over]
//	    an alert on NAME fires, or is over.
//	bar NAME [over]
//	    somebody else sets what NAME has, 2.666 cores, or does not any more.
//
// A host carries out every plan at once. What is printed: each plan with its time, cause and
// moves, and then why each workload has what it has.
func TestRoundsAsFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/rounds", func(t *testing.T, path string) {
		var all []*scripted
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "pool" {
				all = newPools(t, d)
				return ""
			}
			var printed []string
			for _, p := range all {
				printed = append(printed, p.do(t, d))
			}
			if slices.Equal(printed, slices.Repeat(printed[:1], len(printed))) {
				return printed[0]
			}
			var out strings.Builder
			for i, p := range all {
				fmt.Fprintf(&out, "with %s:\n%s", p.objective, printed[i])
			}
			return out.String()
		})
	})
}

// byName are the objectives by the names that files have for them.
var byName = map[string]policy.Policy{
	"njc": fair.NJCPolicy{}, "resource-fair": fair.ResourceFair{}, "egalitarian": welfare.Egalitarian{}, "social": welfare.Social{},
}

// scripted is one pool with one objective.
type scripted struct {
	*planner.Planner
	objective string
	shared    bool
	// found is what each began with, where its share reserves room; nil: none does.
	found    map[string]trimtab.Amount
	now      time.Time
	sequence uint64
	has      map[string]trimtab.Amount
	// limits are those of requests in service.
	limits map[string]trimtab.Amount
	capped map[string]bool
	barred map[string]string
	// host is where each workload runs, and each what hosts say that they have; 0: nothing.
	host map[string]string
	each float64
	// why is what was said last of each, and told what was printed.
	why  map[string]string
	told strings.Builder
	// known is what was told last of each, and heard is given every plan; nil: nobody.
	known map[string]*trimtab.Estimate
	heard func(*trimtab.Plan)
}

func newPools(t *testing.T, d *datadriven.TestData) (all []*scripted) {
	t.Helper()
	mode := trimtab.Mode(valueOf(d.CmdArgs, "mode", string(trimtab.Act))[0])
	for _, name := range valueOf(d.CmdArgs, "objective", "njc") {
		objective, ok := byName[name]
		if !ok {
			d.Fatalf(t, "no objective %q", name)
		}
		cfg := pool(objective, mode)
		cfg.Capacity = number(t, d.CmdArgs, "capacity", cfg.Capacity)
		cfg.Guard, cfg.Round, cfg.Urgent, cfg.Step = guard.Config{}, 10*time.Second, 2*time.Second, 80
		p := &scripted{objective: name, shared: d.HasArg("shared"), now: t0, has: map[string]trimtab.Amount{}, limits: map[string]trimtab.Amount{}, capped: map[string]bool{}, barred: map[string]string{}, why: map[string]string{},
			known: map[string]*trimtab.Estimate{}, host: map[string]string{}, each: number(t, d.CmdArgs, "each", 0)}
		lines(t, d, func(name string, args []datadriven.CmdArg) {
			if p.has[name] = trimtab.Unlimited(); !has(args, "nolimit") {
				p.has[name] = trimtab.Units(number(t, args, "has", 0))
			}
			p.host[name] = valueOf(args, "host", "h1")[0]
			for i := range cfg.Workloads {
				if w := &cfg.Workloads[i]; w.Name == name {
					w.Min, w.Mode = number(t, args, "min", w.Min), trimtab.Mode(valueOf(args, "mode", string(w.Mode))[0])
					if d.HasArg("limited") && !has(args, "unlimited") {
						w.Admit, p.limits[name] = map[string]planner.Admit{trimtab.Concurrency: {Max: 1000}}, trimtab.Unlimited()
					}
				}
			}
		})
		if d.HasArg("reserves") {
			p.found = maps.Clone(p.has)
		}
		var err error
		if p.Planner, err = planner.New(cfg); err != nil {
			d.Fatalf(t, "%v", err)
		}
		p.Step(p.now, &trimtab.Leader{Pool: "p", Epoch: 1})
		p.hold()
		all = append(all, p)
	}
	return all
}

// lines calls do for each line of the input.
func lines(t *testing.T, d *datadriven.TestData, do func(name string, args []datadriven.CmdArg)) {
	t.Helper()
	for _, line := range strings.Split(d.Input, "\n") {
		name, args, err := datadriven.ParseLine(line)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if name != "" {
			do(name, args)
		}
	}
}

// valueOf returns the values of an argument, or what they are where it is not there.
func valueOf(args []datadriven.CmdArg, key string, none ...string) []string {
	for _, a := range args {
		if a.Key == key {
			return a.Vals
		}
	}
	return none
}

func has(args []datadriven.CmdArg, key string) bool {
	return slices.ContainsFunc(args, func(a datadriven.CmdArg) bool { return a.Key == key })
}

// number returns the value of an argument, or what it is where there is none.
func number(t *testing.T, args []datadriven.CmdArg, key string, none float64) float64 {
	t.Helper()
	if !has(args, key) {
		return none
	}
	v, err := strconv.ParseFloat(strings.Join(valueOf(args, key), " "), 64)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return v
}

// do carries out one command and returns what is printed of it.
func (p *scripted) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	p.told.Reset()
	switch d.Cmd {
	case "alert":
		name := d.CmdArgs[0].Key
		p.carryOut(p.Step(p.now, &trimtab.Alert{Workload: name, Name: "Slow", Group: name, Fingerprint: name, Firing: !d.HasArg("over"), Time: p.now}))
		return p.told.String()
	case "bar":
		name := d.CmdArgs[0].Key
		if delete(p.barred, name); !d.HasArg("over") {
			p.barred[name], p.capped[name], p.has[name] = "somebody else sets it", false, trimtab.Units(2.666)
		}
		p.hold()
		return ""
	case "hears":
		p.hears(t, d, p.after(t, d, "after", 3*time.Second), false)
		return p.told.String()
	case "rounds":
		n, every := int(number(t, d.CmdArgs, "n", 1)), p.after(t, d, "every", 11*time.Second)
		for range n {
			p.hears(t, d, every, true)
		}
		for _, name := range slices.Sorted(maps.Keys(p.has)) {
			fmt.Fprintf(&p.told, "%s has %v: %s\n", name, p.has[name], p.why[name])
			if limit, ok := p.limits[name]; ok {
				fmt.Fprintf(&p.told, "%s has %v in service: %s\n", name, limit, p.why[name+inService])
			}
		}
		return p.told.String()
	}
	d.Fatalf(t, "no command %q", d.Cmd)
	return ""
}

func (p *scripted) after(t *testing.T, d *datadriven.TestData, key string, none time.Duration) time.Duration {
	t.Helper()
	v, err := time.ParseDuration(valueOf(d.CmdArgs, key, none.String())[0])
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

// hears lets time pass, and tells the planner what is known then.
func (p *scripted) hears(t *testing.T, d *datadriven.TestData, after time.Duration, ends bool) {
	t.Helper()
	p.now = p.now.Add(after)
	p.carryOut(p.hold())
	lines(t, d, func(name string, args []datadriven.CmdArg) { p.carryOut(p.Step(p.now, p.estimate(t, name, args))) })
	if ends {
		p.carryOut(p.Step(p.now, nil))
	}
}

// hold tells what each host holds.
func (p *scripted) hold() (out []trimtab.Value) {
	values := map[string]float64{}
	for name, v := range p.has {
		values[name] = v.Value
	}
	for _, host := range slices.Compact(slices.Sorted(maps.Values(p.host))) {
		h := holding(p.now, 1, p.sequence, values)
		h.Host, h.Targets = host, slices.DeleteFunc(h.Targets, func(k trimtab.KnobState) bool { return p.host[k.Workload] != host })
		for _, name := range slices.Sorted(maps.Keys(p.limits)) {
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Host: host, Workload: name, Resource: trimtab.Concurrency}, Knob: "test", Now: p.limits[name], Baseline: trimtab.Unlimited(), Since: p.now, Min: 1, Max: 1000})
		}
		if p.each > 0 {
			h.Capacity = map[string]float64{"cpu": p.each}
		}
		for i := range h.Targets {
			k := &h.Targets[i]
			if k.Resource == trimtab.Concurrency {
				continue
			}
			k.Host, k.Now, k.Shared, k.Capped = host, p.has[k.Workload], p.shared, p.capped[k.Workload]
			k.ReadOnly = p.barred[k.Workload]
			if p.found != nil {
				k.Reserves, k.Baseline = true, p.found[k.Workload]
			}
		}
		out = append(out, p.Step(p.now, h)...)
	}
	return out
}

func (p *scripted) estimate(t *testing.T, name string, args []datadriven.CmdArg) *trimtab.Estimate {
	t.Helper()
	if p.known[name] = nil; has(args, "unknown") {
		return uses(name, p.now, number(t, args, "uses", -1))
	}
	met := number(t, args, "met", 1)
	if v := p.has[name]; has(args, "met-with") && (v.Unlimited || v.Value >= number(t, args, "met-with", 0)) {
		met = 1
	}
	e := asks(p.now, name, number(t, args, "needs", 0), number(t, args, "backlog", 0), met)
	*e.Cost = number(t, args, "cost", *e.Cost)
	if v := number(t, args, "takes", 0); v > 0 {
		e.Latency = map[string]trimtab.Seconds{"p95": trimtab.Seconds(v)}
	}
	e.Starved = trimtab.Seconds(number(t, args, "starved", 0))
	if v := number(t, args, "uses", -1); v >= 0 {
		e.Inputs = append(e.Inputs, trimtab.Input{Name: string(quantity.Usage), Value: v, Age: 1})
	}
	if has(args, "stands-in") {
		e.Hold, e.Performance = &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans for 12s", Input: "load"}, nil
		e.Fallback = valueOf(args, "stands-in")[0]
	}
	if has(args, "stopped") {
		had := p.has[name].Value
		e.Backlog, e.Allocation, e.Stopped = nil, &had, trimtab.Seconds(number(t, args, "stopped", 0))
	}
	if has(args, "late") {
		var late, of float64
		if _, err := fmt.Sscanf(valueOf(args, "late")[0], "%f/%f", &late, &of); err != nil {
			t.Fatalf("late: %v", err)
		}
		e.Backlog, e.Newer = nil, &trimtab.Part{Requests: of, Under: of - late}
	}
	if has(args, "never") {
		for i := range e.Curve.Knots {
			b := &e.Curve.Knots[i].Band
			b.Lower, b.Mean, b.Upper = min(b.Lower, 0.8), min(b.Mean, 0.85), min(b.Upper, 0.89)
		}
	}
	if has(args, "rates") {
		e.Backlog = nil
	}
	p.known[name] = e
	return e
}

// carryOut prints plans and has the host do what they say, to the last of their steps.
func (p *scripted) carryOut(values []trimtab.Value) {
	for queue := plansOf(values); len(queue) > 0; queue = queue[1:] {
		plan := queue[0]
		p.print(plan)
		if p.heard != nil {
			p.heard(plan)
		}
		for _, a := range plan.Actions {
			if a.Resource == trimtab.Concurrency {
				p.why[a.Workload+inService], p.limits[a.Workload] = a.Why.Summary, a.Set
				continue
			}
			p.why[a.Workload] = a.Why.Summary
			if a.Mode == trimtab.Act {
				p.has[a.Workload], p.capped[a.Workload] = a.Set, a.Capped
			}
		}
		for _, held := range []map[string]trimtab.Held{plan.Unmoved, plan.Held} {
			for name, why := range held {
				p.why[name] = why.Text
			}
		}
		p.sequence = plan.Sequence
		for _, host := range slices.Compact(slices.Sorted(maps.Values(p.host))) {
			o := done(plan, p.now)
			o.Host, o.Results = host, slices.DeleteFunc(o.Results, func(r trimtab.Result) bool { return r.Host != host })
			queue = append(queue, plansOf(p.Step(p.now, o))...)
		}
		p.hold()
	}
}

// inService follows the name of a workload where its limit of requests in service is meant.
const inService = " in service"

// print prints a plan that moves somebody.
func (p *scripted) print(plan *trimtab.Plan) {
	var moves []string
	for _, a := range plan.Actions {
		move := fmt.Sprintf("%s %v -> %v", a.Workload, a.Expect, a.Set)
		if a.Resource == trimtab.Concurrency {
			move = fmt.Sprintf("%s%s %v -> %v", a.Workload, inService, a.Expect, a.Set)
		}
		switch was := p.capped[a.Workload]; {
		case a.Capped && !was:
			move += " and capped"
		case was && !a.Capped:
			move += " and not capped any more"
		}
		if a.Mode == trimtab.Recommend {
			move += " advised"
		}
		moves = append(moves, move)
	}
	if len(moves) > 0 {
		fmt.Fprintf(&p.told, "%v, %s, step %d: %s\n", p.now.Sub(t0), plan.Cause, plan.Step, strings.Join(moves, ", "))
	}
}

// uses is an estimate of a workload that is not planned for, with what it uses; < 0: not known.
func uses(name string, at time.Time, cores float64) *trimtab.Estimate {
	e := &trimtab.Estimate{Workload: name, Time: at, Model: "test/1", Hold: &trimtab.Held{Code: codes.HeldMissing, Text: "no load from spans"}}
	if cores >= 0 {
		e.Inputs = []trimtab.Input{{Name: string(quantity.Usage), Value: cores, Age: 1}}
	}
	return e
}

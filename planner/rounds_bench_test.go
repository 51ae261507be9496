package planner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// BenchmarkRoundsOverHosts is a whole round, with its ledger, guard, spreading and
// reasons, of a pool that has enough and of one that has half of what is needed: ms
// of the processor for the decision and its shrinks, for the outcomes of all hosts
// and the grows that the last of them releases, and for one holding; and the bytes
// and actions of the plan.
func BenchmarkRoundsOverHosts(b *testing.B) {
	for _, size := range [][2]int{{100, 10}, {1000, 100}, {10000, 1000}} {
		for _, objective := range []policy.Policy{fair.ResourceFair{}, fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{MoveCost: 0.05}, dominant.Policy{}} {
			for _, part := range []float64{1, 0.5} {
				b.Run(fmt.Sprintf("%s/%v/%dx%dx20", objective.Name(), part, size[0], size[1]), func(b *testing.B) {
					roundsOverHosts(b, objective, part, size[0], size[1])
				})
			}
		}
	}
}

// roundsOverHosts plans for n workloads that need about n, on hosts with a tenth more
// than a pool that has a part of that.
func roundsOverHosts(b *testing.B, objective policy.Policy, part float64, n, hosts int) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	pool := part * float64(n)
	cfg := planner.Config{Pool: "p", Resource: "cpu", Capacity: pool, Unit: 0.01, Step: 10, Round: 10 * time.Second, Lease: time.Minute, Policy: objective}
	f := fleetOf(hosts, 1.1*pool/float64(hosts))
	for i := range n {
		name := fmt.Sprintf("w%05d", i)
		cfg.Workloads = append(cfg.Workloads, planner.WorkloadConfig{Name: name, Mode: trimtab.Act, SLO: 0.9, Min: 0.001, Max: 1})
		for k := range 20 {
			f.put(f.hosts[(i*7+k*(hosts/10+1))%hosts], name, fmt.Sprint(k), part*0.05)
		}
	}
	p := leads(b, cfg)
	now := t0.Add(-5 * time.Second) // the first plan goes out while the term is young
	var holdings, rounds, answers time.Duration
	bytes, actions, gap := 0, 0, 0.0
	for b.Loop() {
		now = now.Add(10 * time.Second)
		said := f.holdings(now)
		holdings += f.steps(p, now, said, nil)
		for i := range cfg.Workloads {
			p.Step(now, estimate(cfg.Workloads[i].Name, now, ramp(0.3+1.6*r.Float64())))
		}
		var out []*trimtab.Plan
		rounds += f.steps(p, now, []trimtab.Value{nil}, &out)
		for k := 0; k < len(out); k++ { // grows come with the answers
			answers += f.steps(p, now, f.carryOut(now, out[k]), &out)
			actions += len(out[k].Actions)
			if out[k].Gap != nil {
				gap = max(gap, *out[k].Gap)
			}
			text, err := json.Marshal(out[k])
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(text)
		}
	}
	per := func(d time.Duration, n int) float64 { return 1e3 * d.Seconds() / float64(n) }
	b.ReportMetric(per(rounds, b.N), "ms/round")
	b.ReportMetric(per(answers, b.N), "ms/answers")
	b.ReportMetric(per(holdings, b.N*hosts), "ms/holding")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/round")
	b.ReportMetric(float64(actions)/float64(b.N), "actions/round")
	b.ReportMetric(100*gap, "gap_%")
}

// benchFleet is hosts that do what they are told.
type benchFleet struct {
	hosts []*trimtab.Holding
	at    map[trimtab.KnobID]*trimtab.KnobState
}

func fleetOf(hosts int, capacity float64) *benchFleet {
	f := &benchFleet{at: map[trimtab.KnobID]*trimtab.KnobState{}}
	for h := range hosts {
		f.hosts = append(f.hosts, &trimtab.Holding{Pool: "p", Host: fmt.Sprintf("h%04d", h), LeaseLeft: 60, Capacity: map[string]float64{"cpu": capacity}})
	}
	return f
}

// put places an instance.
func (f *benchFleet) put(h *trimtab.Holding, workload, instance string, amount float64) {
	h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: h.Host, Workload: workload, Instance: instance, Resource: "cpu"},
		Knob: "bench", Now: trimtab.Units(amount), Baseline: trimtab.Units(amount), Since: t0, Min: 0.001, Max: 1})
}

// holdings is what the hosts say: values of their own, as if they had travelled.
func (f *benchFleet) holdings(now time.Time) (said []trimtab.Value) {
	for _, h := range f.hosts {
		h.Time = now
		out := *h
		out.Targets = slices.Clone(h.Targets)
		said = append(said, &out)
		for i := range h.Targets {
			f.at[h.Targets[i].KnobID] = &h.Targets[i]
		}
	}
	return said
}

// carryOut sets what a plan says and returns the outcomes.
func (f *benchFleet) carryOut(now time.Time, p *trimtab.Plan) (answers []trimtab.Value) {
	by := map[string]*trimtab.Outcome{}
	for _, h := range f.hosts {
		h.Epoch, h.Sequence = p.Epoch, p.Sequence
		by[h.Host] = &trimtab.Outcome{Pool: "p", Host: h.Host, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: now.Add(time.Second)}
		answers = append(answers, by[h.Host])
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		f.at[a.KnobID].Now = a.Set
		by[a.Host].Results = append(by[a.Host].Results, trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Found: a.Set, Known: true})
	}
	return answers
}

// steps hands values to a planner, notes its plans, and returns what it took of the
// processor.
func (f *benchFleet) steps(p *planner.Planner, now time.Time, in []trimtab.Value, out *[]*trimtab.Plan) time.Duration {
	from := processorTime()
	for _, v := range in {
		if made := plans(p.Step(now, v)); out != nil {
			*out = append(*out, made...)
		}
	}
	return processorTime() - from
}

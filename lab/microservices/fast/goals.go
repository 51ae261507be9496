package fast

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab/lab"
)

// Goal is one of the goals G1 to G9 of the design, beside what its prototype reached.
type Goal struct {
	ID        string `json:"id"`
	Demand    string `json:"demand"`
	Here      string `json:"here"`
	Prototype string `json:"prototype"`
	// Met is nil where a simulator cannot tell, or nothing was played that could.
	Met *bool `json:"met,omitempty"`
}

// The demands.
const (
	g1Mean, g1Each, g1Other, g1Steps = 0.80, 0.85, 0.90, 0.45
	g2Each, g2Steps                  = 1.08, 0.60
	g3Cells, g3Minutes               = 0.95, 0.1
	g4Median, g4Most, g4All          = 0.3, 1.0, 2.0
	g5Weights, g5Captain             = 1.15, 0.9
	g6Second                         = 1.02
	g7Core, g7Writes                 = 0.02, 2.0
	g7Groups                         = 100.0
	g8Band                           = 0.87
)

// Goals judges the answer. Seeds of one load are averaged; loads of steps are apart.
func (a *Answer) Goals() []Goal {
	out := []Goal{a.g1(), a.g1Tower(), a.g2(), a.g3()}
	out = append(out, a.g4(), a.g5(), a.g6(), a.g7())
	return append(out, a.g8(),
		Goal{ID: "G9", Demand: "real run <= .85 x best k8s-cpu-fast, limits back after kill -9", Here: "needs a kernel", Prototype: "–"})
}

// loads in the order in which they were played.
func (a *Answer) loads() (smooth, steps []string) {
	for i := range a.Cells {
		c := &a.Cells[i]
		to := &smooth
		if c.Steps {
			to = &steps
		}
		if !slices.Contains(*to, c.Load) {
			*to = append(*to, c.Load)
		}
	}
	return smooth, steps
}

// cores and quotas are what policies are compared by.
func cores(c *Cell) float64  { return c.Cores }
func quotas(c *Cell) float64 { return c.Quotas }

// against is, per load, the mean over seeds of what fast+burst needs over the least that
// others need that hold the SLO; NaN where none does.
func (a *Answer) against(loads []string, of func(*Cell) float64, others func(*Cell) bool) (out []float64) {
	for _, load := range loads {
		sum, n := 0.0, 0
		for i := range a.Cells {
			f := &a.Cells[i]
			if f.Load != load || f.Policy != Fast || !f.Burst {
				continue
			}
			best := math.Inf(1)
			for k := range a.Cells {
				if o := &a.Cells[k]; o.Load == load && o.Seed == f.Seed && o.Holds() && others(o) {
					best = math.Min(best, of(o))
				}
			}
			if !math.IsInf(best, 1) {
				sum, n = sum+of(f)/best, n+1
			}
		}
		out = append(out, sum/float64(n))
	}
	return out
}

// figures prints ratios as ".80 .81".
func figures(v []float64) string {
	s := ""
	for i, x := range v {
		if i > 0 {
			s += " "
		}
		s += figure(x)
	}
	return s
}

func figure(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	return fmt.Sprintf("%.2f", x)
}

// most is the largest; NaN where one is NaN, or none is there.
func most(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return slices.MaxFunc(v, func(a, b float64) int {
		if math.IsNaN(a) || a > b {
			return 1
		}
		return -1
	})
}

// judged is met unless a figure is unknown.
func judged(met bool, of ...float64) *bool {
	for _, x := range of {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return &met
}

func (a *Answer) g1() Goal {
	smooth, steps := a.loads()
	k8s := func(c *Cell) bool { return !c.Burst && (c.Policy == K8sCPU || c.Policy == K8sCPUFast) }
	s, t := a.against(smooth, cores, k8s), a.against(steps, cores, k8s)
	alone := append(a.against(smooth, quotas, k8s), a.against(steps, quotas, k8s)...)
	mean, worst, step := lab.Mean(s), most(s), most(t)
	return Goal{ID: "G1", Demand: "cores over the best k8s-cpu or -fast: <= .80 in the mean of smooth loads, <= .85 each, <= .45 on steps",
		Here:      fmt.Sprintf("%s (mean %s); steps %s; quotas alone %s", figures(s), figure(mean), figures(t), figures(alone)),
		Prototype: ".80 .81 .80 .80; steps .36", Met: judged(mean <= g1Mean && worst <= g1Each && step <= g1Steps, mean, worst, step)}
}

func (a *Answer) g1Tower() Goal {
	smooth, steps := a.loads()
	tower := func(c *Cell) bool { return !c.Burst && (c.Policy == Tower || c.Policy == Captain) }
	s, t := a.against(smooth, cores, tower), a.against(steps, cores, tower)
	return Goal{ID: "G1", Demand: "cores over autothrottle, tower or best fixed target: <= .90 each, <= .45 on steps",
		Here: fmt.Sprintf("%s; steps %s", figures(s), figures(t)), Prototype: ".78 .84 .77 .84; steps .38",
		Met: judged(most(s) <= g1Other && most(t) <= g1Steps, most(s), most(t))}
}

func (a *Answer) g2() Goal {
	smooth, steps := a.loads()
	burst := func(c *Cell) bool { return c.Burst && c.Policy != Fast }
	s, t := a.against(smooth, cores, burst), a.against(steps, cores, burst)
	return Goal{ID: "G2", Demand: "cores over the best of all with burst: <= 1.08 each, <= .60 on steps",
		Here: fmt.Sprintf("%s; steps %s", figures(s), figures(t)), Prototype: ".99 1.07 .95 .99; steps .56",
		Met: judged(most(s) <= g2Each && most(t) <= g2Steps, most(s), most(t))}
}

func (a *Answer) g3() Goal {
	held, n, over := 0, 0, 0.0
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Policy == Fast && c.Burst {
			n++
			if c.Holds() {
				held++
			}
			over = math.Max(over, float64(c.MinutesOver)/float64(max(1, c.Minutes)))
		}
	}
	share := float64(held) / float64(n)
	return Goal{ID: "G3", Demand: "<= 1% late in >= 95% of loads and seeds; <= 2 of 20 minutes over",
		Here: fmt.Sprintf("%d of %d hold; at most %.1f of 20 minutes over", held, n, 20*over), Prototype: "5 of 5; 1 of 6 extra runs 1.09%",
		Met: judged(share >= g3Cells && over <= g3Minutes, share)}
}

func (a *Answer) g4() Goal {
	var back []float64
	late := 0.0
	for i := range a.Unforeseen {
		if c := &a.Unforeseen[i]; c.Policy == Fast && c.Burst {
			back, late = append(back, c.Back...), math.Max(late, c.Late)
		}
	}
	g := Goal{ID: "G4", Demand: "unforeseen 3x step back in the SLO: median <= .3 s, 95% <= 1 s, all <= 2 s; <= 1% late", Here: "–",
		Prototype: ".2 s, .8 s; other seeds .7 to 3.6 s longest; .4% late"}
	if len(back) == 0 {
		return g
	}
	m, q, all := lab.Quantile(back, 0.5), lab.Quantile(back, 0.95), slices.Max(back)
	g.Here = fmt.Sprintf("%.1f s, %.1f s, %.1f s (%d steps); %.2f%% late", m, q, all, len(back), 100*late)
	g.Met = judged(m <= g4Median && q <= g4Most && all <= g4All && late <= lateGoal)
	return g
}

func (a *Answer) g5() Goal {
	mean := func(policy string, burst bool) float64 {
		var v []float64
		for i := range a.Pools {
			if p := &a.Pools[i]; p.Policy == policy && p.Burst == burst {
				v = append(v, p.Least)
			}
		}
		if len(v) == 0 {
			return math.NaN()
		}
		return lab.Mean(v)
	}
	f, plain, w, c := mean(Fast, true), mean(Fast, false), mean(Weights, false), math.NaN()
	if len(a.Captain) > 0 {
		c = lab.Mean(a.Captain)
	}
	return Goal{ID: "G5", Demand: "least pool of three applications <= 1.15 x weights, <= .9 x captain's highest sum",
		Here:      fmt.Sprintf("%s x used (without burst %s); weights %s, captain+burst %s", figure(f), figure(plain), figure(w), figure(c)),
		Prototype: "2.3; weights 2.0, captain+burst 2.63", Met: judged(f <= g5Weights*w+1e-9 && f <= g5Captain*c, f, w, c)}
}

func (a *Answer) g6() Goal {
	over, second, n := 0, 0.0, 0
	take := func(r *Result) { over, second, n = over+r.Over, math.Max(second, r.Second), n+1 }
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Policy == Fast {
			take(&c.Result)
		}
	}
	for i := range a.Pools {
		if p := &a.Pools[i]; p.Policy == Fast && p.Minutes > 0 {
			take(&p.Result)
		}
	}
	return Goal{ID: "G6", Demand: "no tick with a sum of quotas over the capacity; real use <= 1.02 of it in any second",
		Here: fmt.Sprintf("%d ticks over; at most %.3f in a second", over, second), Prototype: "clipped by construction",
		Met: judged(over == 0 && second <= g6Second, 1/float64(n))}
}

func (a *Answer) g7() Goal {
	writes, n, tick := 0.0, 0, 0.0
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Policy == Fast && c.Burst {
			writes, n = math.Max(writes, c.Writes), n+1
			tick = math.Max(tick, c.Tick.Seconds()*hosts/count)
		}
	}
	core := tick * g7Groups * ticks
	return Goal{ID: "G7", Demand: "100 groups at 10 Hz <= 2% of a core; <= 2 writes/s and group",
		Here: fmt.Sprintf("the rule alone %.3f%% of a core; %.1f writes/s", 100*core, writes), Prototype: ".5% of reads; 1.4 to 2 writes/s",
		Met: judged(core <= g7Core && writes <= g7Writes, 1/float64(n))}
}

func (a *Answer) g8() Goal {
	g := Goal{ID: "G8", Demand: "with the loop on, 90% bands hold >= .87 at the target, and frozen rounds; slope never negative", Here: "–", Prototype: "–"}
	if len(a.Learnt) == 0 {
		return g
	}
	target, granted, frozen, least := 0.0, 0.0, 0.0, math.Inf(1)
	for i := range a.Learnt {
		l, n := &a.Learnt[i], float64(len(a.Learnt))
		target, granted, least = target+l.Setting/n, granted+l.Granted/n, math.Min(least, l.Slope)
		frozen += l.Frozen / n
	}
	g.Here = fmt.Sprintf("%s (%s taught at what was granted); frozen rounds %s; slope >= %s a doubling", figure(target), figure(granted), figure(frozen), figure(least))
	g.Met = judged(target >= g8Band && frozen >= g8Band && least >= 0, target, least)
	return g
}

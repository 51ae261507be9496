package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/lab/services"
	"github.com/trimtab/trimtab/sim/cluster"
)

// simServicesCmd is `trimtab-lab sim services`.
type simServicesCmd struct {
	Scenario cli.Names `help:"Loads to play: peaks, steps, doubling, slower, noise, burst, two-hosts; where the pool is too small at times: culprit, tight, unequal, over110, over132, over150, over200; surge132, surge200 (with calm before and after)." default:"peaks" placeholder:"NAME,..."`
	Policy   cli.Names `help:"Policies to run, side by side: weights (the kernel alone: one quota for all, equal weights), equal, proportional (knows the costs), oracle:OBJECTIVE (knows what comes), or an objective of the configuration, with :always if each has a quota (cap: always). With +gradient2, +envoy (limiters as published) or +gate (trimtab's) that stands before each service and refuses requests; an objective sets the limits of gates." default:"weights,equal,proportional,njc,egalitarian,social" placeholder:"NAME,..."`
	Signal   cli.Names `help:"Where load and performance come from: spans (of senders that collect for 5 s, the default of OpenTelemetry), promql." default:"spans,promql" placeholder:"NAME,..."`
	Seconds  int       `help:"Length of each run in seconds, 60 to 86400." default:"360"`
	Seeds    int       `help:"Runs of each policy, 1 to 1000." default:"3"`
	Seed     uint64    `help:"Seed of the first run." default:"1"`
	Pool     float64   `help:"Cores of the pool, 0.66 to 64; loads stay as they are." default:"0.66"`
	Coverage bool      `help:"Print how often the bands of the learnt curves hold the truth, which a replay at fixed allocations tells: each minute, at all allocations from what is asked for to the pool, and at the knee, where 1 to 99% of the requests are in time. In each seed the work of requests varies by another amount."`
	Config   string    `help:"YAML that is added to the configuration that is played, such as: round: 10s." placeholder:"YAML"`
	Verbose  bool      `help:"Print every plan of the first seed." short:"v"`
}

// Example is shown by --help.
func (simServicesCmd) Example() string {
	return "trimtab-lab sim services\ntrimtab-lab sim services --scenario doubling,noise --policy weights,egalitarian,egalitarian:always --seeds 5"
}

// Validate is called by kong.
func (c *simServicesCmd) Validate() error {
	return cli.Within(cli.In("seconds", float64(c.Seconds), 60, 86400), cli.In("seeds", float64(c.Seeds), 1, 1000), cli.In("pool", c.Pool, 0.66, 64))
}

// Run plays the scenarios and prints a table of each.
func (c *simServicesCmd) Run(ctx context.Context, t terminal) error {
	for _, name := range c.Scenario {
		s, err := services.Named(name, c.Seconds)
		if err != nil {
			return err
		}
		s.Pool = c.Pool
		if err := c.play(ctx, t, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *simServicesCmd) play(ctx context.Context, t terminal, s *services.Scenario) error {
	w, refusing := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0), newRefusing(s)
	s.Gated = slices.ContainsFunc(c.Policy, func(p string) bool { return strings.Contains(p, "+") })
	fmt.Fprintf(w, "%s: %g cores, %d s, mean of %s\nPOLICY\tSIGNAL\tIN TIME", s.Name, s.Pool, s.Seconds, view.Count(c.Seeds, "seed"))
	for i := range s.Services {
		fmt.Fprintf(w, "\t%s", strings.ToUpper(s.Services[i].Name))
	}
	fmt.Fprint(w, "\tFIRST THIRD\tREST\tMOVES\tMISSED")
	for _, objective := range services.Objectives() {
		fmt.Fprintf(w, "\t%s", strings.ToUpper(objective))
	}
	if c.Coverage {
		fmt.Fprint(w, "\tBAND\tAT THE KNEE\tWIDTH THERE\tSHOWN\tWIDTH\tMOVING")
	}
	fmt.Fprintln(w)
	for _, policy := range c.Policy {
		signals := c.Signal
		if services.IsRule(policy) {
			signals = []string{"–"}
		}
		for _, signal := range signals {
			var runs []*services.Result
			var covered services.Covered
			for k := range c.Seeds {
				if ctx.Err() != nil {
					_ = w.Flush() // the error is that of the stop
					return cutShort(ctx, 1)
				}
				seed := c.Seed + uint64(k)
				if c.Coverage {
					s.Vary(seed)
				}
				r, err := c.one(s, policy, signal, seed)
				if err != nil {
					return err
				}
				if c.Coverage {
					covered.Add(s.Cover(r))
				}
				runs = append(runs, r)
				if c.Verbose && k == 0 {
					printCourse(t, s, r)
				}
			}
			row(w, s, policy, signal, runs)
			refusing.row(policy, signal, runs)
			if c.Coverage {
				fmt.Fprint(w, coverage(&covered))
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil || !s.Gated {
		return err
	}
	return refusing.print(t.out)
}

// row prints what a policy came to, without the end of the line.
func row(w *tabwriter.Writer, s *services.Scenario, policy, signal string, runs []*services.Result) {
	over, moves, missed := 0.0, 0.0, 0.0
	worth := make([]float64, len(services.Objectives()))
	each, parts := make([]float64, len(s.Services)), [2][2]float64{}
	for _, r := range runs {
		for k, objective := range services.Objectives() {
			v, _ := r.Welfare.Of(objective) // it is one of them
			worth[k] += v / float64(len(runs))
		}
		over += 100 * r.Over() / float64(len(runs))
		for i := range each {
			each[i] += 100 * r.Share(i) / float64(len(runs))
			moves += float64(r.Moves[i]) / float64(len(runs))
			for k, v := range r.Windows[i] {
				if math.IsNaN(v) {
					continue
				}
				part := 1
				if k < len(r.Windows[i])/3 {
					part = 0
				}
				parts[part][0] += v
				parts[part][1]++
				if v < s.Services[i].Fraction {
					missed++
				}
			}
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%.1f", policy, signal, over)
	for _, v := range each {
		fmt.Fprintf(w, "\t%.1f", v)
	}
	fmt.Fprintf(w, "\t%.1f\t%.1f\t%.0f\t%.1f min", 100*parts[0][0]/parts[0][1], 100*parts[1][0]/parts[1][1], moves, missed/float64(len(runs))/12)
	for _, v := range worth {
		fmt.Fprintf(w, "\t%.3f", v)
	}
}

// coverage is the share of the true curves inside the bands, and of the same at the knee, with
// the mean width of the bands there.
func coverage(c *services.Covered) string {
	if c.Points == 0 {
		return "\t–\t–\t–\t–\t–\t–"
	}
	v := &c.Shown
	return fmt.Sprintf("\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f%%", c.Inside/c.Points, c.KneeInside/max(c.Knee, 1), c.Width/max(c.Knee, 1),
		v.Share(), v.Width/v.Of, 100*v.Moving/(v.Of+v.Moving))
}

func (c *simServicesCmd) one(s *services.Scenario, policy, signal string, seed uint64) (*services.Result, error) {
	if signal == "–" {
		return services.Rule(s, policy, seed)
	}
	loop, err := c.loop(s, policy, signal)
	if err != nil {
		return nil, err
	}
	return services.Loop(s, policy, loop, signal == "spans", seed)
}

// loop is the analyzer and the planner that production makes of the
// configuration file which an operator would write for the scenario.
func (c *simServicesCmd) loop(s *services.Scenario, policy, signal string) (cluster.Config, error) {
	var b strings.Builder
	policy, gate := strings.CutSuffix(policy, "+"+services.Gate)
	policy, quotas := strings.CutSuffix(policy, ":"+config.CapAlways)
	cpu := "{}" // which is shared by weight
	if quotas {
		cpu = "{cap: " + config.CapAlways + "}"
	}
	fmt.Fprintf(&b, "pool: {cpu: %g}\nobjective: %s\n%s\nworkloads:\n", s.Pool, policy, c.Config)
	for i := range s.Services {
		v := &s.Services[i]
		limit := ""
		if gate {
			limit = fmt.Sprintf(", concurrency: {gate: unix:/sim/%s}", v.Name)
		}
		fmt.Fprintf(&b, "  - name: %s\n    mode: act\n    knob: {cgroup: sim/%s, cpu: %s%s}\n", v.Name, v.Name, cpu, limit)
		if signal == "spans" {
			fmt.Fprintf(&b, "    slo: {latency: %gs, fraction: %g}\n", v.Latency, v.Fraction)
		} else {
			fmt.Fprintf(&b, "    slo: {performance: %g}\n    match: {prometheus: {job: %s}}\n    load: sum(rate(seconds_count{$match}[20s]))\n    performance: sum(rate(seconds_bucket{$match,le=\"%g\"}[20s])) / sum(rate(seconds_count{$match}[20s]))\n", v.Fraction, v.Name, v.Latency)
		}
	}
	if signal != "spans" {
		b.WriteString("prometheus: {url: \"http://127.0.0.1:9090\"}\n")
	}
	cfg, err := config.Parse("simulated", []byte(b.String()))
	if err != nil {
		return cluster.Config{}, err
	}
	out := cluster.Config{Shared: !quotas, Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Held: map[string]float64{}, Instances: map[string][]trimtab.KnobID{}, Capacity: map[string]float64{}}
	for k, p := range s.All() {
		name := s.Services[p.Service].Name
		if out.Held[name] += s.Share(k); s.Places != nil {
			host := services.HostName(p.Host)
			out.Instances[name] = append(out.Instances[name], trimtab.KnobID{Host: host})
			out.Capacity[host] += s.Share(k)
		}
	}
	if out.Analyzer, err = site.AnalyzerConfig(cfg); err != nil {
		return out, err
	}
	out.Planner, err = site.PlannerConfig(cfg)
	out.Planner.Shared = s.Places != nil
	return out, err
}

// printCourse prints what was in force and what came of it, every 5 seconds.
func printCourse(t terminal, s *services.Scenario, r *services.Result) {
	fmt.Fprintln(t.out, r.Policy)
	plan := 0
	for k := 0; k < s.Seconds/5; k++ {
		fmt.Fprintf(t.out, "%4d s ", k*5)
		for i := range s.Services {
			v := &s.Services[i]
			cost := v.Cost
			if v.Dearer != nil {
				cost *= v.Dearer(float64(k * 5))
			}
			fmt.Fprintf(t.out, " | %.3f of %.3f %4.0f%%", v.Load(float64(k*5))*cost, r.Shares[i][k*5], 100*r.Windows[i][k])
		}
		fmt.Fprintln(t.out)
		for ; plan < len(r.Plans) && r.Plans[plan].Time.Unix()-time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix() < int64(k*5+5); plan++ {
			fmt.Fprintln(t.out, "    --", r.Plans[plan].Cause)
			for _, a := range r.Plans[plan].Actions {
				fmt.Fprintln(t.out, "      ", a.Workload+":", a.Why.Summary, "[", a.Why.Binding, "]")
			}
			for _, why := range []map[string]trimtab.Held{r.Plans[plan].Unmoved, r.Plans[plan].Held} {
				for _, name := range slices.Sorted(maps.Keys(why)) {
					fmt.Fprintf(t.out, "       %s stays: %s\n", name, why[name])
				}
			}
		}
	}
}

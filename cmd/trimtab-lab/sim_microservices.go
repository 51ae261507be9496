package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/microservices"
	"github.com/trimtab/trimtab/sim/figure"
)

// simMicroservicesCmd is `trimtab-lab sim microservices`.
type simMicroservicesCmd struct {
	simFlags `kong:"embed,set='policies=all',set='length=30 seconds',set='rounds=720',set='figures=figure 12'"`

	CPUs    int     `name:"cpus" help:"CPUs that the 19 services share." default:"160"`
	Rate    float64 `help:"Requests per second; 0: what the client of the recorded runs offered." default:"0"`
	Speed   float64 `help:"Speed of the machines; 1 is that of the recorded Resource-Fair run." default:"1"`
	Scaling float64 `help:"How services gain from more CPUs: c of them work as 8 (c/8)^scaling; 1: in proportion." default:"1"`
	Start   bool    `help:"Begin with services that have just started, as the recorded runs do." default:"true" negatable:""`
	Guard   string  `help:"Play the policies that learn without the guard of production, as in the paper (off), with it (on), or both, side by side: ${enum}." enum:"both,off,on" default:"both"`
	Data    string  `help:"Directory of the recorded runs: plays their allocations beside, and prints what they measured." type:"existingdir" placeholder:"DIR"`

	Fast    bool      `help:"Quotas that move every 100 ms, on the kernel's terms: the loop of the host agents beside published rules (static, k8s-cpu, k8s-cpu-fast, captain, autothrottle, escra, rounds, fast, weights, oracle), with the goals it is held to."`
	Load    cli.Names `help:"With --fast: loads to play: diurnal, noisy, bursty, constant, steps, or files with one rate per line and second." default:"all" placeholder:"NAME,..."`
	Seconds int       `help:"With --fast: length of each run, 120 to 86400 s." default:"3600"`
}

// Example is shown by --help.
func (simMicroservicesCmd) Example() string {
	return "trimtab-lab sim microservices\ntrimtab-lab sim microservices --policy end-to-end,evoalg --cpus 152 -o json\ntrimtab-lab sim microservices --data shared/data/cilantro --plot figures\ntrimtab-lab sim microservices --fast --seeds 2 --load diurnal,steps --policy k8s-cpu-fast,fast"
}

// microAnswer is what `trimtab-lab sim microservices -o json` prints.
type microAnswer struct {
	Environment microEnvironment `json:"environment"`
	Policies    []microPolicy    `json:"policies"`
	// Calibration is present with --data.
	Calibration []microservices.Replay `json:"calibration,omitempty"`
}

// microPolicy is one policy, without the guard unless --guard on was asked for.
type microPolicy struct {
	microservices.Summary

	// Guarded is the same policy with the guard, where both were played; nil
	// also for one that has none.
	Guarded *microservices.Summary `json:"guard_on,omitempty"`
}

type microEnvironment struct {
	Services int     `json:"services"`
	CPUs     int     `json:"cpus"`
	Rounds   int     `json:"rounds"`
	Seeds    int     `json:"seeds"`
	Seed     uint64  `json:"seed"`
	Rate     float64 `json:"rate_per_s"`
	Speed    float64 `json:"speed"`
	Scaling  float64 `json:"scaling"`
	Start    bool    `json:"start"`
	Guard    string  `json:"guard"`
	// Best is the best static allocation found offline, in CPUs per service.
	Best map[string]int `json:"best_static,omitempty"`
}

// Run plays the experiment and prints what came of it.
func (c *simMicroservicesCmd) Run(ctx context.Context, t terminal) error {
	if err := cli.Plottable(c.Plot); err != nil {
		return err
	}
	if c.Fast {
		return c.runFast(ctx, t)
	}
	x := &microservices.Experiment{Frame: c.frame(ctx), Run: chosen(c.Policy, microservices.PolicyNames()), Rounds: c.Rounds, Units: c.CPUs,
		Settings: microservices.Settings{Rate: c.Rate, Speed: c.Speed, Scaling: c.Scaling, Cold: c.Start},
		Guard:    c.Guard == guardOn, Both: c.Guard == guardBoth}
	logs, err := c.recorded()
	if err != nil {
		return hint.Add(err, "the directory has hotelres_log_propfair.csv and its like, one row per window of 30 s")
	}
	if c.Rate == 0 {
		x.Rate = microservices.Offered(logs)
	}
	var outcomes []microservices.Outcome
	stopped, err := playing{"microservices", "runs", &x.Frame, x.Runs(), func() (_ int, err error) {
		outcomes, err = x.Play()
		return len(outcomes), err
	}}.under(ctx, t)
	if err != nil {
		return err
	}
	a := &microAnswer{Environment: microEnvironment{Services: microservices.Count, CPUs: c.CPUs, Rounds: c.Rounds, Seeds: c.Seeds,
		Seed: c.Seed, Rate: x.Rate, Speed: c.Speed, Scaling: c.Scaling, Start: c.Start, Guard: c.Guard}}
	best, level := x.Best()
	a.Environment.Best = best
	for i := range outcomes {
		p := microPolicy{Summary: microservices.Summarize(&outcomes[i], level)}
		if o := outcomes[i].Guarded; o != nil {
			s := microservices.Summarize(o, level)
			p.Guarded = &s
		}
		a.Policies = append(a.Policies, p)
	}
	for i, log := range logs {
		a.Calibration = append(a.Calibration, microservices.Recorded()[i].Play(log))
	}
	if c.Plot != "" && stopped == nil {
		if err := c.plot(outcomes); err != nil {
			return err
		}
	}
	return errors.Join(cli.Print(t.out, c.Output, a, func(w io.Writer) { a.text(w) }), stopped)
}

// recorded reads the logs of the recorded runs; none without --data.
func (c *simMicroservicesCmd) recorded() ([][]microservices.Record, error) {
	if c.Data == "" {
		return nil, nil
	}
	var out [][]microservices.Record
	for _, run := range microservices.Recorded() {
		log, err := readFile(filepath.Join(c.Data, run.File), microservices.ReadLog)
		if err != nil {
			return nil, err
		}
		out = append(out, log)
	}
	return out, nil
}

// text prints the table.
func (a *microAnswer) text(w io.Writer) {
	e := &a.Environment
	fmt.Fprintf(w, "hotel reservation: %d services, %d CPUs, %.0f requests/s, %d rounds of 30 s, mean of %s\n%s\n\n",
		e.Services, e.CPUs, e.Rate, e.Rounds, view.Count(e.Seeds, "seed"), guardWords()[e.Guard])
	both := e.Guard == guardBoth
	head := []string{"POLICY"}
	for _, name := range []string{"P99 MS", "AFTER START", "LAST HOUR", "ROUNDS TO 1.15 BEST", "SLOWEST SEED"} {
		if head = append(head, name); both {
			head = append(head, "GUARD")
		}
	}
	rows := [][]string{append(head, "±", "DECIDE")}
	for i := range a.Policies {
		rows = append(rows, a.Policies[i].row(both))
	}
	cli.Table(w, rows)
	if len(a.Calibration) == 0 {
		return
	}
	fmt.Fprintf(w, "\nrecorded allocations of the first 6 h, played\n\n")
	rows = [][]string{{"RUN", "SPEED", "RECORDED MS", "PLAYED MS", "RATIO", "CORRELATION"}}
	for i := range a.Calibration {
		r := &a.Calibration[i]
		rows = append(rows, []string{r.Run, fmt.Sprintf("%.2f", r.Speed), fmt.Sprintf("%.0f", r.Recorded), fmt.Sprintf("%.0f", r.Played),
			fmt.Sprintf("%.3f", r.Ratio), fmt.Sprintf("%.2f", r.Correlation)})
	}
	cli.Table(w, rows)
}

// row is a policy's line of the table.
func (p *microPolicy) row(both bool) []string {
	out := []string{p.Policy}
	for _, of := range []func(*microservices.Summary) string{
		func(s *microservices.Summary) string { return fmt.Sprintf("%.0f", s.P99) },
		func(s *microservices.Summary) string { return fmt.Sprintf("%.0f", s.Warm) },
		func(s *microservices.Summary) string { return fmt.Sprintf("%.0f", s.LastHour) },
		func(s *microservices.Summary) string { return reached(s.Rounds) },
		func(s *microservices.Summary) string { return reached(s.Slowest) },
	} {
		if out = append(out, of(&p.Summary)); !both {
			continue
		}
		guarded := "–"
		if p.Guarded != nil {
			guarded = of(p.Guarded)
		}
		out = append(out, guarded)
	}
	return append(out, spread(p.StdErr), fmt.Sprintf("%.2g ms", p.Compute))
}

// reached is a count of rounds, or a dash for never.
func reached(rounds *int) string {
	if rounds == nil {
		return "–"
	}
	return fmt.Sprint(*rounds)
}

// spread is a standard error, or a dash where it is unknown.
func spread(stderr *float64) string {
	if stderr == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *stderr)
}

// plot draws the P99 of each window of the first run, and its running mean.
func (c *simMicroservicesCmd) plot(outcomes []microservices.Outcome) error {
	now := &figure.Chart{Title: "P99 over time, 19 services, mean of " + fmt.Sprint(c.Seeds) + " seeds", X: "minutes", Y: "P99 (ms)"}
	mean := &figure.Chart{Title: "P99 so far, 19 services, mean of " + fmt.Sprint(c.Seeds) + " seeds", X: "minutes", Y: "mean P99 (ms)"}
	for i := range outcomes {
		o := &outcomes[i]
		at, course, sofar, sum := []float64{}, []float64{}, []float64{}, 0.0
		for r := range o.P99[0] {
			v := make([]float64, len(o.P99))
			for k := range v {
				v[k] = o.P99[k][r]
			}
			sum += lab.Mean(v)
			at = append(at, float64(r+1)*microservices.WindowSeconds/60)
			course, sofar = append(course, lab.Mean(v)), append(sofar, sum/float64(r+1))
		}
		now.Series = append(now.Series, figure.Series{Name: o.Policy, X: at, Y: course})
		mean.Series = append(mean.Series, figure.Series{Name: o.Policy, X: at, Y: sofar})
	}
	for name, draw := range map[string]func(io.Writer) error{"fig12-p99.svg": now.Lines, "fig12-mean.svg": mean.Lines} {
		if err := cli.Draw(filepath.Join(c.Plot, name), draw); err != nil {
			return err
		}
	}
	return nil
}

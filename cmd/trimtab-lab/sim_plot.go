package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/lab/cilantro"
	"github.com/trimtab/trimtab/sim/figure"
)

// This file draws the paper's figures 8 to 13 (12 is of another experiment).

// learned tells the policies that learn from the others.
func learned(p *cilantro.Summary) bool { return len(p.Coverage) > 0 }

// plot draws what was run, and runs what else the figures need.
func (c *simCilantroCmd) plot(ctx context.Context, t terminal, x *cilantro.Experiment, of []cilantro.Summary) error {
	var online []cilantro.Summary
	for _, p := range of {
		if learned(&p) {
			online = append(online, p)
		}
	}
	for _, f := range c.figures(x, of, online) {
		if err := c.draw(f.name, f.draw); err != nil {
			return err
		}
	}
	if len(online) == 0 {
		return nil
	}
	if err := c.plotLies(ctx, t, x, online); err != nil {
		return err
	}
	if err := c.plotNoise(ctx, t, x, online); err != nil {
		return err
	}
	return c.plotFallback(ctx, t, x, online)
}

// drawn is one file.
type drawn struct {
	name string
	draw func(io.Writer) error
}

// figures are those that need no further run: 8, 9, 10 and the left of 13.
func (c *simCilantroCmd) figures(x *cilantro.Experiment, of, online []cilantro.Summary) []drawn {
	title := fmt.Sprintf(", %d jobs, mean of %s", len(x.Env.Jobs), view.Count(x.Seeds, "seed"))
	cloud := func(what string, value func(*cilantro.Summary) float64) drawn {
		ch := &figure.Chart{Title: "NJC fairness and " + what + " welfare" + title, X: what + " welfare", Y: "NJC fairness",
			Series: []figure.Series{{Name: "learning"}, {Name: "baselines"}, {Name: "oracles"}}}
		for i := range of {
			s := &ch.Series[1]
			switch {
			case learned(&of[i]):
				s = &ch.Series[0]
			case slices.Contains(cilantro.Oracles(), of[i].Policy):
				s = &ch.Series[2]
			}
			s.X, s.Y, s.Labels = append(s.X, value(&of[i])), append(s.Y, of[i].NJC), append(s.Labels, of[i].Policy)
		}
		ch.Series = slices.DeleteFunc(ch.Series, func(s figure.Series) bool { return len(s.Y) == 0 })
		return drawn{"fig08-" + what, ch.Points}
	}
	course := func(what string, values func(*cilantro.Summary) []float64) drawn {
		ch := &figure.Chart{Title: "Course of " + what + title, X: "round (2 min)", Y: what}
		for i := range of {
			if learned(&of[i]) || len(online) == 0 {
				ch.Series = append(ch.Series, figure.Series{Name: of[i].Policy, Y: values(&of[i])})
			}
		}
		return drawn{"fig09-" + what, ch.Lines}
	}
	return []drawn{
		cloud("social", func(s *cilantro.Summary) float64 { return s.Social }),
		cloud("egalitarian", func(s *cilantro.Summary) float64 { return s.Egalitarian }),
		course("social", func(s *cilantro.Summary) []float64 { return s.ByRound.Social }),
		course("egalitarian", func(s *cilantro.Summary) []float64 { return s.ByRound.Egalitarian }),
		course("njc", func(s *cilantro.Summary) []float64 { return s.ByRound.NJC }),
		utilities(x, of, title), costs(of),
	}
}

// utilities is figure 10: what each job gets, under the policies that learn
// and without feedback.
func utilities(x *cilantro.Experiment, of []cilantro.Summary, title string) drawn {
	ch := &figure.Chart{Title: "Utility of each job" + title, Y: "mean utility", High: 1}
	for i := range x.Env.Jobs {
		ch.Names = append(ch.Names, x.Env.Jobs[i].Name)
	}
	for i := range of {
		if !learned(&of[i]) && of[i].Policy != "resource-fair" && len(of) > 4 {
			continue
		}
		s := figure.Series{Name: of[i].Policy}
		for _, name := range ch.Names {
			s.Y = append(s.Y, of[i].Utility[name])
		}
		ch.Series = append(ch.Series, s)
	}
	return drawn{"fig10-utility", ch.Bars}
}

// costs is figure 13, left.
func costs(of []cilantro.Summary) drawn {
	ch := &figure.Chart{Title: "Time of a round, as the clock saw it on this machine", Y: "milliseconds",
		Series: []figure.Series{{Name: "decision p50"}, {Name: "decision p99"}, {Name: "learning p50"}, {Name: "learning p99"}}}
	for i := range of {
		if !learned(&of[i]) {
			continue
		}
		ch.Names = append(ch.Names, of[i].Policy)
		for k, v := range []float64{of[i].Compute.P50, of[i].Compute.P99, of[i].Learn.P50, of[i].Learn.P99} {
			ch.Series[k].Y = append(ch.Series[k].Y, v)
		}
	}
	if len(ch.Names) == 0 {
		ch.Names = []string{""}
		ch.Series = nil
	}
	return drawn{"fig13-cost", ch.Bars}
}

// draw writes one file.
func (c *simCilantroCmd) draw(name string, draw func(io.Writer) error) error {
	return cli.Draw(filepath.Join(c.Plot, name+".svg"), draw)
}

// plotSeeds bounds the runs of figures that vary the environment.
const plotSeeds = 2

// vary runs policies with changed options.
func (c *simCilantroCmd) vary(ctx context.Context, t terminal, x *cilantro.Experiment, what string, policies []string, change func(*cilantro.Options)) ([]cilantro.Summary, error) {
	y := *x
	y.Run, y.Seeds, y.Both = policies, min(x.Seeds, plotSeeds), false
	change(&y.Options)
	outcomes, stopped, err := c.play(ctx, t, &y, what)
	if err := cmp.Or(err, stopped); err != nil {
		return nil, err
	}
	var out []cilantro.Summary
	for i := range outcomes {
		out = append(out, cilantro.Summarize(y.Env, &outcomes[i]))
	}
	return out, nil
}

func names(of []cilantro.Summary) []string {
	var out []string
	for i := range of {
		out = append(out, of[i].Policy)
	}
	return out
}

// liar is the job that lies in figure 11: the paper's db16, or the last job.
func liar(x *cilantro.Experiment) string {
	for i := range x.Env.Jobs {
		if x.Env.Jobs[i].Name == "db1j6" {
			return "db1j6"
		}
	}
	return x.Env.Jobs[len(x.Env.Jobs)-1].Name
}

// plotLies is figure 11: the utility of a job that tells the truth, half or
// twice of it.
func (c *simCilantroCmd) plotLies(ctx context.Context, t terminal, x *cilantro.Experiment, online []cilantro.Summary) error {
	job := liar(x)
	ch := &figure.Chart{Title: "Utility of " + job + " when it lies about its performance", Y: "mean utility", Names: names(online), High: 1}
	for _, factor := range []float64{0.5, 1, 2} {
		of, err := c.vary(ctx, t, x, fmt.Sprintf("lying by x%v", factor), ch.Names, func(o *cilantro.Options) {
			o.Lies = map[string]float64{job: factor}
		})
		if err != nil {
			return err
		}
		s := figure.Series{Name: fmt.Sprintf("reports x%v", factor)}
		for i := range of {
			s.Y = append(s.Y, of[i].Utility[job])
		}
		ch.Series = append(ch.Series, s)
	}
	return c.draw("fig11-strategy", ch.Bars)
}

// scored is one score of a figure.
type scored struct {
	name string
	of   func(*cilantro.Summary) float64
}

func threeScores() []scored {
	return []scored{
		{"social", func(s *cilantro.Summary) float64 { return s.Social }},
		{"egalitarian", func(s *cilantro.Summary) float64 { return s.Egalitarian }},
		{"njc", func(s *cilantro.Summary) float64 { return s.NJC }},
	}
}

// plotNoise is figure 13, right: each policy's own score under extra noise, and
// for njc how much of what is given out is of use.
func (c *simCilantroCmd) plotNoise(ctx context.Context, t terminal, x *cilantro.Experiment, online []cilantro.Summary) error {
	levels := []float64{0, 0.05, 0.1, 0.2, 0.5}
	ch := &figure.Chart{Title: "Scores under extra noise of the reports", X: "noise, as a share of what is reported", Y: "score", High: 1}
	var own [][]scored // of each policy
	for _, p := range names(online) {
		of := threeScores()[:1]
		for _, s := range threeScores() {
			if s.name == p {
				of = []scored{s}
			}
		}
		if p == "njc" {
			// NJC alone hides what noise does: a fraction that is cut at 1
			// reports less, so its job never seems to have enough, and all end
			// near equal shares, about which nobody can complain.
			of = append(of, scored{"useful usage", func(s *cilantro.Summary) float64 { return s.Useful }})
		}
		own = append(own, of)
		for _, s := range of {
			ch.Series = append(ch.Series, figure.Series{Name: p + ": " + s.name, X: levels})
		}
	}
	for _, level := range levels {
		of, err := c.vary(ctx, t, x, fmt.Sprintf("noise %v", level), names(online), func(o *cilantro.Options) { o.Noise = level })
		if err != nil {
			return err
		}
		k := 0
		for i := range of {
			for _, s := range own[i] {
				ch.Series[k].Y = append(ch.Series[k].Y, s.of(&of[i]))
				k++
			}
		}
	}
	return c.draw("fig13-noise", ch.Lines)
}

// plotFallback is figure 13, middle: five jobs state a demand, half or twice
// what they need at the median load, instead of reporting.
func (c *simCilantroCmd) plotFallback(ctx context.Context, t terminal, x *cilantro.Experiment, online []cilantro.Summary) error {
	policy := online[0].Policy
	if slices.Contains(names(online), "njc") {
		policy = "njc"
	}
	ch := &figure.Chart{Title: "Scores of " + policy + " when five jobs state a demand instead of reporting", Y: "score", High: 1}
	for _, s := range threeScores() {
		ch.Series = append(ch.Series, figure.Series{Name: s.name})
	}
	for _, factor := range []float64{0, 0.5, 1, 2} {
		of, err := c.vary(ctx, t, x, fmt.Sprintf("stated demand x%v", factor), []string{policy}, func(o *cilantro.Options) {
			o.Demands = map[string]float64{}
			for i := 0; factor > 0 && i < len(x.Env.Jobs); i += 4 {
				o.Demands[x.Env.Jobs[i].Name] = factor
			}
		})
		if err != nil {
			return err
		}
		ch.Names = append(ch.Names, map[bool]string{true: "all report", false: fmt.Sprintf("demand x%v", factor)}[factor == 0])
		for k, s := range threeScores() {
			ch.Series[k].Y = append(ch.Series[k].Y, s.of(&of[0]))
		}
	}
	return c.draw("fig13-fallback", ch.Bars)
}

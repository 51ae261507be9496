package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/lab/kubernetes"
	simulated "github.com/trimtab/trimtab/sim/kubernetes"
)

// simKubernetesCmd is `trimtab-lab sim kubernetes`.
type simKubernetesCmd struct {
	Policy    cli.Names `help:"Policies to run, side by side: trimtab, trimtab-steps (sizes in steps of a quarter core), trimtab-number (the number of pods alone), hpa, keda, vpa, eks, dpa, oracle; \"all\" for every one." default:"all" placeholder:"NAME,..."`
	Load      cli.Names `help:"Recorded loads: clarknet, worldcup, nasa." default:"clarknet,worldcup,nasa" placeholder:"NAME,..."`
	Pool      float64   `help:"Cores of all pods together, 0 to 1000000; 0: as many as anybody asks for." default:"0"`
	Threshold []float64 `help:"Thresholds of hpa and keda of which the best in hindsight is taken, 1 to 100 percent; none: 30 to 90 in steps of 5." placeholder:"PERCENT"`
	runFlags  `kong:"embed,set='seeds=3'"`
}

// Example is shown by --help.
func (simKubernetesCmd) Example() string {
	return "trimtab-lab sim kubernetes\ntrimtab-lab sim kubernetes --policy trimtab,vpa,eks,dpa   # sums of requests, resizes, nodes\ntrimtab-lab sim kubernetes --policy trimtab,hpa --load worldcup --seeds 1 -o json\ntrimtab-lab sim kubernetes --load nasa --pool 60"
}

// Validate is called by kong.
func (c *simKubernetesCmd) Validate() error {
	flags := append(c.runFlags.ranges(10_000), cli.In("pool", c.Pool, 0, 1_000_000))
	for _, v := range c.Threshold {
		flags = append(flags, cli.In("threshold", v, 1, 100))
	}
	return cli.Within(flags...)
}

// kubernetesAnswer is what `trimtab-lab sim kubernetes -o json` prints.
type kubernetesAnswer struct {
	Loads []kubernetesPart `json:"loads"`
}

// kubernetesPart is one load.
type kubernetesPart struct {
	Load     string               `json:"load"`
	Pool     float64              `json:"pool,omitempty"`
	Seeds    int                  `json:"seeds"`
	Seed     uint64               `json:"seed"`
	Policies []kubernetes.Summary `json:"policies"`
}

// Run plays the day on each load and prints what came of it.
func (c *simKubernetesCmd) Run(ctx context.Context, t terminal) error {
	answer := &kubernetesAnswer{}
	var stopped error
	for _, load := range c.Load {
		x := &kubernetes.Experiment{Frame: c.frame(ctx), Load: load, Run: chosen(c.Policy, kubernetes.PolicyNames()), Pool: c.Pool, Thresholds: c.Threshold}
		var got []kubernetes.Summary
		var err error
		stopped, err = playing{"kubernetes", "runs, " + load, &x.Frame, x.Runs(), func() (_ int, err error) {
			got, err = x.Play()
			return len(answer.Loads), err
		}}.under(ctx, t)
		if err != nil {
			return err
		}
		if stopped != nil {
			break // the loads that were finished are printed
		}
		answer.Loads = append(answer.Loads, kubernetesPart{load, c.Pool, c.Seeds, c.Seed, got})
	}
	return errors.Join(cli.Print(t.out, c.Output, answer, func(w io.Writer) { answer.text(w) }), stopped)
}

// text prints a table of each load.
func (a *kubernetesAnswer) text(w io.Writer) {
	for i := range a.Loads {
		p := &a.Loads[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		pool := "all cores that anybody asks for"
		if p.Pool > 0 {
			pool = fmt.Sprintf("%g cores", p.Pool)
		}
		fmt.Fprintf(w, "%s: a day of ten services, %s, mean of %s\n\n", p.Load, pool, view.Count(p.Seeds, "seed"))
		rows := [][]string{{"POLICY", "MINUTES MISSED", "±", "CORE-HOURS", "±", "TRIMTAB SAVES", "LEAST HOUR IN TIME", "LEAST SHARE OF NEED", "THRESHOLDS"}}
		for k := range p.Policies {
			rows = append(rows, kubernetesRow(&p.Policies[k]))
		}
		cli.Table(w, rows)
		fmt.Fprintln(w)
		rows = [][]string{{"POLICY", "REQUESTED CORE-HOURS", "USED", "NEEDED", "RESIZES A POD AND DAY", "A QUIET HOUR", "FIRST ADVICE", "NODES"}}
		for k := range p.Policies {
			s := &p.Policies[k]
			advice, quiet := "never", "–"
			if s.QuietHours > 0 {
				quiet = fmt.Sprintf("%.1f", s.Quiet)
			}
			if s.Advice != nil {
				advice = (time.Duration(*s.Advice) * time.Second).String()
			}
			rows = append(rows, []string{s.Policy, fmt.Sprintf("%.0f", s.CoreHours), fmt.Sprintf("%.0f", s.UsedHours), fmt.Sprintf("%.0f", s.NeededHours),
				fmt.Sprintf("%.1f", s.Resizes), quiet, advice, fmt.Sprintf("%.1f", s.Nodes)})
		}
		cli.Table(w, rows)
		for _, text := range asked("on "+p.Load, p.Policies) {
			fmt.Fprintln(w, text)
		}
	}
	if len(a.Loads) > 1 {
		for _, text := range asked("on all loads", a.together()) {
			fmt.Fprintln(w, text)
		}
	}
}

// together adds up the loads: sums, but means of resizes and the latest first advice.
func (a *kubernetesAnswer) together() []kubernetes.Summary {
	var all []kubernetes.Summary
	for i := range a.Loads {
		for k, s := range a.Loads[i].Policies {
			if i == 0 {
				all = append(all, kubernetes.Summary{Policy: s.Policy, Advice: s.Advice})
			}
			t := &all[k]
			t.Missed, t.CoreHours, t.Nodes = t.Missed+s.Missed, t.CoreHours+s.CoreHours, t.Nodes+s.Nodes
			t.Resizes += s.Resizes / float64(len(a.Loads))
			if hours := t.QuietHours + s.QuietHours; hours > 0 {
				t.Quiet, t.QuietHours = (t.Quiet*t.QuietHours+s.Quiet*s.QuietHours)/hours, hours
			}
			if t.Advice != nil && (s.Advice == nil || *s.Advice > *t.Advice) {
				t.Advice = s.Advice
			}
		}
	}
	return all
}

// asked compares each way to play trimtab with what is asked of its requests.
func asked(where string, policies []kubernetes.Summary) (out []string) {
	of := func(name string) *kubernetes.Summary {
		i := slices.IndexFunc(policies, func(s kubernetes.Summary) bool { return s.Policy == name })
		if i < 0 {
			return nil
		}
		return &policies[i]
	}
	for _, name := range []string{simulated.Trimtab, kubernetes.Steps, kubernetes.Number} {
		s, vpa, eks := of(name), of(simulated.VPA), of(simulated.EKS)
		if s == nil || vpa == nil || eks == nil {
			continue
		}
		out = append(out, "", name+" "+where+", of what is asked:")
		check := func(what string, is, most float64) {
			met := "missed"
			if is <= most {
				met = "met"
			}
			out = append(out, fmt.Sprintf("  %-52s %.3g of at most %.3g: %s", what, is, most, met))
		}
		check("requests, as a part of those of eks", s.CoreHours/eks.CoreHours, 0.75)
		check("requests, as a part of those of vpa", s.CoreHours/vpa.CoreHours, 0.80)
		check("minutes missed, beside eks", s.Missed, eks.Missed)
		check("minutes missed, beside vpa", s.Missed, vpa.Missed)
		check("nodes, as a part of those of eks", s.Nodes/eks.Nodes, 0.85)
		check("resizes a pod and day", s.Resizes, 4)
		if s.QuietHours > 0 {
			check("resizes of a service in a quiet hour", s.Quiet, 0)
		}
		if s.Advice != nil {
			check("first advice, in minutes", *s.Advice/60, 5)
		}
	}
	return out
}

// kubernetesRow is a policy's line of the table.
func kubernetesRow(s *kubernetes.Summary) []string {
	saves, least, most := "–", 0.0, 0.0
	if s.Saved != nil {
		saves = fmt.Sprintf("%.1f%%", 100**s.Saved)
	}
	for i := range s.Services {
		v := s.Services[i].Threshold
		if i == 0 {
			least = v
		}
		least, most = min(least, v), max(most, v)
	}
	thresholds := "–"
	if most > 0 {
		thresholds = fmt.Sprintf("%g%% to %g%%", least, most)
	}
	return []string{s.Policy, fmt.Sprintf("%.1f", s.Missed), fmt.Sprintf("%.1f", s.MissedErr), fmt.Sprintf("%.0f", s.CoreHours), fmt.Sprintf("%.0f", s.CoreHoursErr),
		saves, fmt.Sprintf("%.1f%%", 100*s.Served), fmt.Sprintf("%.0f%% (%s)", 100*s.Needed, s.Worst), thresholds}
}

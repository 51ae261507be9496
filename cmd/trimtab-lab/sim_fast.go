package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/microservices/fast"
)

// fastAnswer is what `trimtab-lab sim microservices --fast -o json` prints.
type fastAnswer struct {
	Environment fastEnvironment `json:"environment"`
	// Cores, p99 and the share late of each policy on each load.
	Policies []fastRow `json:"policies"`
	// Unforeseen are steps under the settings of the load diurnal.
	Unforeseen []fastRow   `json:"unforeseen,omitempty"`
	Goals      []fast.Goal `json:"goals"`
}

type fastEnvironment struct {
	Services int      `json:"services"`
	CPUs     int      `json:"cpus"`
	Seconds  int      `json:"seconds"`
	Seeds    int      `json:"seeds"`
	Seed     uint64   `json:"seed"`
	Loads    []string `json:"loads"`
}

// fastRow is one policy on one load, the mean over seeds.
type fastRow struct {
	Policy string `json:"policy"`
	Load   string `json:"load"`
	// Knob is the cheapest that holds the SLO, in hindsight; nil: the policy has none.
	Knob *float64 `json:"knob,omitempty"`
	// Cores is what quotas gave over the CPU used, nil without quotas: the mean sum of
	// Quotas, and what writes refilled. Highest is the 99.9% quantile of the sum of quotas.
	Cores   *float64 `json:"cores_over_used,omitempty"`
	Quotas  *float64 `json:"quotas_over_used,omitempty"`
	Highest *float64 `json:"highest_over_used,omitempty"`
	P99     float64  `json:"p99_ms"`
	Late    float64  `json:"late"`
	// Missed is the number of seeds in which no knob held the SLO.
	Missed  int     `json:"missed"`
	Minutes float64 `json:"minutes_over"`
	Writes  float64 `json:"writes_per_s"`
	// Back is the time until the p99 of a second is within the SLO after a step: median,
	// 95% and longest, in s, of all seeds.
	Back []float64 `json:"back_s,omitempty"`
}

// runFast plays the loop of the host agents beside what is published.
func (c *simMicroservicesCmd) runFast(ctx context.Context, t terminal) error {
	x := &fast.Experiment{Frame: c.frame(ctx), Run: chosen(c.Policy, fast.PolicyNames()), Seconds: c.Seconds, Pool: float64(c.CPUs)}
	if err := c.loads(x); err != nil {
		return err
	}
	var a *fast.Answer
	stopped, err := playing{"microservices", "runs", &x.Frame, x.Runs(), func() (_ int, err error) {
		if a, err = x.Play(); a == nil {
			return 0, err
		}
		return len(a.Cells) + len(a.Pools), err
	}}.under(ctx, t)
	if err != nil {
		return err
	}
	out := &fastAnswer{Environment: fastEnvironment{Services: 19, CPUs: c.CPUs, Seconds: c.Seconds, Seeds: c.Seeds, Seed: c.Seed, Loads: c.Load},
		Policies: fastRows(a.Cells), Unforeseen: fastRows(a.Unforeseen), Goals: a.Goals()}
	return errors.Join(cli.Print(t.out, c.Output, out, func(w io.Writer) { out.text(w) }), stopped)
}

// loads takes names of built-in loads, and files.
func (c *simMicroservicesCmd) loads(x *fast.Experiment) error {
	var names []string
	for _, name := range c.Load {
		switch {
		case name == "all":
			names = append(names, fast.Loads()...)
		case strings.ContainsAny(name, "./"):
			l, err := readFile(name, func(r io.Reader, base string) (*fast.Load, error) { return readLoad(r, base, c.Seconds) })
			if err != nil {
				return hint.Add(err, "a load file has one rate per line and second; .gz is read, too")
			}
			x.Own = append(x.Own, *l)
		default:
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(x.Loads, name) {
			x.Loads = append(x.Loads, name)
		}
	}
	c.Load = slices.Clone(x.Loads)
	for i := range x.Own {
		c.Load = append(c.Load, x.Own[i].Name)
	}
	return nil
}

// longestLoad bounds what is read of a load, in bytes.
const longestLoad = 64 << 20

func readLoad(r io.Reader, name string, seconds int) (*fast.Load, error) {
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", name, err)
		}
		r = z
	}
	text, err := io.ReadAll(io.LimitReader(r, longestLoad+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > longestLoad {
		return nil, trimtab.Invalidf("load %s: more than %d MiB", name, longestLoad>>20)
	}
	short := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".txt")
	return fast.Read(short, string(text), seconds)
}

// fastRows are the means over seeds, in the order of the cells.
func fastRows(cells []fast.Cell) (out []fastRow) {
	type key struct{ name, load string }
	at := map[key][]*fast.Cell{}
	var keys []key
	for i := range cells {
		k := key{cells[i].Name(), cells[i].Load}
		if at[k] == nil {
			keys = append(keys, k)
		}
		at[k] = append(at[k], &cells[i])
	}
	for _, k := range keys {
		r := fastRow{Policy: k.name, Load: k.load}
		n := float64(len(at[k]))
		knob, cores, quotas, highest := 0.0, 0.0, 0.0, 0.0
		var back []float64
		for _, c := range at[k] {
			cores, quotas, highest, back = cores+c.Cores/n, quotas+c.Quotas/n, highest+c.Highest/n, append(back, c.Back...)
			knob, r.P99, r.Late = knob+c.Knob/n, r.P99+c.P99/n, r.Late+c.Late/n
			r.Minutes, r.Writes = r.Minutes+float64(c.MinutesOver)/n, r.Writes+c.Writes/n
			if !c.Holds() {
				r.Missed++
			}
		}
		if !math.IsInf(cores, 0) {
			r.Cores, r.Quotas, r.Highest = &cores, &quotas, &highest
		}
		if fast.HasKnob(at[k][0].Policy) {
			r.Knob = &knob
		}
		if len(back) > 0 {
			r.Back = []float64{lab.Quantile(back, 0.5), lab.Quantile(back, 0.95), slices.Max(back)}
		}
		out = append(out, r)
	}
	return out
}

// text prints the tables.
func (a *fastAnswer) text(w io.Writer) {
	e := &a.Environment
	fmt.Fprintf(w, "hotel reservation: %d services, %d CPUs on 4 hosts, quotas every 100 ms, %d s, mean of %s\n", e.Services, e.CPUs, e.Seconds, view.Count(e.Seeds, "seed"))
	fmt.Fprint(w, "cores (quotas, and what writes refill) / cores used, with the cheapest setting of hindsight that keeps p99 <= 200 ms; in brackets the setting; weights, the kernel alone, sets no quotas; !: SLO missed\n\n")
	rows := [][]string{append([]string{"POLICY"}, upper(e.Loads)...)}
	of := map[string]int{}
	for i := range a.Policies {
		p := &a.Policies[i]
		n, ok := of[p.Policy]
		if !ok {
			n = len(rows)
			of[p.Policy] = n
			rows = append(rows, append([]string{p.Policy}, make([]string, len(e.Loads))...))
		}
		rows[n][1+slices.Index(e.Loads, p.Load)] = p.cell()
	}
	cli.Table(w, rows)
	if len(a.Unforeseen) > 0 {
		fmt.Fprint(w, "\nsettings of diurnal, 3x steps of 5 s come unforeseen\n\n")
		rows = [][]string{{"POLICY", "CORES / USED", "P99 MS", "LATE", "BACK: MEDIAN", "95%", "LONGEST"}}
		for i := range a.Unforeseen {
			p := &a.Unforeseen[i]
			row := []string{p.Policy, coresOf(p.Cores), fmt.Sprintf("%.0f", p.P99), fmt.Sprintf("%.2f%%", 100*p.Late)}
			for _, s := range p.Back {
				row = append(row, seconds(s))
			}
			rows = append(rows, row)
		}
		cli.Table(w, rows)
	}
	fmt.Fprintln(w)
	rows = [][]string{{"GOAL", "MET", "DEMAND", "HERE", "PROTOTYPE"}}
	for _, g := range a.Goals {
		met := "–"
		if g.Met != nil {
			met = map[bool]string{true: "yes", false: "no"}[*g.Met]
		}
		rows = append(rows, []string{g.ID, met, g.Demand, g.Here, g.Prototype})
	}
	cli.Table(w, rows)
}

// seconds prints a recovery; those of 10 s may be longer.
func seconds(s float64) string {
	if s >= 10 {
		return "> 10 s"
	}
	return fmt.Sprintf("%.1f s", s)
}

func upper(names []string) (out []string) {
	for _, n := range names {
		out = append(out, strings.ToUpper(n))
	}
	return out
}

func coresOf(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}

// cell is a policy's figure on one load: without quotas what was late.
func (p *fastRow) cell() string {
	if p.Cores == nil {
		return fmt.Sprintf("%.2f%% late", 100*p.Late) + map[bool]string{true: "!"}[p.Missed > 0]
	}
	s := coresOf(p.Cores)
	if p.Knob != nil {
		s += fmt.Sprintf(" (%.2f)", *p.Knob)
	}
	if p.Missed > 0 {
		s += "!"
	}
	return s
}

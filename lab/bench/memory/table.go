package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// result is a run.
type result struct {
	options
	Machine   string
	Untouched []float64
	Rows      []row
	// Days are the recorded days of each service: the rows before trimtab's.
	Days   map[string][][]reading
	Sweep  []found
	Trials []trial
	// Others is the share of the machine that others used.
	Others float64

	services []*service
}

const mib = 1 << 20

// tooBusy is the share of the machine used by others above which figures are doubtful.
const tooBusy = 0.10

func (r *row) brief() string {
	f := r.sum()
	return fmt.Sprintf("%.0f MiB given, working set %.0f MiB, least in time %.1f%%, p99 at most %.0f ms, %.0f kills", f.Given/mib, f.Working/mib, 100*f.InTime, 1000*f.P99, f.Kills)
}

func (r *result) text(w io.Writer) error {
	fmt.Fprintf(w, "\n%s; seed %d; a day of %v, %.0f requests/s of each service at the highest level; SLO: 95%% within %v\n", r.Machine, r.Seed, r.Day, r.Rate, r.Within)
	if r.Others > tooBusy {
		fmt.Fprintf(w, "WARNING: others used %.0f%% of the machine: latencies are worth little\n", 100*r.Others)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "row\tservice\tgiven MiB\tGiB-h a day\tworking set\tpeak\tin time\tp99 ms\tkills\tmet limit\trefaults\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		for k, f := range append(row.Services, row.sum()) {
			name := "all"
			if k < len(r.services) {
				name = r.services[k].name
			}
			fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%.0f\t%.0f\t%.1f%%\t%.0f\t%.0f\t%.0f\t%.0f\t\n", row.Name, name, f.Given/mib, 24*f.Given/(1<<30), f.Working/mib, f.Peak/mib, 100*f.InTime, 1000*f.P99, f.Kills, f.Met, f.Refaults)
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	other, ours := r.replays()
	fmt.Fprintf(w, "\nreplay of the recorded days, stretched, as the day after eight like them: VPA %.0f MiB and %d overruns, trimtab %.0f MiB and %d\n", other.Given/mib, other.Overruns, ours.Given/mib, ours.Overruns)
	if len(r.Sweep) > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(t, "working set\tleast that held MiB\tdid not hold\tit\tneed by trimtab\toff by\t")
		for i, f := range r.Sweep {
			fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t%.0f\t%+.0f%%\t\n", r.services[i].name, f.Least/mib, f.Broken/mib, f.Why, f.Need/mib, 100*(f.Need/f.Least-1))
		}
		if err := t.Flush(); err != nil {
			return fmt.Errorf("print table: %w", err)
		}
	}
	if len(r.Trials) > 0 {
		fmt.Fprintf(w, "\n%d trials: %s\n", len(r.Trials), brief(r.Trials))
		for _, t := range r.Trials {
			if t.Kills > 0 || t.Short && t.Raised == 0 {
				fmt.Fprintf(w, "  %s from level %.2f to %.2f: %.0f kills, limit %.0f MiB, at the end %.0f MiB\n", t.Service, t.From, t.To, t.Kills, t.Limit/mib, t.Ended/mib)
			}
		}
	}
	fmt.Fprintln(w, "\n"+strings.Join(r.verdict(), "\n"))
	return nil
}

// replays returns the replay of all services together.
func (r *result) replays() (other, ours replayed) {
	for _, s := range r.services {
		if len(r.Days[s.name]) == 0 {
			continue
		}
		a, b := replay(r.Days[s.name])
		other, ours = replayed{other.Given + a.Given, other.Overruns + a.Overruns}, replayed{ours.Given + b.Given, ours.Overruns + b.Overruns}
	}
	return other, ours
}

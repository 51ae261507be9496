package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/client"
)

// contributionsCmd is `trimtab contributions`.
type contributionsCmd struct {
	Files  []string `arg:"" name:"file" help:"Recorded traces, as trace stores and the OpenTelemetry Collector write them: see docs/traces.md." type:"existingfile"`
	Output string   `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
}

// Example is shown by --help.
func (contributionsCmd) Example() string {
	return "trimtab contributions monday.json.gz tuesday.json.gz"
}

// Run reads and prints.
func (c *contributionsCmd) Run(ctx context.Context, t terminal) error {
	var study contribution.Study
	byHost := contribution.Study{ByHost: true}
	waits, hosts := map[string]float64{}, false // in ns, summed over all requests for which the samples stand
	read, err := readTraces(ctx, c.Files, func(r *path.Request) {
		study.Add(r)
		byHost.Add(r)
		for i := range r.Visits {
			v := &r.Visits[i]
			wait := r.Adjusted * float64(v.Wait)
			waits[v.Component] += wait
			if v.Host != "" {
				hosts = true
				waits[v.Component+"\x00"+v.Host] += wait
			}
		}
	})
	if err != nil {
		return fmt.Errorf("contributions: %w", err)
	}
	found, err := study.Contributions()
	if err != nil {
		return fmt.Errorf("contributions: %w", err)
	}
	answer := contributionsAnswer{Levels: len(found.Loads), Loads: found.Loads, Requests: read.requests, Sampled: read.sampled, Flagged: read.flagged, Notes: read.notes}
	answer.Components = contributionLines(&found, waits, read.requests)
	if hosts {
		servpods, err := byHost.Contributions()
		if err != nil {
			return fmt.Errorf("contributions by host: %w", err)
		}
		answer.Servpods = contributionLines(&servpods, waits, read.requests)
	}
	return cli.Print(t.out, c.Output, &answer, answer.text)
}

// contributionLines returns the lines of a study, in its order.
func contributionLines(found *contribution.Answer, waits map[string]float64, requests float64) (out []contributionLine) {
	for _, k := range found.Components {
		m := found.Moments[k.Name]
		component, host, _ := strings.Cut(k.Name, "\x00")
		out = append(out, contributionLine{
			Name: component, Host: host, Mean: 1e3 * k.Mean, Wait: waits[k.Name] / requests / 1e6,
			P: k.P, Rho: k.Rho, V: k.V, Alpha: k.Alpha, C: k.C, CNorm: k.CNorm,
			Step: k.Step, LoadLimit: k.LoadLimit, CoV: m.CoV(), Correlation: m.Correlation(), Requests: m.N,
		})
	}
	return out
}

// contributionsAnswer has the fields that `trimtab contributions -o json` prints.
type contributionsAnswer struct {
	Components []contributionLine `json:"components"`
	// Servpods are the components on each host, where spans name hosts.
	Servpods []contributionLine `json:"servpods,omitempty"`
	Levels   int                `json:"levels"`
	// Loads are the loads of the levels, in requests per second.
	Loads []float64 `json:"loads"`
	// Requests is the number of requests for which the Sampled ones in the files stand.
	Requests float64           `json:"requests"`
	Sampled  int               `json:"sampled_requests"`
	Flagged  map[string]uint64 `json:"flagged"`
	// Notes say which parts of the files were left out, and why.
	Notes []string `json:"notes,omitempty"`
}

// contributionLine is one component; times are means over all requests.
type contributionLine struct {
	Name string  `json:"name"`
	Host string  `json:"host,omitempty"`
	Mean float64 `json:"mean_ms"`
	// Wait is the part of it that callers waited before and after its own spans.
	Wait      float64  `json:"waiting_ms"`
	P         float64  `json:"P"`
	Rho       float64  `json:"rho"`
	V         float64  `json:"V"`
	Alpha     float64  `json:"alpha"`
	C         float64  `json:"C"`
	CNorm     float64  `json:"C_norm"`
	Step      float64  `json:"step"`
	LoadLimit *float64 `json:"loadlimit"`
	// CoV and Correlation are over single requests through it, Requests of them.
	CoV         float64 `json:"cov"`
	Correlation float64 `json:"correlation"`
	Requests    float64 `json:"requests"`
}

// text prints a table for people.
func (a *contributionsAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "%s at %d levels of load\n\n", requestsOf(a.Requests, a.Sampled), a.Levels)
	rows := [][]string{{"COMPONENT", "CONTRIBUTION", "SOJOURN", "OF IT WAITING", "P", "RHO", "V", "ALPHA"}}
	for i := range a.Components {
		rows = append(rows, a.Components[i].row())
	}
	cli.Table(w, rows)
	if len(a.Servpods) > 0 {
		fmt.Fprintf(w, "\nBy host:\n\n")
		rows = [][]string{{"COMPONENT", "HOST", "CONTRIBUTION", "SOJOURN", "OF IT WAITING", "P", "RHO", "V", "ALPHA"}}
		for i := range a.Servpods {
			host := a.Servpods[i].Host
			if host == "" {
				host = "not told"
			}
			rows = append(rows, slices.Insert(a.Servpods[i].row(), 1, client.Printable(host)))
		}
		cli.Table(w, rows)
	}
	if a.Levels < 3 {
		fmt.Fprintf(w, "\nToo few levels of load to tell how components grow with it: traces of more requests are needed, 30 a level.\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(a.Flagged)) {
		fmt.Fprintf(w, "\nflagged: %s: %d spans", kind, a.Flagged[kind])
	}
	if len(a.Flagged) > 0 {
		fmt.Fprintln(w)
	}
	printNotes(w, a.Notes)
}

// printNotes prints which parts of files were left out.
func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "\nnote: %s\n", client.Printable(note))
	}
}

// requestsOf prints how many requests there were, and how many of them a sampler kept.
func requestsOf(requests float64, sampled int) string {
	if math.Abs(requests-float64(sampled)) < 0.5 {
		return fmt.Sprintf("%d requests", sampled)
	}
	return fmt.Sprintf("%.0f requests (%d sampled)", requests, sampled)
}

func (c *contributionLine) row() []string {
	return []string{client.Printable(c.Name), fmt.Sprintf("%.1f%%", 100*c.CNorm), fmt.Sprintf("%.4g ms", c.Mean), fmt.Sprintf("%.4g ms", c.Wait),
		fmt.Sprintf("%.3f", c.P), fmt.Sprintf("%.3f", c.Rho), fmt.Sprintf("%.3f", c.V), fmt.Sprintf("%.3f", c.Alpha)}
}

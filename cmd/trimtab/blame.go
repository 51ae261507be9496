package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/client"
)

// blameCmd is `trimtab blame`.
type blameCmd struct {
	Baseline []string `help:"Recorded traces from before the incident, one or several files." required:"" type:"existingfile" placeholder:"FILE"`
	Incident []string `help:"Recorded traces of the incident, one or several files." required:"" type:"existingfile" placeholder:"FILE"`
	Output   string   `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
}

// Example is shown by --help.
func (blameCmd) Example() string {
	return "trimtab blame --baseline before.json.gz --incident slow-1.json.gz slow-2.json.gz"
}

// eachFile repeats the flag before each file of `trimtab blame --incident a b`, as a shell
// expands a pattern: the parser takes one value per flag.
func eachFile(args []string) []string {
	if !slices.Contains(args, "blame") {
		return args
	}
	var out []string
	of, first := "", false // the flag that files belong to; whether the next is its first
	for _, arg := range args {
		name, _, set := strings.Cut(arg, "=")
		switch {
		case name == "--baseline" || name == "--incident":
			of, first = name, !set
		case strings.HasPrefix(arg, "-"):
			of = ""
		case of != "" && first:
			first = false
		case of != "":
			out = append(out, of)
		}
		out = append(out, arg)
	}
	return out
}

// Help describes the comparison.
func (blameCmd) Help() string {
	return "Compares recorded requests (as Jaeger, Zipkin, Tempo, Grafana, Elasticsearch and the OpenTelemetry Collector have them: see docs/traces.md) and ranks the components by their part in the growth of the tail of the latency. " +
		"Waiting between a caller's span and its callee's counts for the callee, unless the caller's wait at least doubled at all of its callees: then the caller itself lacks CPU and is charged. " +
		"If no quantile of the latency (p90, p95, p99) grew by at least 10% and by more than chance explains, it says \"no change\"."
}

// Run compares and prints.
func (c *blameCmd) Run(ctx context.Context, t terminal) error {
	var before, after contribution.Requests
	earlier, err := readTraces(ctx, c.Baseline, before.Add)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	later, err := readTraces(ctx, c.Incident, after.Add)
	if err != nil {
		return fmt.Errorf("incident: %w", err)
	}
	answer := newBlameAnswer(contribution.Blame(&before, &after), &before, &after)
	answer.Notes = slices.Concat(earlier.notes, later.notes)
	return cli.Print(t.out, c.Output, &answer, answer.text)
}

// blameAnswer has the fields that `trimtab blame -o json` prints.
type blameAnswer struct {
	Verdict string `json:"verdict"`
	// Baseline and Incident are how many requests the sampled ones stand for.
	Baseline        float64     `json:"baseline_requests"`
	Incident        float64     `json:"incident_requests"`
	BaselineSampled int         `json:"baseline_sampled_requests"`
	IncidentSampled int         `json:"incident_sampled_requests"`
	Tail            []tailLine  `json:"tail"`
	Components      []blameLine `json:"components"`
	// Notes say which parts of the files were left out, and why.
	Notes  []string `json:"notes,omitempty"`
	chosen contribution.Growth
}

// tailLine compares one quantile of the latency before and after.
type tailLine struct {
	Quantile float64 `json:"quantile"`
	Before   float64 `json:"before_ms"`
	After    float64 `json:"after_ms"`
	Slower   float64 `json:"slower"`
	P        float64 `json:"p"`
}

// blameLine is one component. Times are means per request through it, with the
// waiting that counts for it.
type blameLine struct {
	Name       string  `json:"name"`
	Share      float64 `json:"share"`
	Before     float64 `json:"before_ms"`
	After      float64 `json:"after_ms"`
	WaitBefore float64 `json:"waiting_before_ms"`
	WaitAfter  float64 `json:"waiting_after_ms"`
	Requests   float64 `json:"requests"`
	Slow       float64 `json:"slow_requests"`
	Starved    bool    `json:"starved_caller,omitempty"`
	Example    string  `json:"example_trace"`
}

func newBlameAnswer(v contribution.Verdict, before, after *contribution.Requests) blameAnswer {
	a := blameAnswer{Verdict: "no change", Baseline: before.Total(), Incident: after.Total(), BaselineSampled: before.Count(), IncidentSampled: after.Count(), Tail: []tailLine{}, Components: []blameLine{}, chosen: v.Chosen}
	if v.Changed {
		a.Verdict = "changed"
	}
	for _, g := range v.Tail {
		a.Tail = append(a.Tail, tailLine{g.Quantile, 1e3 * g.Before, 1e3 * g.After, g.Slower, g.P})
	}
	for _, c := range v.Components {
		a.Components = append(a.Components, blameLine{
			Name: c.Name, Share: c.Share, Before: 1e3 * c.Before, After: 1e3 * c.After, WaitBefore: 1e3 * c.BeforeWait, WaitAfter: 1e3 * c.AfterWait,
			Requests: c.Requests, Slow: c.Slow, Starved: c.Starved, Example: hex.EncodeToString(c.Example[:]),
		})
	}
	return a
}

// leastShown is the least share of a component that gets a line on a screen.
const leastShown = 0.01

// text prints a verdict and a table for people.
func (a *blameAnswer) text(w io.Writer) {
	defer printNotes(w, a.Notes)
	for _, g := range a.Tail {
		fmt.Fprintf(w, "p%-3.4g %8.4g ms → %.4g ms\n", 100*g.Quantile, g.Before, g.After)
	}
	if a.Verdict != "changed" {
		fmt.Fprintf(w, "no change: no quantile of the latency grew by at least 10%% and by more than chance explains (%s, %s in the baseline)\n",
			requestsOf(a.Incident, a.IncidentSampled), requestsOf(a.Baseline, a.BaselineSampled))
		return
	}
	fmt.Fprintf(w, "changed: %.3g%% of %s took longer than %.4g ms, the p%.4g of %s before\n\n",
		100*a.chosen.Slower, requestsOf(a.Incident, a.IncidentSampled), 1e3*a.chosen.Before, 100*a.chosen.Quantile, requestsOf(a.Baseline, a.BaselineSampled))
	rows := [][]string{{"COMPONENT", "PART", "BEFORE", "AFTER", "OF IT WAITING", "REQUESTS", "SLOW", "EXAMPLE TRACE"}}
	rest, starved := 1.0, ""
	for _, c := range a.Components {
		rest -= c.Share
		if c.Share < leastShown {
			continue
		}
		rows = append(rows, []string{client.Printable(c.Name), fmt.Sprintf("%.0f%%", 100*c.Share), fmt.Sprintf("%.4g ms", c.Before), fmt.Sprintf("%.4g ms", c.After),
			fmt.Sprintf("%.4g → %.4g ms", c.WaitBefore, c.WaitAfter), fmt.Sprintf("%.0f", c.Requests), fmt.Sprintf("%.0f", c.Slow), c.Example})
		if c.Starved {
			starved += fmt.Sprintf("%s waits longer at all its callees, while they are as quick as before: the waiting counts for it.\n", client.Printable(c.Name))
		}
	}
	cli.Table(w, rows)
	if rest >= leastShown {
		fmt.Fprintf(w, "\n%.0f%% of the growth is of no component: a few slow requests, or requests of another kind.\n", 100*rest)
	}
	if starved != "" {
		fmt.Fprint(w, "\n"+starved)
	}
}

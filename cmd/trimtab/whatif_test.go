package main

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/whatif"
)

func TestAWhatIfIsPrintedWithWhoGainsInTheFirstLine(t *testing.T) {
	band := func(p float64) *trimtab.Band { return &trimtab.Band{Lower: p - .02, Mean: p, Upper: p + .02} }
	a := whatif.Answer{Pool: "shop", Objective: "social", Resource: "cpu", CapacityBefore: 8, CapacityAfter: 6, Gain: 1, Hold: 1,
		Change:  whatif.Change{Capacity: map[string]float64{"cpu": 6}, SLO: map[string]string{"checkout": "200ms"}, Weight: map[string]float64{"shop": 2}},
		Assumes: []string{"the latencies of checkout keep their shape"}, Absent: map[string]string{"lost": "no actuator has its knob"},
		Workloads: []whatif.Workload{
			{Workload: "checkout", Share: true, Effect: whatif.Gains, Now: 2, Before: whatif.Outlook{Allocation: 2, SLO: .95, Weight: 1, Performance: band(.93), Meets: whatif.MeetsUnlikely}, After: whatif.Outlook{Allocation: 3.5, SLO: .95, Weight: 2, Performance: band(.96), Meets: whatif.MeetsLikely}},
			{Workload: "mail", Effect: whatif.Holds, Held: "estimate: 5m old", Now: 1, Before: whatif.Outlook{Allocation: 1, Meets: whatif.MeetsUnknown}, After: whatif.Outlook{Allocation: 1, Meets: whatif.MeetsUnknown}}}}
	for _, wide := range []bool{false, true} {
		var b strings.Builder
		printWhatIf(&b, &a, wide)
		for _, want := range []string{"with capacity cpu=6, weight shop=2, slo checkout=200ms: 1 would gain, 0 would pay, 0 would stay the same, 1 not planned for; pool shop: 8 -> 6 cores",
			"93% (91% to 95%)", "96% (94% to 98%)", "unlikely -> likely", "left out: lost: no actuator has its knob", "assumed: the latencies of checkout"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		if strings.Contains(b.String(), "estimate: 5m old") != wide {
			t.Errorf("wide %v:\n%s", wide, b.String())
		}
	}
}

func TestAReportIsTextMarkdownAndHTMLOfTheSameWords(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := view.Report{Pool: "shop", Resource: "cpu", Objective: "njc", From: from, To: from.Add(24 * time.Hour),
		Total: view.Worth{Minutes: 1440, SLOMinutes: 1400, Hours: 40, KnownHours: 24, Compared: &view.Comparison{Minutes: 1400, Had: view.ByCurve{SLOMinutes: trimtab.Band{Lower: 1300, Mean: 1380, Upper: 1400}, Hours: 40},
			Baseline: view.ByCurve{SLOMinutes: trimtab.Band{Lower: 1200, Mean: 1250, Upper: 1300}, Hours: 60}, Gain: trimtab.Band{Lower: 100, Mean: 130, Upper: 130}}},
		Moves: []view.Counted{{What: "written", Count: 12}}, Verdicts: []view.Counted{},
		Incidents: []view.Incident{{Workload: "<b>a|b</b>", From: from, To: from.Add(5 * time.Minute), Worst: .5, Share: true, Ongoing: true}},
		Missing:   []string{"Had no limit before trimtab: mail."}}
	r.Workloads = []view.WorthOf{{Workload: "<b>a|b</b>", Mode: trimtab.Act, Worth: r.Total, Budget: &view.Budget{Left: .62}, Decisions: 12}}
	var text, markdown, html strings.Builder
	printDocument(&text, r.Document())
	printMarkdown(&markdown, r.Document())
	if err := printHTML(&html, r.Document()); err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{text.String(), markdown.String(), strings.ReplaceAll(html.String(), "&#43;", "+")} {
		for _, want := range []string{"SLOs were met in 1400 of 1440 workload minutes (97%)", "+130 SLO minutes gained (+100 to +130), with 40 instead of 60 core-hours", "written", "goes on", "62%", "Had no limit before trimtab", "No move was judged"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
	if strings.Contains(html.String(), "<b>a") || strings.Contains(markdown.String(), "<b>a") || !strings.Contains(markdown.String(), `a\|b`) {
		t.Errorf("a name is markup:\n%s\n%s", markdown.String(), html.String())
	}
}

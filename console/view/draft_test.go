package view

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func TestADraftReadsAsTheServiceWhateverItIsCalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := Row{Name: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"on", "12", "a: b", "x\nmode: act", "#"})).Draw(t, "name")}
		if strings.ToValidUTF8(row.Name, "") != row.Name {
			return
		}
		if rapid.Bool().Draw(t, "measured") {
			row.Observed = seen(rapid.Float64Range(1, 1e6).Draw(t, "requests"), 30*time.Millisecond, 33*time.Millisecond)
		}
		lines, _ := Draft(&row, "", 0)
		var read struct{ Workloads []map[string]any }
		if err := yaml.Unmarshal([]byte("workloads:\n"+strings.Join(lines, "\n")), &read); err != nil {
			t.Fatalf("%v in\n%s", err, strings.Join(lines, "\n"))
		}
		if len(read.Workloads) != 1 || read.Workloads[0]["mode"] != "off" {
			t.Fatalf("%v of\n%s", read.Workloads, strings.Join(lines, "\n"))
		}
		if name, ok := read.Workloads[0]["name"].(string); !ok || name != row.Name {
			t.Fatalf("%q, want %q", read.Workloads[0]["name"], row.Name)
		}
	})
}

// seen is what 12 minutes of so many requests showed; upper 0: no bound.
func seen(requests float64, p95, upper time.Duration) *trimtab.Observed {
	from := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	o := &trimtab.Observed{From: from, To: from.Add(12 * time.Minute), Requests: requests, Load: requests / 720, LoadMost: requests / 360, P95: trimtab.SecondsOf(p95)}
	if upper > 0 {
		u := trimtab.SecondsOf(upper)
		o.P95Upper = &u
	}
	return o
}

func TestADraftProposesTheUpperBoundWithAMarginAndSaysWhatItSaw(t *testing.T) {
	row := Row{Name: "shop", Observed: seen(1440, 30*time.Millisecond, 33400*time.Microsecond)}
	lines, recommends := Draft(&row, "shop.service", 4)
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"\n    slo: {latency: 75ms, fraction: 0.95} # saw 1440 requests in 12m, at 2 requests/s on average and 4 at most: " +
			"95% of them took at most 30ms, with 95% confidence at most 33.4ms; this is 1.5 times that, rounded up.",
		"\n    knob: {cgroup: shop.service, cpu: {max: 4}}", "\n    mode: recommend",
	} {
		if !recommends || !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestADraftAfterLessThanADayWarnsOfOtherHours(t *testing.T) {
	const warning = "other hours may be slower: draft again after a usual day"
	for seenFor, want := range map[time.Duration]bool{time.Minute: true, 19 * time.Hour: true, 21 * time.Hour: false} {
		row := Row{Name: "shop", Observed: seen(1440, 30*time.Millisecond, 33*time.Millisecond)}
		row.Observed.To = row.Observed.From.Add(seenFor)
		if lines, _ := Draft(&row, "", 0); strings.Contains(strings.Join(lines, "\n"), warning) != want {
			t.Errorf("%v: %s", seenFor, lines)
		}
	}
}

func TestADraftAfterTooFewRequestsIsMarkedAsAGuessAndOnlyWatches(t *testing.T) {
	for why, row := range map[string]Row{
		"a guess: saw only 12 requests in 12m, at 0.0167 requests/s on average and 0.0333 at most; 59 are needed": {Name: "shop", Observed: seen(12, 30*time.Millisecond, 0)},
		"a guess: saw only 1 request in 12m":           {Name: "shop", Observed: seen(1, 30*time.Millisecond, 0)},
		"a guess: no latency was measured yet":         {Name: "shop"},
		"a guess: the number of requests is not known": {Name: "shop", Latency: map[string]trimtab.Seconds{"p95": .03}},
	} {
		for _, group := range []string{"", "shop.service"} {
			lines, recommends := Draft(&row, group, 4)
			text := strings.Join(lines, "\n")
			if recommends || !strings.Contains(text, "\n    # slo: {latency: ") || !strings.Contains(text, why) || !strings.Contains(text, "\n    mode: off #") || strings.Contains(text, "\n    knob:") {
				t.Errorf("no %q in\n%s", why, text)
			}
		}
	}
}

func TestAProposedLatencyIsOneThatPeopleWriteAndNeverBelowTheMargin(t *testing.T) {
	for measured, want := range map[time.Duration]time.Duration{
		1: time.Millisecond, 700 * time.Microsecond: 2 * time.Millisecond, 3 * time.Millisecond: 5 * time.Millisecond,
		4 * time.Millisecond: 10 * time.Millisecond, 30 * time.Millisecond: 50 * time.Millisecond, 33400 * time.Microsecond: 75 * time.Millisecond,
		51 * time.Millisecond: 100 * time.Millisecond, 90 * time.Millisecond: 150 * time.Millisecond, 800 * time.Millisecond: 1500 * time.Millisecond,
		2 * time.Second: 3 * time.Second, math.MaxInt64: math.MaxInt64,
	} {
		if got := proposed(measured); got != want {
			t.Errorf("%v: proposed %v, want %v", measured, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "measured"))
		if got := proposed(d); float64(got) < draftMargin*float64(d) || got > max(time.Millisecond, 4*d) {
			t.Errorf("%v: proposed %v", d, got)
		}
	})
}

package view

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantile"
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
		lines, _ := Draft(&row, DraftKnob{})
		var read struct{ Workloads []map[string]any }
		if err := yaml.Unmarshal([]byte("workloads:\n"+strings.Join(lines, "\n")), &read); err != nil {
			t.Fatalf("%v in\n%s", err, strings.Join(lines, "\n"))
		}
		if len(read.Workloads) != 1 || read.Workloads[0]["mode"] != "off" {
			t.Fatalf("%v of\n%s", read.Workloads, strings.Join(lines, "\n"))
		}
		name, ok := read.Workloads[0]["name"].(string)
		if match, is := read.Workloads[0]["match"].(map[string]any); is {
			name, ok = match["spans"].(map[string]any)["service.name"].(string)
		}
		if !ok || name != row.Name {
			t.Fatalf("%q, want %q", name, row.Name)
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
	lines, recommends := Draft(&row, DraftKnob{Group: "shop.service", Cores: 4})
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

// A service behind a queue, 8 ms of work a request, whose load rises from 20 to 90 requests
// per second and falls again within a day (of 3 hours here).
func TestADraftFromOneDayIsMetTheNextDayAndOneFromAQuietMinuteIsNotAndWarns(t *testing.T) {
	const minutes, work = 180, 0.008
	r := rand.New(rand.NewPCG(5, 6))
	day := func() (each [minutes][]float64) { // latencies in seconds, by minute
		free, now := 0.0, 0.0
		for now < 60*minutes {
			now += r.ExpFloat64() / (55 - 35*math.Cos(2*math.Pi*now/(60*minutes)))
			free = max(free, now) + work*r.ExpFloat64()
			if m := int(now / 60); m < minutes {
				each[m] = append(each[m], free-now)
			}
		}
		return each
	}
	draft := func(length time.Duration, latencies ...[]float64) (slo time.Duration, text string) {
		var h quantile.Histogram
		for _, v := range slices.Concat(latencies...) {
			h.Add(v, 1)
		}
		p95, _ := h.Quantile(trimtab.ObservedQuantile)
		upper, ok := h.Upper(trimtab.ObservedQuantile, trimtab.ObservedConfidence, h.Count())
		if !ok {
			t.Fatal("too few requests")
		}
		row := Row{Name: "shop", Observed: seen(h.Count(), trimtab.Seconds(p95).Duration(), trimtab.Seconds(upper).Duration())}
		row.Observed.To = row.Observed.From.Add(length)
		line, _ := draftSLO(&row)
		slo, err := time.ParseDuration(line[len("slo: {latency: "):strings.Index(line, ",")])
		if err != nil {
			t.Fatal(err)
		}
		return slo, line
	}
	first, second := day(), day()
	met := func(slo time.Duration) float64 { // the share of the minutes of the second day
		n := 0
		for _, m := range second {
			within := 0
			for _, v := range m {
				if v <= slo.Seconds() {
					within++
				}
			}
			if float64(within) >= 0.95*float64(len(m)) {
				n++
			}
		}
		return float64(n) / minutes
	}
	ofDay, text := draft(24*time.Hour, first[:]...)
	t.Logf("from a day: %v, met in %.0f%% of the minutes", ofDay, 100*met(ofDay))
	if met(ofDay) < 0.98 || strings.Contains(text, "other hours may be slower") {
		t.Errorf("from a day: %v, met in %.1f%% of the minutes: %s", ofDay, 100*met(ofDay), text)
	}
	ofMinute, text := draft(time.Minute, first[0])
	quiet := slices.Sorted(slices.Values(first[0]))
	before := time.Duration(1.5 * quiet[len(quiet)*95/100] * 1e9) // what was drafted without a bound
	t.Logf("from a quiet minute: %v, met in %.0f%% of the minutes; by its p95 alone: %v, %.0f%%", ofMinute, 100*met(ofMinute), before, 100*met(before))
	if !strings.Contains(text, "other hours may be slower") || met(ofMinute) >= met(ofDay) {
		t.Errorf("from a quiet minute: %v, met in %.1f%% of the minutes: %s", ofMinute, 100*met(ofMinute), text)
	}
}

func TestADraftAfterLessThanADayWarnsOfOtherHours(t *testing.T) {
	const warning = "other hours may be slower: draft again after a usual day"
	for seenFor, want := range map[time.Duration]bool{time.Minute: true, 19 * time.Hour: true, 21 * time.Hour: false} {
		row := Row{Name: "shop", Observed: seen(1440, 30*time.Millisecond, 33*time.Millisecond)}
		row.Observed.To = row.Observed.From.Add(seenFor)
		if lines, _ := Draft(&row, DraftKnob{}); strings.Contains(strings.Join(lines, "\n"), warning) != want {
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
			lines, recommends := Draft(&row, DraftKnob{Group: group, Cores: 4})
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

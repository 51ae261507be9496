package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// of is a sample of one instance, of the second that ends at ms.
func of(id instanceID, q quantity.Quantity, at int, v float64) *trimtab.Sample {
	return &trimtab.Sample{Workload: "w", Host: id.host, Instance: id.name, Quantity: q, Source: "cgroup", Time: ms(at), Window: 1, Value: v}
}

func never(quantity.Quantity) time.Duration { return time.Hour }

// joining ticks a join with samples and returns what it made.
func joining(j *Join, h *History, at int, samples ...*trimtab.Sample) (out []*trimtab.Sample) {
	for _, s := range samples {
		j.Observe(s)
	}
	j.Tick(ms(at), h, never, func(s *trimtab.Sample) { out = append(out, s) })
	return out
}

var h1, h2a, h2b = instanceID{"h1", ""}, instanceID{"h2", "a"}, instanceID{"h2", "b"}

// three is one instance on host h1 and two on h2.
func three(t *testing.T) *History {
	k := func(name string) knob { return knob{instance: name, amount: cores(2), since: -9000} }
	return historyOf(t, holds("h1", 0, k("")), holds("h2", 0, k("a"), k("b")))
}

func TestSamplesOfInstancesMakeOneOfTheWorkloadOnceAllHaveTold(t *testing.T) {
	for _, c := range []struct {
		q    quantity.Quantity
		want float64
	}{
		{quantity.Usage, 6}, {quantity.Load, 6}, {quantity.Latency, 3}, {quantity.Performance, 2}, {quantity.Proxy, 2}, {quantity.Allocation, 3},
	} {
		j, h := &Join{}, three(t)
		if got := joining(j, h, 1000, of(h1, c.q, 900, 1), of(h2a, c.q, 950, 2)); got != nil {
			t.Errorf("%s: %v though an instance has not told", c.q, got[0])
		}
		got := joining(j, h, 1250, of(h2b, c.q, 1100, 3))
		want := []*trimtab.Sample{{Workload: "w", Quantity: c.q, Source: "cgroup", Time: ms(900), Window: 1, Value: c.want}}
		if d := cmp.Diff(want, got, near()); d != "" {
			t.Errorf("%s: %s", c.q, d)
		}
		if got := joining(j, h, 2000, of(h1, c.q, 1900, 1), of(h1, c.q, 1950, 1), of(h2b, c.q, 1100, 9), of(h2b, c.q, 1901, 3)); got != nil {
			t.Errorf("%s: %v though an instance has told nothing new", c.q, got[0])
		}
	}
}

func near() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(a)) })
}

func TestTheSampleOfTheOnlyInstanceIsThatOfTheWorkload(t *testing.T) {
	h := historyOf(t, holds("h1", 0, knob{amount: cores(2)}))
	s := &trimtab.Sample{Workload: "w", Host: "h1", Quantity: quantity.Performance, Source: "prometheus", Time: ms(900), Window: 0.1, Value: 0.1, Requests: 7, Sigma: 0.3}
	want := *s
	want.Host = ""
	if d := cmp.Diff([]*trimtab.Sample{&want}, joining(&Join{}, h, 1000, s)); d != "" {
		t.Error(d)
	}
}

// Whoever counts by host does not know what an agent calls the one instance there.
func TestASampleOfAHostIsThatOfItsOnlyInstance(t *testing.T) {
	h := historyOf(t, holds("h1", 0, knob{instance: "x", amount: cores(2), since: -9000}), holds("h2", 0, knob{instance: "a", amount: cores(2), since: -9000}, knob{instance: "b", amount: cores(2), since: -9000}))
	j := &Join{}
	if got := joining(j, h, 1000, of(instanceID{"h1", ""}, quantity.Load, 900, 1), of(h2a, quantity.Load, 900, 2), of(h2b, quantity.Load, 900, 3)); len(got) != 1 || got[0].Value != 6 {
		t.Errorf("%v, want the sum 6", got)
	}
	if got := joining(j, h, 2000, of(instanceID{"h2", ""}, quantity.Load, 1900, 5), of(instanceID{"h1", ""}, quantity.Load, 1900, 1)); len(got) != 0 {
		t.Errorf("%v, though h2 has two instances, of which none is named", got)
	}
}

func TestPerformanceCountsByTheRequestsAndElseByTheLoadThatAnInstanceServes(t *testing.T) {
	j, h := &Join{}, three(t)
	var in []*trimtab.Sample
	for id, requests := range map[instanceID]float64{h1: 10, h2a: 20, h2b: 70} {
		s := of(id, quantity.Performance, 900, requests/100)
		s.Requests, s.Sigma = requests, 0.1
		in = append(in, s)
	}
	got := joining(j, h, 1000, in...)
	if len(got) != 1 || math.Abs(got[0].Value-0.54) > 1e-12 || got[0].Requests != 100 || math.Abs(got[0].Sigma-0.1*math.Sqrt(0.54)) > 1e-12 {
		t.Errorf("%+v, want 0.54 of 100 requests", got)
	}
	joining(j, h, 2000, of(h1, quantity.Load, 1900, 10), of(h2a, quantity.Load, 1900, 20), of(h2b, quantity.Load, 1900, 70))
	got = joining(j, h, 2000, of(h1, quantity.Performance, 1900, 0.1), of(h2a, quantity.Performance, 1900, 0.2), of(h2b, quantity.Performance, 1900, 0.7))
	if len(got) != 1 || math.Abs(got[0].Value-0.54) > 1e-12 || got[0].Requests != 0 {
		t.Errorf("%+v, want 0.54", got)
	}
}

func TestThrottledIsThatOfTheInstanceThatIsStoppedMostInTheSameTime(t *testing.T) {
	j, h := &Join{}, three(t)
	got := joining(j, h, 1000, of(h1, quantity.Throttled, 900, 0.2), of(h2a, quantity.Throttled, 900, 0.7), // the third has no quota
		of(h1, quantity.Usage, 900, 1), of(h2a, quantity.Usage, 900, 1), of(h2b, quantity.Usage, 900, 1))
	if len(got) != 2 || got[1].Quantity != quantity.Throttled || got[1].Value != 0.7 || !got[1].Time.Equal(got[0].Time) || got[1].Window != got[0].Window {
		t.Fatalf("%+v, want 0.7 of the periods", got)
	}
	got = joining(j, h, 2000, of(h1, quantity.Throttled, 1900, 0.1), of(h1, quantity.Usage, 1900, 1), of(h2a, quantity.Usage, 1900, 1), of(h2b, quantity.Usage, 1900, 1))
	if len(got) != 2 || got[1].Value != 0.1 {
		t.Errorf("%+v, want 0.1: what the second told before is of another time", got)
	}
}

func TestWhatWaitsIsTheSumOverTheInstancesThatMayWait(t *testing.T) {
	j, h := &Join{}, three(t)
	got := joining(j, h, 1000, of(h1, quantity.Usage, 900, 1), of(h2a, quantity.Usage, 900, 1), of(h2b, quantity.Usage, 900, 1),
		of(h1, quantity.Waited, 900, 2), of(h2b, quantity.Waited, 900, 3), of(h1, quantity.Queued, 900, 7), of(h2a, quantity.Queued, 800, 9))
	if len(got) != 3 || got[1].Quantity != quantity.Waited || got[1].Value != 5 || got[2].Quantity != quantity.Queued || got[2].Value != 7 || !got[2].Time.Equal(got[0].Time) {
		t.Errorf("%+v, want 5 s that threads waited, and 7 connections: those of another time are left out", got)
	}
	if len(got) == 3 && got[2].Note != "" {
		t.Errorf("%q: the others do not wait", got[2].Note)
	}
	turn := of(h1, quantity.Queued, 1900, 0)
	turn.Missing = "is read in turn"
	idle := of(h1, quantity.Throttled, 1900, 0)
	idle.Missing = "no period elapsed"
	got = joining(j, h, 2000, turn, of(h2a, quantity.Queued, 1900, 9), idle, of(h2a, quantity.Throttled, 1900, 0.05), of(h1, quantity.Usage, 1900, 1), of(h2a, quantity.Usage, 1900, 1), of(h2b, quantity.Usage, 1900, 1))
	if len(got) != 3 || got[1].Quantity != quantity.Throttled || got[1].Note != "" || got[2].Value != 9 || got[2].Note != Partly {
		t.Errorf("%+v, want 9 connections at least, since one was not read", got)
	}
}

func TestAnInstanceThatStopsTellingIsNamedAndNoSumIsTooLow(t *testing.T) {
	j, h := &Join{}, three(t)
	joining(j, h, 1000, of(h1, quantity.Usage, 900, 1), of(h2a, quantity.Usage, 900, 1), of(h2b, quantity.Usage, 900, 1))
	var said []string
	for at := 2000; at <= 6000; at += 1000 {
		absent := of(h2a, quantity.Usage, at-100, 0)
		absent.Missing = "absent"
		if got := joining(j, h, at, of(h1, quantity.Usage, at-100, 1), absent, of(h2b, quantity.Usage, at-100, 1)); got != nil {
			t.Errorf("second %d: %v", at/1000, got[0])
		}
		j.ReportMissing(ms(at), h, func(quantity.Quantity) time.Duration { return 2 * time.Second }, func(s *trimtab.Sample) { said = append(said, s.Missing) })
	}
	if want := []string{"no sample of instance a on host h2: absent"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q once", said, want)
	}
	if got := joining(j, h, 7000, of(h1, quantity.Usage, 6900, 1), of(h2a, quantity.Usage, 6900, 2), of(h2b, quantity.Usage, 6900, 1)); len(got) != 1 || got[0].Value != 4 {
		t.Errorf("it tells again: %+v", got)
	}
}

func TestNothingIsKeptOfAnInstanceThatIsGoneAndTheOthersGoOn(t *testing.T) {
	j, h, room := &Join{}, three(t), MaxKept
	all := func(at int) []*trimtab.Sample {
		return []*trimtab.Sample{of(h1, quantity.Usage, at, 1), of(h2a, quantity.Usage, at, 2), of(h2b, quantity.Usage, at, 3), of(h2b, quantity.Load, at, 3)}
	}
	joining(j, h, 1000, all(900)...)
	joining(j, h, 1250, of(h2b, quantity.Usage, 1200, 3)) // its last word
	h.Observe(holds("h2", 1500, knob{instance: "a", amount: cores(2)}), "w", &room)
	if got := joining(j, h, 1750, of(h1, quantity.Usage, 1700, 1)); got != nil {
		t.Errorf("%+v though an instance that is there has not told", got[0])
	}
	got := joining(j, h, 2000, all(1900)...)
	if len(got) != 1 || got[0].Value != 3 {
		t.Errorf("%+v, want 3", got)
	}
	if len(j.of[quantity.Usage].latest) != 2 || len(j.loads) != 0 || j.of[quantity.Load] != nil {
		t.Errorf("kept %v, %v", j.of, j.loads)
	}
	// A new one is waited for.
	k := func(name string) knob { return knob{instance: name, amount: cores(2), since: 2500} }
	h.Observe(holds("h2", 2500, k("a"), k("c")), "w", &room)
	if got := joining(j, h, 3000, all(2900)...); got != nil {
		t.Errorf("%v without the new instance", got[0])
	}
	if got := joining(j, h, 3250, of(instanceID{"h2", "c"}, quantity.Usage, 3000, 5)); len(got) != 1 || got[0].Value != 8 {
		t.Errorf("%+v, want 8", got)
	}
}

func TestAnInstanceWhoseKnobCannotBeReadIsNotWaitedForUnlessItTells(t *testing.T) {
	standby := holds("h3", 0, knob{amount: cores(2), problem: "no such directory"})
	j, room := &Join{}, MaxKept
	h := three(t)
	h.Observe(standby, "w", &room)
	three := func(at int) []*trimtab.Sample {
		return []*trimtab.Sample{of(h1, quantity.Load, at, 1), of(h2a, quantity.Load, at, 1), of(h2b, quantity.Load, at, 1)}
	}
	if got := joining(j, h, 1000, three(900)...); len(got) != 1 || got[0].Value != 3 {
		t.Fatalf("%+v, want 3", got)
	}
	j.Observe(of(instanceID{"h3", ""}, quantity.Load, 1800, 1))
	if got := joining(j, h, 2000, three(1900)...); len(got) != 1 || got[0].Value != 4 {
		t.Fatalf("%+v, want 4: it serves all the same", got)
	}
	if got := joining(j, h, 3000, three(2900)...); got != nil {
		t.Errorf("%+v though what the one told before is not stale", got)
	}
}

func TestAMillionSamplesOfInstancesCostBoundedMemory(t *testing.T) {
	j, refused := &Join{}, 0
	for i := range 1_000_000 {
		if !j.Observe(of(instanceID{"h", fmt.Sprint(i)}, quantity.Usage, 900, 1)) {
			refused++
		}
	}
	j.Tick(ms(1000), &History{}, never, func(*trimtab.Sample) {})
	if kept := len(j.of[quantity.Usage].latest); refused != 1_000_000-maxPending || kept > MaxInstances || len(j.pending) != 0 {
		t.Errorf("%d refused, %d kept", refused, kept)
	}
	for i := range 100 {
		j.Observe(of(instanceID{"h", ""}, quantity.Quantity(fmt.Sprint("q", i)), 900, 1))
	}
	if j.Tick(ms(1000), &History{}, never, func(*trimtab.Sample) {}); len(j.of) != 1 {
		t.Errorf("%d quantities", len(j.of))
	}
}

func TestSharesAreTheMeanLoadsOfTheLastHalfMinuteWhereAllAreKnown(t *testing.T) {
	j, h := &Join{}, three(t)
	for at := 1000; at <= 300_000; at += 1000 {
		last := 60.0
		if at%2000 == 0 {
			last = 80 // noise
		}
		joining(j, h, at, of(h1, quantity.Load, at-100, 10), of(h2a, quantity.Load, at-100, 20), of(h2b, quantity.Load, at-100, last))
	}
	shares := j.Known(h, ms(290_000), 0).Shares()
	for i, want := range []float64{.1, .2, .7} {
		if len(shares) != 3 || math.Abs(shares[i].Share-want) > 0.01 {
			t.Fatalf("%v, want .1, .2, .7", shares)
		}
	}
	if got := j.Known(h, ms(300_000), 0).Shares(); got != nil {
		t.Errorf("%v of loads that are stale", got)
	}
	// One without requests keeps a share above zero, and the load of one is no share.
	for at := 301_000; at <= 1_000_000; at += 1000 {
		joining(j, h, at, of(h1, quantity.Load, at-100, 0), of(h2a, quantity.Load, at-100, 20), of(h2b, quantity.Load, at-100, 20))
	}
	e := &trimtab.Estimate{Workload: "w", Time: begin, Shares: j.Known(h, ms(990_000), 0).Shares()}
	if err := e.Validate(); err != nil || len(e.Shares) != 3 || e.Shares[0].Share > leastLoad/2 {
		t.Errorf("%v: %v", err, e.Shares)
	}
	alone := historyOf(t, holds("h1", 0, knob{amount: cores(2)}))
	if joining(j, alone, 1_001_000, of(h1, quantity.Load, 1_000_900, 10)); j.Known(alone, ms(0), 0) != nil {
		t.Error("one instance has a share")
	}
}

// slowlyJoined makes the sums by what was told since the last one, in order of time.
func slowlyJoined(all []*trimtab.Sample, instances int) (out []string) {
	var since []*trimtab.Sample
	for _, s := range all {
		since = append(since, s)
		last := map[instanceID]*trimtab.Sample{}
		for _, x := range since {
			last[idOf(x)] = x
		}
		if len(last) < instances {
			continue
		}
		sum, oldest, window := 0.0, s.Time, trimtab.Seconds(0)
		for _, x := range last {
			sum += x.Value
			window = max(window, x.Window)
			if x.Time.Before(oldest) {
				oldest = x.Time
			}
		}
		out, since = append(out, fmt.Sprint(oldest.Sub(begin), window, sum)), nil
	}
	return out
}

func TestTheSumIsOfTheLatestOfEveryInstanceSinceTheOneBeforeInWhateverOrderTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, room := &History{resource: "cpu"}, MaxKept
		ids := []instanceID{h1, h2a, h2b}[:rapid.IntRange(1, 3).Draw(t, "instances")]
		for _, host := range []string{"h1", "h2"} {
			var knobs []knob
			for _, id := range ids {
				if id.host == host {
					knobs = append(knobs, knob{instance: id.name, amount: cores(2)})
				}
			}
			if len(knobs) > 0 {
				h.Observe(holds(host, 0, knobs...), "w", &room)
			}
		}
		j := &Join{}
		var all []*trimtab.Sample
		var got []string
		for tick := range rapid.IntRange(1, 20).Draw(t, "ticks") {
			var in []*trimtab.Sample
			for _, id := range ids {
				times := map[int]bool{}
				for range rapid.IntRange(0, 3).Draw(t, "samples") {
					times[rapid.IntRange(1, 1000).Draw(t, "time")] = true
				}
				for at := range 1001 {
					if times[at] {
						s := of(id, quantity.Usage, 1000*tick+at, float64(rapid.IntRange(0, 50).Draw(t, "value")))
						s.Window = trimtab.Seconds(rapid.IntRange(1, 3).Draw(t, "window"))
						in = append(in, s)
					}
				}
			}
			arrived := rapid.Permutation(append(slices.Clone(in), in[:len(in)/2]...)).Draw(t, "order")
			for _, s := range joining(j, h, 1000*(tick+1), arrived...) {
				got = append(got, fmt.Sprint(s.Time.Sub(begin), s.Window, s.Value))
			}
			slices.SortFunc(in, func(a, b *trimtab.Sample) int {
				if d := a.Time.Compare(b.Time); d != 0 {
					return d
				}
				return strings.Compare(a.Host+a.Instance, b.Host+b.Instance)
			})
			all = append(all, in...)
		}
		if d := cmp.Diff(slowlyJoined(all, len(ids)), got); d != "" {
			t.Fatal(d)
		}
	})
}

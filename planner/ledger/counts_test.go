package ledger

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// drawn is a ledger of workloads a and b on up to three hosts, some of which say what
// they have.
func drawn(t *rapid.T) *Ledger {
	l := New(Config{Pool: "p", Lease: time.Minute, Most: func(string, string) (float64, bool) { return 8, true }})
	for h := range rapid.IntRange(1, 3).Draw(t, "hosts") {
		in := &trimtab.Holding{Host: fmt.Sprint("h", h), Epoch: 1, Time: began}
		if rapid.Bool().Draw(t, "says") {
			in.Capacity = map[string]float64{"cpu": rapid.Float64Range(0, 10).Draw(t, "capacity")}
		}
		for k := range rapid.IntRange(1, 4).Draw(t, "knobs") {
			id := trimtab.KnobID{Host: in.Host, Workload: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "workload"), Instance: fmt.Sprint(k), Resource: "cpu"}
			in.Targets = append(in.Targets, trimtab.KnobState{KnobID: id, Now: trimtab.Units(rapid.Float64Range(0, 8).Draw(t, "now")), Max: 8})
		}
		l.Hold(began, in)
	}
	return l
}

func TestWhatIsLeftAfterGivingBackIsWhatIsLeftBesideTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawn(t)
		c := l.Count("cpu", func(k *Knob) float64 { return k.Now() })
		others, rest := c.Clone(), c.Rest(20)
		for _, k := range l.Knobs() {
			if rapid.Bool().Draw(t, "left out") {
				others.LeaveOut(k.Index())
				rest.Subtract(k.Site(), -c.Of(k.Index()))
			}
		}
		if want := others.Left(20); math.Abs(rest.Idle-want) > 1e-9 {
			t.Fatalf("%v idle, want %v", rest.Idle, want)
		}
		for site, want := range others.Headroom() {
			if got := rest.Headroom[site]; got != want && math.Abs(got-want) > 1e-9 {
				t.Fatalf("%v on host %d, want %v", got, site, want)
			}
		}
	})
}

// In whatever order they come and go.
func TestKnobsAreInOrderOfTheirNamesAndThoseThatAreForgottenAreGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Config{Pool: "p", Lease: time.Minute, Most: func(string, string) (float64, bool) { return 8, true }})
		now, there := began, map[string][]trimtab.KnobID{}
		for range rapid.IntRange(1, 8).Draw(t, "holdings") {
			now = now.Add(2 * time.Minute)
			in := &trimtab.Holding{Host: rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "host"), Epoch: 1, Time: now}
			there[in.Host] = nil
			for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 6, func(k int) int { return k }).Draw(t, "knobs") {
				id := trimtab.KnobID{Pool: "p", Host: in.Host, Workload: string(rune('a' + k%2)), Instance: fmt.Sprint(k), Resource: "cpu"}
				in.Targets = append(in.Targets, trimtab.KnobState{KnobID: id, Now: trimtab.Units(1), Max: 8})
				there[in.Host] = append(there[in.Host], id)
			}
			l.Hold(now, in)
			if rapid.Bool().Draw(t, "asked") {
				l.Knobs()
			}
			l.Prune(now.Add(time.Minute+1), time.Minute)
		}
		want := slices.Concat(there["h1"], there["h2"])
		slices.SortFunc(want, func(a, b trimtab.KnobID) int { // of a workload they are together
			if a.Workload != b.Workload {
				return int(a.Workload[0]) - int(b.Workload[0])
			}
			return a.Compare(b)
		})
		var got, of []trimtab.KnobID
		for place, k := range l.Knobs() {
			if got = append(got, k.KnobID); k.Index() != place {
				t.Fatalf("%v is at %d, want %d", k.KnobID, k.Index(), place)
			}
		}
		for _, workload := range []string{"a", "b"} {
			for _, k := range l.Of(workload, "cpu") {
				of = append(of, k.KnobID)
			}
		}
		if !slices.Equal(of, want) || len(got) != len(want) || len(l.siblings) > 2 {
			t.Fatalf("%v, of the workloads %v, want %v", got, of, want)
		}
	})
}

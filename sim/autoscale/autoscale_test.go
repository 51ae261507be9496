package autoscale

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

func at(d time.Duration) time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(d) }

func number(v float64) *float64 { return &v }

// same is n pods that use v each.
func same(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

func TestAnHPARecommendsByTheRatioOfUsageToTarget(t *testing.T) {
	for name, c := range map[string]struct {
		m    Metric
		now  int
		want int
		ok   bool
	}{
		"rise":                                {Metric{Type: Utilization, Target: 50, Request: 1, Usage: same(4, 0.8)}, 4, 7, true},
		"fall":                                {Metric{Type: Utilization, Target: 50, Request: 1, Usage: same(4, 0.2)}, 4, 2, true},
		"within the tolerance":                {Metric{Type: Utilization, Target: 50, Request: 1, Usage: same(4, 0.55)}, 4, 4, true},
		"percent are cut off":                 {Metric{Type: Utilization, Target: 50, Request: 1, Usage: same(4, 0.559)}, 4, 4, true},
		"average value":                       {Metric{Type: AverageValue, Target: 2, Usage: []float64{3, 5}}, 2, 4, true},
		"external sum":                        {Metric{Type: External, Target: 10, Sum: number(95)}, 5, 10, true},
		"external within the tolerance":       {Metric{Type: External, Target: 10, Sum: number(108)}, 10, 10, true},
		"value":                               {Metric{Type: Value, Target: 10, Sum: number(25), Ready: 4}, 4, 10, true},
		"missing count at 0 in a rise":        {Metric{Type: AverageValue, Target: 1, Usage: same(3, 2), Missing: 1}, 4, 6, true},
		"missing count at target in a fall":   {Metric{Type: AverageValue, Target: 1, Usage: same(3, 0.2), Missing: 1}, 4, 2, true},
		"missing count wholly in a fall":      {Metric{Type: Utilization, Target: 50, Request: 1, Usage: same(3, 0.1), Missing: 1}, 4, 3, true},
		"missing turn no direction":           {Metric{Type: AverageValue, Target: 1, Usage: same(3, 1.2), Missing: 3}, 6, 6, true},
		"unready count at 0 in a rise":        {Metric{Type: AverageValue, Target: 1, Usage: same(2, 4), Unready: 2}, 4, 8, true},
		"unready do not count in a fall":      {Metric{Type: AverageValue, Target: 1, Usage: same(2, 0.5), Unready: 2}, 4, 1, true},
		"no pod was read":                     {Metric{Type: AverageValue, Target: 1, Missing: 3}, 3, 0, false},
		"a sum that is missing is not 0":      {Metric{Type: External, Target: 10}, 3, 0, false},
		"a sum that is no number":             {Metric{Type: External, Target: 10, Sum: number(math.NaN())}, 3, 0, false},
		"a utilisation without requests":      {Metric{Type: Utilization, Target: 50, Usage: same(3, 1)}, 3, 0, false},
		"a sum that is 0 is read as none use": {Metric{Type: External, Target: 10, Sum: number(0)}, 3, 0, true},
	} {
		got, ok := c.m.replicas(c.now, behavior.Tolerance{Up: 0.1, Down: 0.1})
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v, want %d, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestAnHPALooksEvery15SecondsAndStabilisesFalls(t *testing.T) {
	h := &HPA{Min: 1, Max: 20}
	n := 4
	look := func(second int, use float64) int {
		n = h.Step(at(time.Duration(second)*time.Second), n, []Metric{{Type: Utilization, Target: 50, Request: 1, Usage: same(n, use)}})
		return n
	}
	for _, c := range []struct {
		second int
		use    float64
		want   int
	}{{0, 1, 8}, {10, 1, 8}, {15, 1, 16}, {30, 0.1, 16}, {300, 0.1, 16}, {330, 0.1, 4}} {
		if got := look(c.second, c.use); got != c.want {
			t.Errorf("at %d s: %d, want %d", c.second, got, c.want)
		}
	}
}

func TestOfAnHPAWhoseMetricIsMissingNothingChangesButBounds(t *testing.T) {
	h := &HPA{Min: 2, Max: 20}
	if got := h.Step(at(0), 7, []Metric{{Type: External, Target: 1}}); got != 7 {
		t.Errorf("%d, want 7", got)
	}
	if got := h.Step(at(time.Minute), 1, []Metric{{Type: External, Target: 1}}); got != 2 {
		t.Errorf("%d, want the least", got)
	}
}

func TestKEDAActivatesAtOnceAndIdlesAfterTheCooldown(t *testing.T) {
	k := &KEDA{HPA: HPA{Min: 0, Max: 10}, Cooldown: 120 * time.Second}
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range []struct {
		second int
		sum    float64
		want   int
	}{{0, 0, 0}, {30, 40, 1}, {60, 40, 4}, {75, 0, 4}, {150, 0, 4}, {180, 0, 0}, {210, 0, 0}} {
		n = k.Step(at(time.Duration(c.second)*time.Second), n, []Trigger{{Threshold: 10, Sum: number(c.sum)}})
		if n != c.want {
			t.Fatalf("at %d s with %v: %d, want %d", c.second, c.sum, n, c.want)
		}
	}
}

func TestTheCooldownOfKEDADoesNotHoldTheWayToOne(t *testing.T) {
	k := &KEDA{HPA: HPA{Min: 1, Max: 10}, Cooldown: time.Hour}
	n := 8
	for second := 0; second <= 330; second += 15 {
		n = k.Step(at(time.Duration(second)*time.Second), n, []Trigger{{Threshold: 10, Sum: number(0)}})
	}
	if n != 1 {
		t.Errorf("%d, want 1 after the window of the HPA", n)
	}
}

func TestIdleReplicasAreThereWhileNoTriggerIsActive(t *testing.T) {
	idle := 1
	k := &KEDA{HPA: HPA{Min: 3, Max: 10}, Idle: &idle, Cooldown: time.Minute}
	n := 3
	for second := 0; second <= 90; second += 15 {
		n = k.Step(at(time.Duration(second)*time.Second), n, []Trigger{{Threshold: 10, Activation: 5, Sum: number(5)}})
	}
	if n != 1 {
		t.Fatalf("%d, want 1", n)
	}
	if n = k.Step(at(2*time.Minute), n, []Trigger{{Threshold: 10, Activation: 5, Sum: number(6)}}); n != 3 {
		t.Errorf("%d, want 3", n)
	}
	if err := (&KEDA{HPA: HPA{Min: 1, Max: 2}, Idle: &idle}).Validate(); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("an idle number that is no less than the least: %v", err)
	}
}

func TestTheFallbackOfKEDAIsAsItsWordsSay(t *testing.T) {
	for words, want := range map[string]int{"": 3, "static": 3, "currentReplicas": 6, "currentReplicasIfHigher": 6, "currentReplicasIfLower": 3} {
		// The window of the HPA would hide a fall.
		none := 0
		k := &KEDA{HPA: HPA{Min: 1, Max: 10, Behavior: &behavior.Behavior{Down: &behavior.Rules{Window: &none}}}, Fallback: &Fallback{2, 3, words}}
		n := 6
		for look := range 4 {
			n = k.Step(at(time.Duration(look)*15*time.Second), n, []Trigger{{Threshold: 10}})
			if look < 2 && n != 6 {
				t.Errorf("%q: %d after %d failures, want 6", words, n, look+1)
			}
		}
		if n != want {
			t.Errorf("%q: %d, want %d", words, n, want)
		}
	}
}

func TestWithoutFallbackATriggerThatFailsChangesNothing(t *testing.T) {
	k := &KEDA{HPA: HPA{Min: 0, Max: 10}, Cooldown: time.Second}
	n := 6
	for second := 0; second < 3600; second += 15 {
		if n = k.Step(at(time.Duration(second)*time.Second), n, []Trigger{{Threshold: 10}}); n != 6 {
			t.Fatalf("at %d s: %d, want 6", second, n)
		}
	}
}

func TestAQuantileIsTheEndOfTheBucketOfTheSortedSamplesByDecayedWeight(t *testing.T) {
	type sample struct{ v, weight float64 }
	rapid.Check(t, func(t *rapid.T) {
		h := NewHistogram(0.01, 1000)
		n := rapid.IntRange(1, 40).Draw(t, "samples")
		end := time.Duration(n) * 6 * time.Hour
		var all []sample
		total := 0.0
		for i := range n {
			v, w := float64(rapid.IntRange(0, 3000).Draw(t, "usage"))/1000, float64(rapid.IntRange(1, 20).Draw(t, "weight"))/10
			when := time.Duration(i) * 6 * time.Hour
			h.Add(at(when), v, w)
			aged := w * math.Exp2(-(end-when).Hours()/24)
			all = append(all, sample{v, aged})
			total += aged
		}
		slices.SortFunc(all, func(a, b sample) int {
			if a.v < b.v {
				return -1
			}
			return 1
		})
		q := float64(rapid.IntRange(1, 99).Draw(t, "q")) / 100
		sum, i := 0.0, 0
		for ; i < len(all)-1; i++ {
			if sum += all[i].weight; sum >= q*total-1e-12 {
				break
			}
		}
		if math.Abs(sum-q*total) < 1e-9 {
			t.Skip("on an edge, where rounding decides")
		}
		want := 0.01
		for size := 0.01; want <= all[i].v; { // the end of bucket i is the beginning of the next
			size *= 1.05
			want += size
		}
		if got := h.Quantile(q); math.Abs(got-want) > 1e-6*want {
			t.Fatalf("%v: %v, want %v of %v", q, got, want, all)
		}
	})
}

func TestASampleLosesHalfOfItsWeightIn24HoursAlsoOverAThousandDays(t *testing.T) {
	h := NewHistogram(0.01, 1000)
	for day := range 1000 {
		for range 3 {
			h.Add(at(time.Duration(day)*24*time.Hour), 2, 1)
		}
		h.Add(at(time.Duration(day)*24*time.Hour), 0.1, 1)
	}
	if got := h.Quantile(0.2); got > 0.12 {
		t.Errorf("p20 %v, want 0.1", got)
	}
	h.Add(at(1000*24*time.Hour), 0.1, 4) // as much as all of the past weighs by then
	if got := h.Quantile(0.6); got > 0.12 {
		t.Errorf("p60 %v, want 0.1: a quarter of the past and the new half", got)
	}
}

func TestBoundsAreWideWhileHistoryIsShort(t *testing.T) {
	for _, c := range []struct {
		history      time.Duration
		lower, upper float64 // factors, as the recommender's comments have them
	}{{5 * time.Minute, 0.6, 289}, {12 * time.Hour, 0.996, 3}, {24 * time.Hour, 0.998, 2}, {7 * 24 * time.Hour, 1, 1.14}} {
		v := NewVPA()
		for minute := time.Duration(0); minute <= c.history; minute += time.Minute {
			v.CPU(at(minute), 1)
		}
		cpu, _, ok := v.Recommend()
		if !ok || math.Abs(cpu.Lower/cpu.Target-c.lower) > 0.02 || math.Abs(cpu.Upper/cpu.Target/c.upper-1) > 0.02 {
			t.Errorf("%v: %+v", c.history, cpu)
		}
		if cpu.Target < 1.15 || cpu.Target > 1.15*1.05*1.05 {
			t.Errorf("%v: target %v, want 1.15 and at most a bucket more", c.history, cpu.Target)
		}
	}
}

func TestOfMemoryOnlyThePeakOf24HoursCounts(t *testing.T) {
	v := NewVPA()
	for hour := range 48 {
		v.CPU(at(time.Duration(hour)*time.Hour), 0.1)
		v.Memory(at(time.Duration(hour)*time.Hour), 1e9+float64(hour%24)*1e7)
	}
	_, memory, _ := v.Recommend()
	if memory.Target < 1.23e9*1.15 || memory.Target > 1.23e9*1.15*1.06 {
		t.Errorf("%+v, want the peaks of 1.23e9", memory)
	}
}

func TestAPodIsUpdatedWhenItsRequestIsOutOfBoundsOrOffByATenthAfter12Hours(t *testing.T) {
	r := Recommendation{1, 2, 4}
	for _, c := range []struct {
		request float64
		age     time.Duration
		want    float64
	}{{0.9, 0, 2}, {4.1, 0, 2}, {1.5, time.Hour, 1.5}, {1.5, 12 * time.Hour, 2}, {1.9, 12 * time.Hour, 1.9}} {
		if got := r.Update(c.request, c.age); got != c.want {
			t.Errorf("%v after %v: %v, want %v", c.request, c.age, got, c.want)
		}
	}
}

func TestWhatAVPACannotReadItDoesNotCount(t *testing.T) {
	v := NewVPA()
	v.CPU(at(0), math.NaN())
	v.Memory(at(0), math.Inf(1))
	if _, _, ok := v.Recommend(); ok {
		t.Error("recommends from nothing")
	}
	v.MinCPU, v.MaxCPU = 0.5, 0.6
	v.CPU(at(time.Minute), 3)
	if cpu, _, _ := v.Recommend(); cpu.Target != 0.6 {
		t.Errorf("%+v, want the most that is allowed", cpu)
	}
}

// The table is what VPA's own recommender does with random use of memory and OOMs: internal/tools/vpa.
func TestOfMemoryAVPARecommendsWhatTheRecommenderItselfDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/memory.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Samples, Want [][3]int64 }
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 100 {
		t.Fatalf("%d cases, %v", len(all), err)
	}
	for k, c := range all {
		v := NewVPA()
		for i, s := range c.Samples {
			now := at(time.Duration(s[0]) * time.Minute)
			if s[2] > 0 {
				v.OOM(now, float64(s[1]))
			} else {
				v.Memory(now, float64(s[1]))
			}
			if v.CPU(now, 0.1); i%5 != 4 {
				continue
			}
			_, m, _ := v.Recommend()
			if got := [3]int64{int64(m.Lower), int64(m.Target), int64(m.Upper)}; got != c.Want[i/5] {
				t.Fatalf("case %d, sample %d: %v, the recommender says %v", k, i, got, c.Want[i/5])
			}
		}
	}
}

package season_test

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/forecast/season"
)

// wave is a day of n reports, and a drift.
func wave(i, n int) float64 {
	return 10 + 5*math.Sin(2*math.Pi*float64(i)/float64(n)) + float64(i)/float64(20*n)
}

func see(m *season.Model, from, to, n int) {
	for i := from; i < to; i++ {
		m.See([]float64{wave(i, n)})
	}
}

func TestBeforeOneWholePeriodItIsNotReady(t *testing.T) {
	m := season.Daily(time.Minute)
	see(m, 0, 1400, 1440)
	if m.Ready() {
		t.Error("ready after 1400 minutes")
	}
	see(m, 1400, 1500, 1440)
	if !m.Ready() {
		t.Error("not ready after 1500 minutes")
	}
}

func TestAfterSomePeriodsThePathFollowsTheSeason(t *testing.T) {
	for step, n := range map[time.Duration]int{10 * time.Second: 8640, time.Minute: 1440, time.Hour: 24} {
		m := season.Daily(step)
		see(m, 0, 5*n, n)
		for k := range n {
			i := 5*n + k
			want := math.Inf(-1)
			for j := range n / 6 {
				want = math.Max(want, wave(i+j, n))
			}
			if high, _ := m.Path(n / 6); math.Abs(high-want) > 0.5 {
				t.Fatalf("step %v, report %d of the day: highest %v, want %v", step, k, high, want)
			}
			see(m, i, i+1, n)
		}
	}
}

func TestMissingReportsDoNotMoveTheSeason(t *testing.T) {
	m := season.Daily(time.Minute)
	see(m, 0, 5000, 1440)
	m.Skip(700)
	see(m, 5700, 5720, 1440)
	if high, _ := m.Path(1); math.Abs(high-wave(5720, 1440)) > 0.5 {
		t.Errorf("after a gap of 700 reports: %v, want %v", high, wave(5720, 1440))
	}
	m.Skip(-720)
	m.Skip(720)
	if high, _ := m.Path(1); math.Abs(high-wave(5720, 1440)) > 0.5 {
		t.Errorf("after skipping back and forth: %v, want %v", high, wave(5720, 1440))
	}
}

func TestAWeekIsSevenDays(t *testing.T) {
	m := season.Weekly(time.Hour)
	n := 7 * 24
	for i := range 6 * n {
		m.See([]float64{10 + float64(i%n/24)})
	}
	for i := range n {
		want := 10 + float64(i/24)
		if high, _ := m.Path(1); math.Abs(high-want) > 0.6 {
			t.Fatalf("hour %d of the week: %v, want %v", i, high, want)
		}
		m.See([]float64{want})
	}
}

func TestStepsTooLongForAPeriodHaveNoSeason(t *testing.T) {
	for _, step := range []time.Duration{0, -1, 4 * time.Hour, 1 << 62} {
		if season.Daily(step) != nil {
			t.Errorf("a daily season of steps of %v", step)
		}
	}
	if season.Weekly(4*time.Hour) == nil {
		t.Error("no weekly season of steps of 4 h")
	}
}

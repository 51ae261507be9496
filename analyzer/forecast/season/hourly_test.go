package season_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
	"github.com/trimtab/trimtab/analyzer/forecast/season"
)

const everyTen = 10 * time.Second

// clock is a load, on the root scale, that is higher by 1 in the first two
// minutes of each hour of 360 reports, with noise.
func clock(i int, r *rand.Rand) float64 {
	y := 6 + 0.2*r.NormFloat64()
	if i%360 < 12 {
		y++
	}
	return y
}

// hours lets m see n reports from the first on.
func hours(m conformal.Model, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		m.See([]float64{clock(i, r)})
	}
}

func TestWhatComesByTheClockIsExpectedInTheNextHour(t *testing.T) {
	for _, whole := range []int{2, 4, 12} {
		m := season.NewHourly(everyTen)
		hours(m, whole*360)
		if high, mean := m.Path(12); high < 6.7 || high > 7.3 || mean < 6.7 {
			t.Errorf("at the full hour, after %d: highest %.2f, mean %.2f, want 7", whole, high, mean)
		}
		for range 12 {
			m.See([]float64{7})
		}
		if high, _ := m.Path(12); math.Abs(high-6) > 0.3 {
			t.Errorf("two minutes past, after %d: highest %.2f, want 6", whole, high)
		}
	}
}

// taken is how far a season of noise of 0.2, which is 0.08 over a minute, rises
// above its mean, on average over some runs of two hours.
func taken(then func(m *season.Hourly, all []float64)) float64 {
	const runs = 20
	sum := 0.0
	for run := range runs {
		m := season.NewHourly(everyTen)
		r := rand.New(rand.NewPCG(uint64(run), 4))
		all := make([]float64, 720)
		for i := range all {
			all[i] = 6 + 0.2*r.NormFloat64()
			m.See(all[:i+1])
		}
		then(m, all)
		high, mean := m.Path(360)
		sum += (high - mean) / runs
	}
	return sum
}

func TestNoiseIsNoSeason(t *testing.T) {
	if rise := taken(func(*season.Hourly, []float64) {}); rise > 0.11 {
		t.Errorf("noise was taken for a season of %.3f", rise)
	}
}

func TestReportsThatComeAgainAreNotLearntAgain(t *testing.T) {
	once := taken(func(*season.Hourly, []float64) {})
	again := taken(func(m *season.Hourly, all []float64) {
		m.Skip(-len(all))
		for i := range all {
			m.See(all[:i+1])
		}
	})
	if math.Abs(again-once) > 1e-9 {
		t.Errorf("noise seen again was taken for a season of %.3f, seen once of %.3f", again, once)
	}
}

func TestAReportThatIsMissingDoesNotMoveTheClock(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	m := season.NewHourly(everyTen)
	for i := 0; i < 6*360; i++ {
		if i%7 == 3 {
			m.Skip(1)
			continue
		}
		m.See([]float64{clock(i, r)})
	}
	if high, _ := m.Path(12); high < 6.7 {
		t.Errorf("at the full hour: highest %.2f, want 7", high)
	}
	m.Skip(720)
	if high, _ := m.Path(12); high < 6.7 {
		t.Errorf("at the full hour, two hours on: highest %.2f, want 7", high)
	}
	m.Skip(-340)
	if high, _ := m.Path(12); high > 6.5 {
		t.Errorf("20 reports past the hour: highest %.2f, want 6", high)
	}
}

func TestWithoutReportsEveryMinuteThereIsNoClock(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Second, 61 * time.Second} {
		if season.NewHourly(step) != nil {
			t.Errorf("a model for reports %v apart", step)
		}
	}
	if m := season.NewHourly(time.Minute); m == nil || m.Ready() {
		t.Error("for reports of a minute: none, or ready at once")
	}
}

func TestASnapshotWhoseCountersNoReportsMadeIsRefused(t *testing.T) {
	for _, text := range []string{`{"seen": 9223372036854775807}`, `{"held": 9223372036854775807}`, `{"tried": 2147483648}`, `{"phase": 360}`, `{"share": ""}`} {
		m := season.NewHourly(everyTen)
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), m.State()); err != nil {
			t.Fatal(err)
		}
		if m.Check() == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

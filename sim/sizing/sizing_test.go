package sizing

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// series is a reading every minute for some days.
func series(days int, use func(hour float64) float64) *Series {
	s := &Series{Name: "test", Limit: 4 << 30}
	for m := range days * 24 * 60 {
		s.Readings = append(s.Readings, Reading{time.Unix(1e9, 0).Add(time.Duration(m) * time.Minute), use(float64(m) / 60)})
	}
	return s
}

func flat(float64) float64 { return 1 << 30 }

func play(s *Series, resource, rule string) Score { return Play(s, New(resource, rule, s, Margin)) }

func TestEachRuleSetsTheLimitThatItsWordsGive(t *testing.T) {
	const bucket = 1.05 // buckets of a histogram grow by 5%: their end counts
	for rule, want := range map[string]float64{
		Trimtab: 1.07, highest: 1.15, most98: 1.15 * bucket, VPA: 1.15 * bucket, DPA: 1.05, AsIs: 4, Thumb: 1.2,
	} {
		s := play(series(4, flat), trimtab.Memory, rule)
		if got := s.Limit / (1 << 30); s.Overruns != 0 || s.Readings != 3*24*60 || got > want*1.01 || got < want/1.05 {
			t.Errorf("%s: %+v, a limit of %.3f GiB, want at most %.3f", rule, s, got, want)
		}
		if math.Abs(s.Over-(s.Limit-1<<30)) > 1 || s.Under != 0 || rule != Trimtab && math.Abs(s.Slack-(1-float64(1<<30)/s.Limit)) > 1e-9 {
			t.Errorf("%s: %+v", rule, s)
		}
	}
	for rule, want := range map[string]float64{Trimtab: 3, VPA: 2 * 1.15 * bucket, EKS: 2 / 0.87, DPA: 2.1, AsIs: 4, Thumb: 2.4} {
		s := series(4, func(float64) float64 { return 2 })
		s.Limit = 4
		if got := play(s, trimtab.CPU, rule); got.Limit > want*1.01 || got.Limit < want/1.06 || got.Overruns != 0 {
			t.Errorf("CPU by %s: %+v, want %v cores", rule, got, want)
		}
	}
}

// A reading is judged by the limit that was set before it. What is above the limit is a kill once, however
// long it lasts.
func TestAJumpOverrunsEveryRuleAndTheLimitFollows(t *testing.T) {
	jump := func(hour float64) float64 {
		if hour < 60 {
			return 1 << 30
		}
		return 3 << 30
	}
	for _, rule := range Rules(trimtab.Memory) {
		s := play(series(4, jump), trimtab.Memory, rule)
		switch {
		case rule == AsIs && s.Overruns != 0, rule != AsIs && (s.Overruns == 0 || s.Kills != 1 || !(s.Under > 0)):
			t.Errorf("%s: %+v", rule, s)
		case (rule == Trimtab || rule == VPA || rule == DPA || rule == highest) && s.Overruns > 60: // others forget a peak among many
			t.Errorf("%s: the limit does not follow: %+v", rule, s)
		}
	}
	if New(trimtab.Memory, "no such rule", nil, 0) != nil || New(trimtab.CPU, highest, nil, 0) != nil || New(trimtab.Memory, EKS, nil, 0) != nil {
		t.Error("there is a rule that there is not")
	}
}

// An instance cannot use more than its limit: what the recording has above it, the rule does not see.
func TestARuleDoesNotSeeMoreThanItsLimit(t *testing.T) {
	r := &watch{limit: 100}
	s := &Series{Readings: []Reading{{time.Unix(0, 0), 50}, {time.Unix(60, 0), 150}, {time.Unix(120, 0), 160}, {time.Unix(180, 0), 80}}}
	got := Play(s, r)
	if r.most != 100 || r.overruns != 2 || got.Overruns != 2 || got.Kills != 1 || got.Readings != 3 {
		t.Errorf("%+v, %+v", r, got)
	}
}

type watch struct {
	limit, most float64
	overruns    int
}

func (w *watch) Take(_ time.Time, use float64)  { w.most = math.Max(w.most, use) }
func (w *watch) Limit() float64                 { return w.limit }
func (w *watch) Overrun(_ time.Time, _ float64) { w.overruns++ }

func TestScoresAddUpByTheirReadings(t *testing.T) {
	a := Score{Readings: 1, Overruns: 1, Kills: 1, Limit: 10, Over: 4, Slack: 0.4, Days: 1}
	a.Add(Score{Readings: 3, Limit: 2, Over: 0, Slack: 0, Days: 2, Leaks: 1})
	if a.Readings != 4 || a.Limit != 4 || a.Over != 1 || a.Slack != 0.1 || a.Days != 3 || a.Leaks != 1 || a.Kills != 1 {
		t.Errorf("%+v", a)
	}
}

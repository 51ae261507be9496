package replicas_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/replicas"
)

func TestATimeWithoutLoadEndsWithLoadAndWhereNobodyLooked(t *testing.T) {
	const cooldown, old = 5 * time.Minute, 2 * time.Minute
	at := func(minute int) time.Time { return time.Unix(1_000_000, 0).Add(time.Duration(minute) * time.Minute) }
	for name, c := range map[string]struct {
		load  func(minute int) (load float64, known, looks bool)
		after int // the minute at which it is over; -1: none in 20
	}{
		"no load":                 {func(int) (float64, bool, bool) { return 0, true, true }, 5},
		"some in minute 3":        {func(m int) (float64, bool, bool) { return map[int]float64{3: 1}[m], true, true }, 9},
		"not known in minute 3":   {func(m int) (float64, bool, bool) { return 0, m != 3, true }, 9},
		"nobody looked for 2 min": {func(m int) (float64, bool, bool) { return 0, true, m != 3 }, 5},
		"nobody looked for 3 min": {func(m int) (float64, bool, bool) { return 0, true, m != 3 && m != 4 }, 10},
		"never known":             {func(int) (float64, bool, bool) { return 0, false, true }, -1},
	} {
		var idle replicas.Idle
		over := -1
		for m := range 20 {
			if load, known, looks := c.load(m); looks {
				idle.Look(at(m), load, known, old)
			}
			if over < 0 && idle.Over(at(m), cooldown) {
				over = m
			}
		}
		if over != c.after {
			t.Errorf("%s: over in minute %d, want %d", name, over, c.after)
		}
		if since, blind := idle.Blind(at(19), cooldown); blind != (c.after < 0) || blind && !since.Equal(at(0)) {
			t.Errorf("%s: blind %v since %v", name, blind, since)
		}
	}
}

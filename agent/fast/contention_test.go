package fast

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/metric"
)

// looked is a loop that looks every 100 ms at one group, under a group above.
type looked struct {
	*loop
	stopped, above, waited float64
}

func newLooked() *looked {
	l := &looked{loop: newLoop(nil, "h", metric.NewSet(), slog.New(slog.DiscardHandler))}
	l.look.Counters, l.look.Errs = make([]actuator.Counters, 1), make([]error, 1)
	l.look.Parent, l.look.Pressure = new(actuator.Counters), new(float64)
	return l
}

// after lets 100 ms pass, in which the group was stopped, the group above was, and all of
// its tasks waited, for so long.
func (l *looked) after(stalled, parent, pressure float64) float64 {
	l.look.At += 100 * time.Millisecond
	l.stopped, l.above, l.waited = l.stopped+stalled, l.above+parent, l.waited+pressure
	l.look.Counters[0].Stalled = l.stopped
	if l.look.Parent != nil {
		l.look.Parent.Stalled = l.above
	}
	if l.look.Pressure != nil {
		*l.look.Pressure = l.waited
	}
	if c := l.contention(); c != nil {
		return math.Round(*c*1e6) / 1e6
	}
	return math.NaN()
}

func TestAHostIsFullWhereAllWaitAndNoQuotaIsTheCause(t *testing.T) {
	l := newLooked()
	if c := l.after(0, 0, 1); !math.IsNaN(c) {
		t.Errorf("the first look tells of %v", c)
	}
	for _, x := range []struct{ stalled, parent, pressure, want float64 }{
		{0, 0, 0, 0},
		{0.04, 0, 0.04, 0}, // pressure counts what was stopped by the quota
		{0.01, 0, 0.05, 0.4},
		{0, 0.03, 0, 0.3},
		{0, 0.03, 0.05, 0.5},
		{0, 0, 5, 1},
	} {
		if c := l.after(x.stalled, x.parent, x.pressure); c != x.want {
			t.Errorf("%+v: %v", x, c)
		}
	}
	l.waited = -1e6 // the group above was made anew
	if c := l.after(0, 0, 0); c != 0 {
		t.Errorf("a total that went back tells of %v", c)
	}
	l.look.Pressure = nil
	if c := l.after(0, 0.02, 0); c != 0.2 {
		t.Errorf("without pressure: %v", c)
	}
	l.look.Parent = nil
	if c := l.after(0, 0, 0); !math.IsNaN(c) {
		t.Errorf("without a group above: %v", c)
	}
}

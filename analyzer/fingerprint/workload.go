package fingerprint

import (
	"math/bits"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// Window is the time that is judged at once.
	Window = 500 * time.Millisecond
	// Recent is over how many windows evidence is gathered, Needed how many of them
	// must be over the boundary of CPI for an anomaly.
	Recent, Needed = 5, 3
	// gap is after which time without a sample evidence is forgotten.
	gap = 5 * time.Second
	// cpiRise is the factor up to which a slowdown is too small to act on: 8% must be detected.
	cpiRise = 1.05
	// mpkiRise and mpkiLeast: half as many more misses, and one in 10,000
	// instructions, which at 300 cycles each is a CPI of 0.03.
	mpkiRise, mpkiLeast = 1.5, 0.1
)

// Workload is the fingerprint of one workload on one host. The zero value is not
// ready; see [New]. It is not safe for concurrent use.
type Workload struct {
	cpi, mpki Indicator
	window    window
	// at is the end of the last sample, alone whether that was so in it.
	at    time.Time
	alone bool
	// recent has a bit for each of the last windows, set where CPI was over.
	recent uint8
	alarms Rate
	last   Judgement
}

// New returns a fingerprint that has seen nothing.
func New() *Workload {
	return &Workload{
		cpi:  Indicator{family: Gamma, rise: cpiRise},
		mpki: Indicator{family: ChiSquare, rise: mpkiRise, least: mpkiLeast},
	}
}

// Judgement is the result of one window.
type Judgement struct {
	// At is the end of the window.
	At time.Time
	// CPI and MPKI are each by itself; more misses alone are no anomaly, since a
	// program may not feel them.
	CPI, MPKI Verdict
	// Slowdown is CPI over what is typical of this phase; 0 where that is unknown.
	Slowdown float64
	// Anomaly: of the last [Recent] windows at least [Needed] were over the
	// boundary of CPI.
	Anomaly bool
	// FalseAlarms is the rate of anomalies in windows alone, so far.
	FalseAlarms Rate
}

// Observe reads a sample whose interval ended at a time, and returns a judgement if it completes
// a window. alone: nothing ran on the host that may disturb the workload, such as a speculative
// task. Only then does it learn, and an anomaly is a false alarm. A sample without CPI counts as
// missing. Errors are trimtab.ErrInvalid, and such a sample changes nothing: impossible values,
// or a time up to 5 s before the last. A clock that is set back further, or forward, discards the
// evidence of the last windows, and nothing that was learned.
func (w *Workload) Observe(at time.Time, s Sample, alone bool) (Judgement, bool, error) {
	if err := s.validate(); err != nil {
		return Judgement{}, false, err
	}
	passed := at.Sub(w.at)
	if !w.at.IsZero() && passed <= 0 && passed >= -gap {
		return Judgement{}, false, trimtab.Invalidf("sample at %v: the last was at %v", at.UTC(), w.at.UTC())
	}
	if alone != w.alone || passed < 0 || passed > gap+s.Length {
		w.window, w.recent = window{}, 0
	}
	w.at, w.alone = at, alone
	if !s.CPI.Counted {
		return Judgement{}, false, nil
	}
	w.window.add(s)
	// A hundredth less is a whole window: intervals are never exact.
	if w.window.length < 0.99*Window.Seconds() {
		return Judgement{}, false, nil
	}
	whole, ok := w.window.means()
	w.window = window{}
	if !ok {
		return Judgement{}, false, nil
	}
	return w.judge(at, whole, alone), true, nil
}

// judge judges a window, then learns it if the workload was alone.
func (w *Workload) judge(at time.Time, s Sample, alone bool) Judgement {
	here := phaseOf(s)
	j := Judgement{At: at, CPI: w.cpi.judge(s.CPI.Value, here), MPKI: Verdict{Model: Unknown}}
	if j.CPI.Model != Unknown {
		j.Slowdown = j.CPI.Value / j.CPI.Typical
	}
	if s.MPKI.Counted {
		j.MPKI = w.mpki.judge(s.MPKI.Value, here)
	}
	w.recent = w.recent << 1 & (1<<Recent - 1)
	if j.CPI.Over {
		w.recent |= 1
	}
	j.Anomaly = bits.OnesCount8(w.recent) >= Needed
	if alone {
		if j.CPI.Model != Unknown {
			w.alarms.count(j.Anomaly)
		}
		w.cpi.learn(s.CPI.Value, here)
		if s.MPKI.Counted {
			w.mpki.learn(s.MPKI.Value, here)
		}
	}
	j.FalseAlarms = w.alarms
	w.last = j
	return j
}

// CPI and MPKI are the models, for people.
func (w *Workload) CPI() *Indicator { return &w.cpi }

// MPKI is the model of the misses.
func (w *Workload) MPKI() *Indicator { return &w.mpki }

// FalseAlarms is the rate of anomalies in windows in which the workload was alone.
func (w *Workload) FalseAlarms() Rate { return w.alarms }

package local

import (
	"fmt"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// world is a host that does what it is told, or does not.
type world struct {
	h        *Host
	plan     Plan
	at       time.Duration
	set      []float64 // what is in force; +Inf: none
	gone     []bool
	used     []float64
	stalled  []float64
	backlog  []float64 // core-seconds
	capacity float64

	loses func() bool // a write gets lost
	over  string      // the first time that the sum was over the capacity
	low   string      // the first write under a floor or over a ceiling
}

func envelope(floor, target, ceiling float64) trimtab.Envelope {
	return trimtab.Envelope{Floor: floor, Target: target, Ceiling: ceiling, Budget: 0.04, Late: 0.006, Lend: true, Borrow: true, Burst: target}
}

func newWorld(capacity, lendable float64, envelopes ...trimtab.Envelope) *world {
	w := &world{h: New(), capacity: capacity, loses: func() bool { return false }}
	w.plan = Plan{Capacity: capacity, Lendable: lendable, Until: time.Hour}
	n := len(envelopes)
	w.set, w.gone, w.used, w.stalled, w.backlog = make([]float64, n), make([]bool, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, e := range envelopes {
		w.plan.Groups = append(w.plan.Groups, Group{Name: fmt.Sprint("g", i), Envelope: e})
		w.set[i] = e.Target
	}
	if err := w.h.SetPlan(&w.plan); err != nil {
		panic(err)
	}
	return w
}

func (w *world) sum() (s float64) {
	for i, v := range w.set {
		if !w.gone[i] {
			s += v
		}
	}
	return s
}

func (w *world) apply(writes []Write) {
	for _, x := range writes {
		e := w.plan.Groups[x.Group].Envelope
		if x.Set < math.Min(e.Floor, w.set[x.Group])*(1-slack) || x.Set > e.Ceiling*(1+slack) || x.Burst > x.Set || math.IsNaN(x.Set) {
			if w.low == "" {
				w.low = fmt.Sprintf("at %v: %+v in %+v", w.at, x, e)
			}
		}
		before := w.sum()
		if !w.loses() {
			w.set[x.Group] = x.Set
		}
		if s := w.sum(); s > w.capacity*(1+1e-6) && s > before && w.over == "" {
			w.over = fmt.Sprintf("at %v: %v cores set, capacity %v", w.at, s, w.capacity)
		}
	}
}

// readings are what an honest host shows.
func (w *world) readings() []Reading {
	out := make([]Reading, len(w.set))
	for i := range out {
		out[i] = Reading{State: Fresh, Used: w.used[i], Stalled: w.stalled[i], Set: w.set[i]}
		if w.gone[i] {
			out[i] = Reading{State: Gone, Set: math.NaN()}
		}
	}
	return out
}

// tick lets 100 ms pass with work for each group, in core-seconds, and looks.
func (w *world) tick(work ...float64) Decision {
	for i, x := range work {
		w.backlog[i] += x
		can := math.Min(w.set[i]*period, 64)
		done := math.Min(w.backlog[i], can)
		w.backlog[i] -= done
		w.used[i] += done
		if w.backlog[i] > 0 && x > 0 {
			w.stalled[i] += period * math.Max(0, 1-can/(w.backlog[i]+done))
		}
	}
	w.at += Tick
	return w.look(Look{At: w.at, Groups: w.readings()})
}

// look is one round of the protocol: shrink, read back, grow.
func (w *world) look(l Look) Decision {
	d := w.h.Tick(&l)
	d.Asks = append([]Ask(nil), d.Asks...)
	d.Shrinks = append([]Write(nil), d.Shrinks...)
	w.apply(d.Shrinks)
	found := append([]float64(nil), w.set...)
	w.apply(w.h.Grow(found))
	return d
}

// drawEnvelopes draws groups whose targets fit the capacity.
func drawEnvelopes(t *rapid.T, capacity float64) (out []trimtab.Envelope) {
	n := rapid.IntRange(1, 6).Draw(t, "groups")
	left := capacity
	for i := range n {
		target := left * rapid.Float64Range(0, 0.7).Draw(t, fmt.Sprint("target", i))
		left -= target
		e := envelope(target*rapid.Float64Range(0, 1).Draw(t, "floor"), target, target*rapid.Float64Range(1, 6).Draw(t, "ceiling")+0.1)
		e.Lend, e.Borrow = rapid.Bool().Draw(t, "lend"), rapid.Bool().Draw(t, "borrow")
		e.Burst = math.Min(target, e.Ceiling)
		out = append(out, e)
	}
	return out
}

// hostile is a counter or a quota as nobody should show it.
func hostile(t *rapid.T, honest float64) float64 {
	return rapid.SampledFrom([]float64{honest, honest, honest, math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, honest / 2, 1e300, honest + 1e9, math.MaxFloat64}).Draw(t, "hostile")
}

// Package shown says how often what a service delivers lies in the band that was shown for it
// before. The simulated services and the benchmark on real ones measure it in the same way.
//
// A band holds the performance p(a, l) of a steady state. Of a window, only a share of some
// requests is seen, so it is compared with the bounds of such a share: see [Interval].
//
// In a window in which a queue grows or shrinks, the requests tell of the queue and not of the
// allocation: it is counted as moving, and not compared.
package shown

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// Every is the length of a window and the time between two curves, Learning the time from the
// start that is not compared, in seconds.
const Every, Learning = 10, 30

// Window is what a service did in one window.
type Window struct {
	// Seconds is its length. Requests are those that were sent in it, InTime those of them that
	// were answered in time.
	Seconds, Requests, InTime float64
	// Allocation is the effective one: see [Effective].
	Allocation float64
	// Open is how many requests were unanswered at its begin and at its end.
	Open [2]float64
}

// Effective is the quota with which a service would do as well as with its part of a shared pool:
// what it is sure of by its weight, or what others leave, whichever is more.
func Effective(sure, pool, othersUsed float64) float64 { return math.Max(sure, pool-othersUsed) }

// moving reports whether a queue grew or shrank by more than chance.
func (w *Window) moving() bool {
	return math.Abs(w.Open[1]-w.Open[0]) > math.Max(3, 0.1*w.Requests)
}

// Tally counts windows.
type Tally struct {
	// Of windows were compared, Inside of them lay in the band of before. Moving were not compared.
	Of, Inside, Moving float64
	// Width is the sum of the widths of the bands of those compared.
	Width float64
}

// Share is the share of the windows that were inside; NaN: none was compared.
func (t *Tally) Share() float64 { return t.Inside / t.Of }

// Text says it for people.
func (t *Tally) Text() string {
	return fmt.Sprintf("of %.0f windows of %d s %.0f%% were in the band of before, %.2f wide on average; %.0f more were not compared, as a queue grew or shrank in them",
		t.Of, Every, 100*t.Share(), t.Width/t.Of, t.Moving)
}

// Join adds what another tally counted.
func (t *Tally) Join(o Tally) {
	t.Of, t.Inside, t.Moving, t.Width = t.Of+o.Of, t.Inside+o.Inside, t.Moving+o.Moving, t.Width+o.Width
}

// Add compares a window with the curve that was shown before it; nil: none was.
func (t *Tally) Add(c *trimtab.Curve, w Window) {
	switch {
	case c == nil || len(c.Knots) == 0 || !(w.Requests > 0):
		return
	case w.moving():
		t.Moving++
		return
	}
	b, p := c.At(w.Requests/w.Seconds).Eval(w.Allocation), w.InTime/w.Requests
	t.Of, t.Width = t.Of+1, t.Width+b.Upper-b.Lower
	if lower, upper := Interval(b, w.Requests, c.Level); p >= lower && p <= upper {
		t.Inside++
	}
}

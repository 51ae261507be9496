// Package shape has the loads that the benchmark on real services and its fast
// twin play: what share of a pool each of three services asks for, over time.
// It knows neither requests nor clocks.
package shape

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Names are the services' names, in the order of every [3] here.
func Names() [3]string { return [3]string{"nginx", "redis", "postgres"} }

// Scenario is how the load of the three services moves. It has either a wave
// or pieces.
type Scenario struct {
	Name string
	// Length is how long it lasts where nobody asks for another length.
	Length time.Duration
	Wave   *Wave
	Pieces []Piece
	// Over tells that the pool is at times too small for all.
	Over bool
	// Two tells that it is for two hosts with half of the pool each: the first service has an
	// instance on both, the second is on the first host, the third on the second.
	Two bool
	// Mixed tells that its services are others than [Names]: Node.js, a JVM that has just been
	// started, and Apache with PHP.
	Mixed bool
}

// Wave is a load whose peak moves from one service to the next: for each a
// raised cosine, a third of a period after the one before. Figures were chosen
// with a model of queues, so that equal shares fail at the peaks and the
// proportional rule does not.
type Wave struct {
	// Base and Peak are the least and the highest load of a service, as shares
	// of the pool.
	Base, Peak float64
	// Width is how long a peak lasts, as a share of the period.
	Width float64
	// Period is the time between two peaks of one service; at most the run.
	Period time.Duration
}

// Piece is a stretch of constant load.
type Piece struct {
	// From is where it begins, as a share of the run.
	From float64
	// Load of each service, as a share of the pool, at a Size of 1.
	Load [3]float64
	// Size is how dear a request is, relative to the calibrated one; 0: 1.
	Size [3]float64
}

// All returns the scenarios that exist.
func All() []Scenario {
	return []Scenario{
		{Name: "peaks", Length: 6 * time.Minute, Wave: &Wave{Base: 0.15, Peak: 0.45, Width: 0.34, Period: 3 * time.Minute}},
		{Name: "steps", Length: 8 * time.Minute, Pieces: []Piece{
			{From: 0, Load: [3]float64{.16, .16, .34}},
			{From: .12, Load: [3]float64{.38, .14, .14}},
			{From: .27, Load: [3]float64{.14, .18, .36}},
			{From: .38, Load: [3]float64{.16, .38, .14}},
			{From: .55, Load: [3]float64{.14, .34, .18}},
			{From: .66, Load: [3]float64{.38, .14, .14}},
			{From: .81, Load: [3]float64{.15, .15, .37}},
			{From: .92, Load: [3]float64{.26, .22, .15}},
		}},
		{Name: "doubling", Length: 6 * time.Minute, Pieces: []Piece{
			{From: 0, Load: [3]float64{.21, .14, .14}},
			{From: 1. / 3, Load: [3]float64{.42, .14, .14}},
		}},
		{Name: "slower", Length: 6 * time.Minute, Pieces: []Piece{
			{From: 0, Load: [3]float64{.15, .28, .15}},
			{From: .5, Load: [3]float64{.15, .28, .15}, Size: [3]float64{1, 1.3, 1}},
		}},
		{Name: "noise", Length: 8 * time.Minute, Pieces: []Piece{
			{From: 0, Load: [3]float64{.20, .20, .20}},
		}},
		{Name: "burst", Length: 6 * time.Minute, Pieces: bursts(.15, 3, 2*time.Second, 10*time.Second, 6*time.Minute)},
		{Name: "culprit", Length: 6 * time.Minute, Over: true, Pieces: []Piece{
			{From: 0, Load: [3]float64{.2, .2, .2}},
			{From: 1. / 3, Load: [3]float64{.8, .2, .2}},
			{From: 2. / 3, Load: [3]float64{.2, .2, .2}},
		}},
		{Name: "tight", Length: 6 * time.Minute, Over: true, Wave: &Wave{Base: 0.225, Peak: 0.675, Width: 0.34, Period: 3 * time.Minute}},
		{Name: "unequal", Length: 6 * time.Minute, Over: true, Pieces: []Piece{
			{From: 0, Load: [3]float64{1, .2, .04}, Size: [3]float64{.2, 1, 5}},
			{From: 1. / 3, Load: [3]float64{2, .4, .08}, Size: [3]float64{.2, 1, 5}},
			{From: 2. / 3, Load: [3]float64{1, .2, .04}, Size: [3]float64{.2, 1, 5}},
		}},
		{Name: "two-hosts", Length: 4 * time.Minute, Two: true, Pieces: []Piece{
			{From: 0, Load: [3]float64{.28, .40, .08}},
		}},
		over(1.1), over(1.32), over(1.5), over(2),
		surge(1.32), surge(2),
		mixed("mixed", 1), mixed("mixed150", 1.5), mixedSurge(),
	}
}

// mixed is the load of peaks, or so many times that, for other services.
func mixed(name string, times float64) Scenario {
	return Scenario{Name: name, Length: 6 * time.Minute, Over: times > 1, Mixed: true,
		Wave: &Wave{Base: 0.15 * times, Peak: 0.45 * times, Width: 0.34, Period: 3 * time.Minute}}
}

// mixedSurge is surge200 for other services.
func mixedSurge() Scenario {
	s := surge(2)
	s.Name, s.Mixed, s.Length = "mixed-surge200", true, 3*time.Minute
	return s
}

// over is a constant load of so many times the pool, which no split of it serves.
func over(times float64) Scenario {
	return Scenario{Name: fmt.Sprintf("over%.0f", 100*times), Length: 4 * time.Minute, Over: true,
		Pieces: []Piece{{Load: [3]float64{times / 3, times / 3, times / 3}}}}
}

// surge is a load that fits, then one of so many times the pool, then the first again. Each service
// wants more than its entitlement in it, each another amount.
func surge(times float64) Scenario {
	calm := [3]float64{.2, .25, .35} // 0.8 of the pool
	var load [3]float64
	for i, v := range calm {
		load[i] = v * times / .8
	}
	return Scenario{Name: fmt.Sprintf("surge%.0f", 100*times), Length: 4 * time.Minute, Over: true,
		Pieces: []Piece{{Load: calm}, {From: 1. / 3, Load: load}, {From: 2. / 3, Load: calm}}}
}

// bursts has one service after the other ask for so many times its load, for a time that is
// too short for anybody to plan for.
func bursts(load, times float64, lasts, every, whole time.Duration) (out []Piece) {
	base := Piece{Load: [3]float64{load, load, load}}
	for at, i := time.Duration(0), 0; at < whole; at, i = at+every, i+1 {
		base.From = at.Seconds() / whole.Seconds()
		up := base
		up.From = (at + every - lasts).Seconds() / whole.Seconds()
		up.Load[i%3] *= times
		out = append(out, base, up)
	}
	return out
}

// Find returns the scenarios of these names.
func Find(wanted []string) ([]Scenario, error) {
	var out []Scenario
	var known []string
	for _, s := range All() {
		known = append(known, s.Name)
	}
	for _, name := range wanted {
		found := false
		for _, s := range All() {
			if s.Name == name {
				out, found = append(out, s), true
			}
		}
		if !found {
			return nil, trimtab.Invalidf("scenario %.40q: want some of %s", name, strings.Join(known, ", "))
		}
	}
	if len(out) == 0 {
		return nil, trimtab.Invalidf("no scenario: want some of %s", strings.Join(known, ", "))
	}
	return out, nil
}

// Load returns the load of service i at time t of a run of length whole, as a
// share of the pool at the calibrated cost: size does not enter.
func (s *Scenario) Load(i int, t, whole time.Duration) float64 {
	if w := s.Wave; w != nil {
		period := min(w.Period, whole)
		// Peaks are at 1/6, 3/6 and 5/6 of the period.
		x := math.Mod(t.Seconds()/period.Seconds()-float64(2*i+1)/6+1.5, 1) - 0.5
		return w.Base + (w.Peak-w.Base)*0.5*(1+math.Cos(2*math.Pi*max(-0.5, min(0.5, x/w.Width))))
	}
	return s.piece(t, whole).Load[i]
}

// Size returns how dear a request of service i is at t, relative to the
// calibrated one.
func (s *Scenario) Size(i int, t, whole time.Duration) float64 {
	if s.Wave != nil {
		return 1
	}
	if v := s.piece(t, whole).Size[i]; v > 0 {
		return v
	}
	return 1
}

func (s *Scenario) piece(t, whole time.Duration) Piece {
	now := s.Pieces[0]
	for _, p := range s.Pieces {
		if p.From*whole.Seconds() <= t.Seconds() {
			now = p
		}
	}
	return now
}

// Event is a moment at which a service suddenly needs more.
type Event struct {
	At      time.Duration
	Service int
}

// sudden is the least rise in load that counts as an event: less may be met
// with the head-room that there is.
const sudden = 0.05

// Events returns when a service's need jumps up.
func (s *Scenario) Events(whole time.Duration) []Event {
	var out []Event
	for k := 1; k < len(s.Pieces); k++ {
		at := time.Duration(s.Pieces[k].From * float64(whole))
		before := time.Duration(s.Pieces[k-1].From * float64(whole))
		for i := range 3 {
			rise := s.Load(i, at, whole)*s.Size(i, at, whole) - s.Load(i, before, whole)*s.Size(i, before, whole)
			if rise > sudden {
				out = append(out, Event{At: at, Service: i})
			}
		}
	}
	return out
}

// Span is from when to when something is.
type Span struct{ From, To time.Duration }

// Overloads returns when all together ask for more than the pool, to a tenth of a second.
func (s *Scenario) Overloads(whole time.Duration) (out []Span) {
	const tick = 100 * time.Millisecond
	over := false
	for t := time.Duration(0); t < whole; t += tick {
		sum := 0.0
		for i := range 3 {
			sum += s.Load(i, t, whole) * s.Size(i, t, whole)
		}
		switch now := sum > 1; {
		case now && over:
			out[len(out)-1].To = min(t+tick, whole)
		case now:
			out = append(out, Span{t, min(t+tick, whole)})
		}
		over = sum > 1
	}
	return out
}

// Highest returns the highest load of service i, as a share of the pool at the calibrated cost.
func (s *Scenario) Highest(i int) float64 {
	if s.Wave != nil {
		return s.Wave.Peak
	}
	most := 0.0
	for _, p := range s.Pieces {
		most = max(most, p.Load[i])
	}
	return most
}

// Describe says what moves in a run of length whole.
func (s *Scenario) Describe(whole time.Duration) string {
	if s.Wave != nil {
		of := ""
		if s.Mixed {
			of = " (Node.js, a JVM that has just been started, Apache with PHP)"
		}
		return fmt.Sprintf("%s: each load%s from %.0f%% to %.0f%% of the pool and back, in turn, every %v",
			s.Name, of, 100*s.Wave.Base, 100*s.Wave.Peak, min(s.Wave.Period, whole))
	}
	if len(s.Pieces) == 1 && s.Two {
		return s.Name + ": constant loads; the first host is asked for more than it has, the second for half of it"
	}
	if len(s.Pieces) == 1 {
		return s.Name + ": constant loads"
	}
	return fmt.Sprintf("%s: loads or costs that change suddenly (%d)", s.Name, len(s.Pieces)-1)
}

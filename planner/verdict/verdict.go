// Package verdict judges every move of a workload by what it reports after it:
//
//	p̂ = Σ n p / Σ n                       over the reports since the move
//	worse:  p̂ + z √(q (1−q) / n) < q      with q the lower bound that was expected
//	better: p̂ − z √(q (1−q) / n) > q      with q the upper bound
//	unknown: the load left its forecast, or the reports ended
//
// n is of requests that were in no report before: of reports of a window W that are Δ
// apart, N Δ/W each. A report counts when all of its window lies behind the move. The band
// is that of all loads between the least and the highest that the forecast leaves room for.
//
// A fall that came out worse and broke the SLO is to be taken back ([Judge.Floor]).
//
// The package moves nothing and reads no clock.
package verdict

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

const (
	// sure is z: one in a hundred good moves looks bad by chance.
	sure = 2.326
	// enough is how many requests a verdict needs, unless it is worse.
	enough = 20
	// waits is the number of rounds after which a verdict is given in any case.
	waits = 6
	// sameReport is less than two reports are apart; ages are rounded.
	sameReport = time.Millisecond
)

// Rules are those of a pool.
type Rules struct {
	// Unit is the size of one step of an allocation.
	Unit float64
	// Round is the time between rounds, Urgent the least time between two that a need starts, and
	// Reversals how long the guard keeps a workload from a move in the other direction.
	Round, Urgent, Reversals time.Duration
}

// Judge judges the moves of one workload. The zero Judge has seen none.
type Judge struct {
	// asked is a published move, written one that was carried out and waits for its verdict, back
	// a fall that is being undone. nil: there is none.
	asked, written *move
	back           *back
}

// move is one move.
type move struct {
	plan     string
	at       time.Time
	from, to float64
	band     trimtab.Band
	load     trimtab.LoadForecast
	// waits are the knobs that were not seen to be where they are to be.
	waits map[trimtab.KnobID]float64
	// met and requests are what was reported since.
	met, requests float64
	// last is the time of the latest report that counts.
	last time.Time
}

// back is a fall that is being undone: the workload gets back what it had.
type back struct {
	to   float64
	why  string
	load trimtab.LoadForecast
	at   time.Time
}

// Expect records the expected result of an action, by the latest estimate, which may be nil: for
// all instances of the workload together.
func (j *Judge) Expect(plan string, a *trimtab.Action, e *trimtab.Estimate, slo float64) {
	if x := j.asked; x != nil && x.plan == plan && a.Of != nil {
		x.waits[a.KnobID] = a.Set.Value // another instance of the same move
		return
	}
	j.asked = nil
	from, to := a.Expect.Value, a.Set.Value
	if a.Of != nil {
		from, to = a.Of.From, a.Of.To
	}
	if a.Why.Bounds == nil || e == nil || e.Load == nil || e.Curve == nil || a.Set.Unlimited || a.Of == nil && a.Expect.Unlimited {
		return
	}
	if e.Backlog != nil && *e.Backlog > 0 || to > from && e.Performance != nil && *e.Performance < slo {
		return // what comes next tells of what waited
	}
	l := *e.Load
	band := e.Curve.Eval(to)
	band.Upper = math.Max(band.Upper, e.Curve.At(leastOf(&l)).Eval(to).Upper)
	j.asked = &move{plan: plan, from: from, to: to, band: band, load: l, waits: map[trimtab.KnobID]float64{a.KnobID: a.Set.Value}}
}

// Written records that a knob was written by a plan. Once all of a move's are, its judging
// begins, and ends that of the move before, whose verdict is returned; nil: there was none.
func (j *Judge) Written(now time.Time, plan string, r *trimtab.Result, unit float64) *trimtab.Verdict {
	x := j.asked
	if x == nil || x.plan != plan {
		return nil
	}
	if to, ok := x.waits[r.KnobID]; ok && math.Abs(to-r.Found.Value) <= unit {
		delete(x.waits, r.KnobID)
	}
	if len(x.waits) > 0 {
		return nil
	}
	v := j.conclude(codes.Unjudged, "it was moved again")
	x.at, j.asked, j.written = now, nil, x
	return v
}

// Report counts a report after a move. It returns the verdict once it is reached, else nil, and
// whether the move is undone.
func (j *Judge) Report(e *trimtab.Estimate, slo float64, rules Rules) (v *trimtab.Verdict, taken bool) {
	if b := j.back; b != nil && (e.Time.Sub(b.at) > rules.Reversals || e.Hold == nil && !Within(e.Load, &b.load)) {
		j.back = nil
	}
	x := j.written
	if x == nil || e.Hold != nil || e.Performance == nil || !(e.Requests > 0) || *e.Performance > 1 {
		return nil, false
	}
	at, ok := reportedAt(e)
	if !ok || at.Sub(x.last) < sameReport || at.Add(-max(rules.Urgent, e.Window.Duration())).Before(x.at) {
		return nil, false
	}
	if !Within(e.Load, &x.load) {
		return j.conclude(codes.Unjudged, "the load left its forecast"), false
	}
	x.count(e, at)
	got := x.met / x.requests
	noise := func(q float64) float64 { return sure * math.Sqrt(math.Max(q*(1-q), 0.01)/x.requests) }
	switch {
	case got+noise(x.band.Lower) < x.band.Lower:
		if taken = x.to < x.from && got+noise(slo) < slo; taken {
			j.back = &back{to: x.from, load: x.load, at: e.Time,
				why: fmt.Sprintf("taken back: plan %s lowered it to %.3g, and %.1f%% of %.0f requests were in time then, where %.1f%% to %.1f%% were expected",
					x.plan, x.to, 100*got, x.requests, 100*x.band.Lower, 100*x.band.Upper)}
		}
		return j.conclude(codes.Worse, ""), taken
	case x.requests >= enough && e.Time.Sub(x.at) >= rules.Round || e.Time.Sub(x.at) >= waits*rules.Round:
		if got-noise(x.band.Upper) > x.band.Upper {
			return j.conclude(codes.Better, ""), false
		}
		return j.conclude(codes.AsExpected, ""), false
	}
	return nil, false
}

// conclude ends the judging of the latest move.
func (j *Judge) conclude(verdict codes.Judgement, why string) *trimtab.Verdict {
	x := j.written
	if x == nil {
		return nil
	}
	j.written = nil
	v := &trimtab.Verdict{Plan: x.plan, Verdict: verdict, Why: why, From: x.from, To: x.to, Expected: x.band, Requests: x.requests}
	if x.requests > 0 {
		got := x.met / x.requests
		v.Performance = &got
	}
	return v
}

// Floor returns what the workload must get because a fall is being undone, in the resource's
// unit, and why; 0: nothing.
func (j *Judge) Floor() (least float64, why string) {
	if j.back == nil {
		return 0, ""
	}
	return j.back.to, j.back.why
}

// Within reports whether a load is where a forecast had it.
func Within(l, f *trimtab.LoadForecast) bool {
	if l == nil || !(f.Mean > 0) {
		return false
	}
	return l.Mean <= f.Upper && l.Mean >= leastOf(f)
}

// leastOf returns the least load that a forecast allows for: as far below the mean, as a ratio,
// as its bound is above.
func leastOf(f *trimtab.LoadForecast) float64 {
	return f.Mean * f.Mean / math.Max(f.Upper, f.Mean)
}

// reportedAt returns when the performance of an estimate was true.
func reportedAt(e *trimtab.Estimate) (at time.Time, ok bool) {
	for _, in := range e.Inputs {
		if in.Name == string(quantity.Performance) && in.Missing == "" {
			return e.Time.Add(-in.Age.Duration()), in.Age >= 0
		}
	}
	return at, false
}

// count adds a report of a time after the move, with the requests that no report
// before it had.
func (x *move) count(e *trimtab.Estimate, at time.Time) {
	n := e.Requests
	if e.Window > 0 && !x.last.IsZero() {
		n *= math.Min(1, at.Sub(x.last).Seconds()/float64(e.Window))
	}
	x.last = at
	x.met += *e.Performance * n
	x.requests += n
}

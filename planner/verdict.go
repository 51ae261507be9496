package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Every move is judged by what the workload reports after it:
//
//	p̂ = Σ n p / Σ n                       over the reports since the move
//	worse:  p̂ + z √(q (1−q) / n) < q      with q the lower bound that was expected
//	better: p̂ − z √(q (1−q) / n) > q      with q the upper bound
//	unknown: the load left its forecast, or the reports ended
//
// n is of requests that were in no report before: of reports of a window W that
// are Δ apart, N Δ/W each. A report counts when all of its window lies
// behind the move.
//
// The band is that of all loads between the least and the highest that the
// forecast leaves room for. A fall that came out worse and broke the SLO is taken
// back in the next round. A curve whose bands fail more often than their level
// proves nothing: the workload is lowered by the guard's fifth a round at most.

const (
	// sure is z: one in a hundred good moves looks bad by chance.
	sure = 2.326
	// enoughJudged is how many requests a verdict needs, unless it is worse.
	enoughJudged = 20
	// judgedFor is the number of rounds after which a verdict is given in any case.
	judgedFor = 6
	// trustMemory is over how many verdicts a learner is judged.
	trustMemory = 30
	// fewVerdicts is how many it takes to distrust one.
	fewVerdicts = 8
)

// executed is one move that waits for its verdict.
type executed struct {
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

// returning is a fall that is taken back: the workload is to have what it had.
type returning struct {
	to   float64
	why  string
	load trimtab.LoadForecast
	at   time.Time
}

// trust is how the bands of a learner did on live moves, forgetting.
type trust struct {
	// Judged and Failed are decayed counts of verdicts, and of those outside the
	// band.
	Judged float64 `json:"judged"`
	Failed float64 `json:"failed"`
}

// valid reports whether it is one that verdicts can lead to.
func (t trust) valid() bool {
	return t.Failed >= 0 && t.Failed <= t.Judged && t.Judged <= trustMemory+1
}

func (t trust) after(failed bool) trust {
	keep := 1 - 1.0/trustMemory
	t.Judged, t.Failed = t.Judged*keep+1, t.Failed*keep
	if failed {
		t.Failed++
	}
	return t
}

// lost reports whether the bands fail more often than their level, beyond what
// chance does.
func (t trust) lost(level float64) bool {
	if t.Judged < fewVerdicts {
		return false
	}
	p, n, miss := t.Failed/t.Judged, t.Judged, 1-level
	return p-surely*math.Sqrt(miss*(1-miss)/n) > miss
}

// watch begins to judge the moves that an outcome says were written.
func (p *Planner) watch(now time.Time, o *trimtab.Outcome) {
	for i := range o.Results {
		r := &o.Results[i]
		w := p.byName[r.Workload]
		if w == nil || r.Status != trimtab.Written || r.Resource != p.cfg.Resource || !r.Known || r.Found.Unlimited {
			continue
		}
		x := w.asked
		if x == nil || x.plan != trimtab.PlanID(o.Epoch, o.Sequence) {
			continue
		}
		if to, ok := x.waits[r.KnobID]; ok && math.Abs(to-r.Found.Value) <= p.cfg.Unit {
			delete(x.waits, r.KnobID)
		}
		if len(x.waits) > 0 {
			continue
		}
		x.at, w.asked = now, nil
		p.conclude(w, trimtab.Unjudged, "it was moved again")
		w.executed = x
	}
}

// expects notes what a move that goes out is expected to bring: with all its
// instances, where there are several.
func (w *workload) expects(plan string, a *trimtab.Action) {
	if x := w.asked; x != nil && x.plan == plan && a.Of != nil {
		x.waits[a.KnobID] = a.Set.Value // another instance of the same move
		return
	}
	e := w.estimate
	w.asked = nil
	from, to := a.Expect.Value, a.Set.Value
	if a.Of != nil {
		from, to = a.Of.From, a.Of.To
	}
	if a.Why.Bounds == nil || e == nil || e.Load == nil || e.Curve == nil || a.Set.Unlimited || a.Of == nil && a.Expect.Unlimited {
		return
	}
	if e.Backlog != nil && *e.Backlog > 0 || to > from && e.Performance != nil && *e.Performance < w.SLO {
		return // what comes next tells of what waited
	}
	l := *e.Load
	band := e.Curve.Eval(to)
	band.Upper = math.Max(band.Upper, e.Curve.At(leastOf(&l)).Eval(to).Upper)
	w.asked = &executed{plan: plan, from: from, to: to, band: band, load: l, waits: map[trimtab.KnobID]float64{a.KnobID: a.Set.Value}}
}

// leastOf returns the least load that a forecast leaves room for: as far below
// the mean, as a ratio, as its bound is above.
func leastOf(f *trimtab.LoadForecast) float64 {
	return f.Mean * f.Mean / math.Max(f.Upper, f.Mean)
}

// within reports whether the load is where the forecast had it.
func within(l *trimtab.LoadForecast, f *trimtab.LoadForecast) bool {
	if l == nil || !(f.Mean > 0) {
		return false
	}
	return l.Mean <= f.Upper && l.Mean >= leastOf(f)
}

// weigh counts a report after a move and gives the verdict when it is in.
func (p *Planner) weigh(w *workload, e *trimtab.Estimate) {
	if b := w.returning; b != nil && (e.Time.Sub(b.at) > p.cfg.Guard.Reversals() || e.Hold == nil && !within(e.Load, &b.load)) {
		w.returning = nil
	}
	x := w.executed
	if x == nil || e.Hold != nil || e.Performance == nil || !(e.Requests > 0) || *e.Performance > 1 {
		return
	}
	at, ok := reportedAt(e)
	if !ok || at.Sub(x.last) < sameReport {
		return
	}
	if at.Add(-max(p.cfg.Urgent, e.Window.Duration())).Before(x.at) {
		return
	}
	if !within(e.Load, &x.load) {
		p.conclude(w, trimtab.Unjudged, "the load left its forecast")
		return
	}
	x.count(e, at)
	got := x.met / x.requests
	noise := func(q float64) float64 { return sure * math.Sqrt(math.Max(q*(1-q), 0.01)/x.requests) }
	switch {
	case got+noise(x.band.Lower) < x.band.Lower:
		fell := x.to < x.from
		if p.conclude(w, trimtab.Worse, ""); fell && got+noise(w.SLO) < w.SLO {
			w.returning = &returning{to: x.from, load: x.load, at: e.Time,
				why: fmt.Sprintf("taken back: plan %s lowered it to %.3g, and %.1f%% of %.0f requests were in time then, where %.1f%% to %.1f%% were expected",
					x.plan, x.to, 100*got, x.requests, 100*x.band.Lower, 100*x.band.Upper)}
			p.counts.takenBack++
		}
	case x.requests >= enoughJudged && e.Time.Sub(x.at) >= p.cfg.Round || e.Time.Sub(x.at) >= judgedFor*p.cfg.Round:
		if got-noise(x.band.Upper) > x.band.Upper {
			p.conclude(w, trimtab.Better, "")
		} else {
			p.conclude(w, trimtab.AsExpected, "")
		}
	}
}

// sameReport is less than two reports are apart; ages are rounded.
const sameReport = time.Millisecond

// reportedAt returns when the performance of an estimate was true.
func reportedAt(e *trimtab.Estimate) (at time.Time, ok bool) {
	for _, in := range e.Inputs {
		if in.Name == string(trimtab.Performance) && in.Missing == "" {
			return e.Time.Add(-in.Age.Duration()), in.Age >= 0
		}
	}
	return at, false
}

// count adds a report of a time after the move, with the requests that no report
// before it had.
func (x *executed) count(e *trimtab.Estimate, at time.Time) {
	n := e.Requests
	if e.Window > 0 && !x.last.IsZero() {
		n *= math.Min(1, at.Sub(x.last).Seconds()/float64(e.Window))
	}
	x.last = at
	x.met += *e.Performance * n
	x.requests += n
}

// conclude ends the judging of the latest move of a workload.
func (p *Planner) conclude(w *workload, verdict trimtab.Judgement, why string) {
	x := w.executed
	if x == nil {
		return
	}
	w.executed = nil
	v := trimtab.Verdict{Workload: w.Name, Plan: x.plan, Verdict: verdict, Why: why, From: x.from, To: x.to, Expected: x.band, Requests: x.requests}
	if x.requests > 0 {
		got := x.met / x.requests
		v.Performance = &got
	}
	if verdict != trimtab.Unjudged {
		w.trust = w.trust.after(verdict != trimtab.AsExpected)
	}
	p.counts.verdicts[verdict]++
	p.verdicts = append(p.verdicts, v)
}

// maxVerdicts bounds the verdicts that a plan tells.
const maxVerdicts = 256

// takeVerdicts returns the verdicts since the last plan, of which there is at most one
// for each move of it: those that were not as expected first, then by name, in
// whatever order the reports came.
func (p *Planner) takeVerdicts() []trimtab.Verdict {
	v := p.verdicts
	p.verdicts = nil
	rank := func(v *trimtab.Verdict) int {
		if v.Verdict == trimtab.AsExpected {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(v, func(a, b trimtab.Verdict) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Workload, b.Workload))
	})
	return v[:min(len(v), maxVerdicts)]
}

// floor returns what a workload must get because a fall is taken back, in the
// resource's unit; 0: nothing.
func (w *workload) floor() float64 {
	if w.returning == nil {
		return 0
	}
	return w.returning.to
}

// distrusted says why the workload's curve proves nothing; "": it does.
func (w *workload) distrusted() string {
	level := 0.9
	if e := w.estimate; e != nil && e.Curve != nil {
		level = e.Curve.Level
	}
	if !w.trust.lost(level) {
		return ""
	}
	return fmt.Sprintf("its curve is distrusted: of the last %.0f moves that were judged %.0f came out outside the %.0f%% band", w.trust.Judged, w.trust.Failed, 100*level)
}

package view

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/newest"
)

// Limits on the stored history, over all workloads.
const (
	maxDecisions = 100_000
	// maxAge is how long the bus keeps plans and outcomes, which is where they
	// are read again after a restart.
	maxAge = 7 * 24 * time.Hour
	// maxEarly bounds the outcomes that wait for their plans: they travel on
	// streams of their own.
	maxEarly = 100_000
	// maxDecisionBytes and maxEarlyBytes are approximate limits on the memory of both. The
	// decisions of a normal planner stay far below them. Decisions on the shelf use no memory.
	maxDecisionBytes, maxEarlyBytes = 154 << 20, 32 << 20
)

// effectRounds is the number of rounds after a decision within which a report may still show its
// effect.
const effectRounds = 6

// book keeps the decisions of all workloads, each workload's in the order of
// its plans, and the oldest of all in the order in which they go.
type book struct {
	// order has the workload of each decision that is kept, oldest first.
	order []*state
	// cost is about how many bytes they take.
	cost int
	// early are outcomes whose plans have not come.
	early      map[position]*trimtab.Outcome
	earlyOrder []position
	earlyBytes int // about
	words      words
	tally      tally
	cause      *trimtab.Cause // the newest
	shelf      shelf
}

// decisionLog has the decisions on one workload.
type decisionLog struct {
	// decisions are in the order of their plans. The older ones are on the shelf, in chunks;
	// shelved counts them.
	decisions []*Decision
	chunks    []chunk
	shelved   int
	// newestOn has the newest decision on each resource.
	newestOn map[string]*Decision
}

// spread is the number of workloads among which a limit is divided, each with one plan a round.
type spread struct {
	round     time.Duration
	workloads int
}

// position names one step of one plan on one host.
type position struct {
	newest.Position
	host string
}

// words gives equal strings one memory: decisions repeat them by the ten
// thousand.
type words map[string]string

// maxWord bounds a string that is shared: a longer one is seldom repeated.
const maxWord = 256

func (w *words) one(s string) string {
	if len(s) > maxWord {
		return s
	}
	if known, ok := (*w)[s]; ok {
		return known
	}
	if *w == nil || len(*w) > 1<<14 {
		*w = words{}
	}
	(*w)[s] = s
	return s
}

// slim returns a with strings that are shared.
func (w *words) slim(a trimtab.Action) trimtab.Action {
	for _, s := range []*string{&a.Pool, &a.Host, &a.Workload, &a.Instance, &a.Resource} {
		*s = w.one(*s)
	}
	a.Mode = trimtab.Mode(w.one(string(a.Mode)))
	why := &a.Why
	why.Summary, why.Model = w.one(why.Summary), w.one(why.Model)
	why.Binding = trimtab.Binding{Kind: codes.BindingKind(w.one(string(why.Binding.Kind))), Detail: w.one(why.Binding.Detail)}
	why.Inputs, why.Alternatives = slices.Clone(why.Inputs), slices.Clone(why.Alternatives)
	for i := range why.Inputs {
		in := &why.Inputs[i]
		in.Name, in.Source, in.Missing = w.one(in.Name), w.one(in.Source), w.one(in.Missing)
	}
	for i := range why.Alternatives {
		why.Alternatives[i].Why = w.one(why.Alternatives[i].Why)
	}
	return a
}

// causeOf returns the cause of a plan, which its decisions share.
func (b *book) causeOf(c trimtab.Cause) *trimtab.Cause {
	if b.cause == nil || *b.cause != c {
		b.cause = &trimtab.Cause{Kind: codes.CauseKind(b.words.one(string(c.Kind))), Ref: b.words.one(c.Ref), By: b.words.one(c.By),
			Workload: b.words.one(c.Workload), Text: b.words.one(c.Text)}
	}
	return b.cause
}

// decide records one decision of a plan, over all instances of a workload.
func (b *book) decide(s *state, p *trimtab.Plan, a trimtab.Action, moves []Move, of spread) {
	d := &Decision{Plan: b.words.one(p.ID()), Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: p.Time, Cause: b.causeOf(p.Cause), Action: b.words.slim(a), Moves: b.words.slimMoves(moves)}
	d.Effect = &Effect{Performance: TooEarly}
	if in := input(a.Why.Inputs, "performance"); in != nil {
		at := earlier(p.Time, in.Age)
		before := in.Value
		d.Effect.Before, d.Effect.BeforeTime = &before, at
		// After a restart these are the only reports there are of the time before.
		s.recordEffects(at, before, of.round)
	}
	for _, host := range d.hosts() {
		if o := b.early[position{d.position(), host}]; o != nil {
			for i := range o.Results {
				d.answer(&o.Results[i], o.Took)
			}
		}
	}
	b.tally.decided(d)
	s.decisions = append(s.decisions, d)
	s.noteNewest(d, s.room())
	b.order = append(b.order, s)
	b.cost += d.cost()
	b.shelve(s, of)
	b.forget(sooner(p.Time, time.Now()).Add(-maxAge))
}

// input returns the input with that name; nil: it does not exist or is missing.
func input(all []trimtab.Input, name string) *trimtab.Input {
	for i := range all {
		if all[i].Name == name && all[i].Missing == "" {
			return &all[i]
		}
	}
	return nil
}

// forget drops the oldest decisions: those beyond the bound, and those from
// before the given time.
func (b *book) forget(before time.Time) {
	for len(b.order) > 0 {
		s := b.order[0]
		if len(b.order) <= maxDecisions && b.cost <= maxDecisionBytes && b.shelf.bytes <= maxShelfBytes && !s.oldest().Before(before) {
			return
		}
		b.dropOldest(s)
		b.order[0] = nil
		b.order = b.order[1:]
	}
}

// settle gives a decision its result. The outcome waits when its plan has not
// come.
func (b *book) settle(o *trimtab.Outcome, last *trimtab.Plan, all *workloads) {
	at := newest.At(o.Epoch, o.Sequence, o.Step)
	if last == nil || newest.At(last.Epoch, last.Sequence, last.Step).Compare(at) < 0 {
		b.wait(o)
	}
	for i := range o.Results {
		r := &o.Results[i]
		s := all.all[r.Workload]
		if s == nil {
			continue
		}
		b.fetch(s, at)
		for i := s.find(at); i < len(s.decisions); i++ {
			d := s.decisions[i]
			if d.position() != at {
				break
			}
			// A copy: readers may still hold the decision without a result.
			done := *d
			done.Moves = slices.Clone(d.Moves)
			if !done.answer(r, o.Took) {
				continue
			}
			b.tally.answered(d, &done)
			s.replace(i, &done)
			s.version = all.version
			break
		}
	}
}

func (b *book) wait(o *trimtab.Outcome) {
	if len(o.Results) == 0 {
		return
	}
	at := position{newest.At(o.Epoch, o.Sequence, o.Step), o.Host}
	if b.early == nil {
		b.early = map[position]*trimtab.Outcome{}
	}
	if old := b.early[at]; old == nil {
		b.earlyOrder = append(b.earlyOrder, at)
	} else {
		b.earlyBytes -= outcomeCost(old)
	}
	b.early[at] = o
	b.earlyBytes += outcomeCost(o)
	for len(b.earlyOrder) > maxEarly || b.earlyBytes > maxEarlyBytes {
		b.dropEarly()
	}
}

// dropEarly drops the first outcome that waits.
func (b *book) dropEarly() {
	at := b.earlyOrder[0]
	b.earlyBytes -= outcomeCost(b.early[at])
	delete(b.early, at)
	b.earlyOrder = b.earlyOrder[1:]
}

// passed drops the outcomes whose plans have come or never will.
func (b *book) passed(p *trimtab.Plan) {
	for len(b.earlyOrder) > 0 {
		at := b.earlyOrder[0]
		if at.Compare(newest.PositionOf(p)) >= 0 {
			return
		}
		b.dropEarly()
	}
}

// find returns the index of the first decision of a step, or where it would
// be inserted.
func (s *decisionLog) find(p newest.Position) int {
	return sort.Search(len(s.decisions), func(i int) bool {
		return s.decisions[i].position().Compare(p) >= 0
	})
}

// recordEffects records a report's performance as the effect of the decisions that are at least one
// round older and have none yet.
func (s *decisionLog) recordEffects(at time.Time, performance float64, round time.Duration) {
	round = max(round, time.Second)
	for i, d := range slices.Backward(s.decisions) {
		age := at.Sub(d.Time)
		if age > effectRounds*round {
			return
		}
		if age < round || d.Effect.Performance != TooEarly {
			continue
		}
		done, e := *d, *d.Effect
		e.After, e.AfterTime, e.Performance = &performance, at, NotMeasured
		if e.Before != nil {
			e.Performance = direction(*e.Before, performance)
		}
		done.Effect = &e
		s.replace(i, &done)
	}
}

// direction compares two performances.
func direction(before, after float64) string {
	switch d := after - before; {
	case math.Abs(d) <= 0.01*max(before, after):
		return Same
	case d > 0:
		return Rose
	}
	return Fell
}

// shown returns d as it is at now: no report will come any more for one that is
// long past.
func (d *Decision) shown(now time.Time, round time.Duration) *Decision {
	if d.Effect == nil || d.Effect.Performance != TooEarly || now.Sub(d.Time) <= effectRounds*max(round, time.Second) {
		return d
	}
	done, e := *d, *d.Effect
	e.Performance = NotMeasured
	done.Effect = &e
	return &done
}

// brief returns d without the parts that only the decision's own page shows.
func (d *Decision) brief() *Decision {
	b := *d
	b.Action.Why.Inputs, b.Action.Why.Alternatives, b.Moves = nil, nil, nil
	return &b
}

// Decisions returns up to limit decisions on a workload, newest first: those that are older than
// the one that before names (Next of the previous page; empty: from the
// newest). ok is false for an unknown workload; the error says that before is invalid.
func (v *Model) Decisions(workload, before string, limit int, now time.Time) (out Decisions, ok bool, err error) {
	from, err := readCursor(before)
	if err != nil {
		return out, true, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads.all[workload]
	if s == nil {
		return out, false, nil
	}
	out = Decisions{Workload: workload, Total: s.stored(), Decisions: []*Decision{}}
	limit = min(max(limit, 1), MaxDecisions)
	for d := range s.before(from) {
		if n := len(out.Decisions); n >= limit {
			// A step has one decision per resource: they stay on one page.
			if last := out.Decisions[n-1]; d.position() != last.position() {
				out.Next = last.Cursor()
				break
			}
		}
		out.Decisions = append(out.Decisions, d.shown(now, v.config.Round))
	}
	return out, true, nil
}

// readCursor parses the name of a decision; an empty text means the newest.
func readCursor(text string) (p newest.Position, err error) {
	if text == "" {
		return newest.Position{Epoch: math.MaxUint64}, nil
	}
	if n, err := fmt.Sscanf(text, "%d-%d-%d", &p.Epoch, &p.Sequence, &p.Step); n != 3 || err != nil || p.String() != text {
		return p, trimtab.Invalidf("read before %.40q: want the next of an earlier answer, as in 3-17-1", text)
	}
	return p, nil
}

package machines

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Filter selects the candidates at now. It takes time linear in the number of machines. Only RB
// uses rng.
func (x *Index[F]) Filter(now time.Time, r Rule, rng *rand.Rand) (Result, error) {
	if err := r.check(); err != nil {
		return Result{}, err
	}
	at, ok := nanoseconds(now)
	if !ok || r.Policy == RB && rng == nil {
		return Result{}, trimtab.Invalidf("filter machines: at %v, random source %v: want a time from 1970 to 2241, and for RB a source", now, rng != nil)
	}
	if x.why == nil {
		x.why, x.ranks = make([]Reason, len(x.columns.ids)), make([]ranked[F], 0, len(x.columns.ids))
	}
	x.settle()
	x.present(at)
	var taken []ranked[F]
	switch r.Policy {
	case RB:
		x.keep()
		taken = x.random(r.Limit, rng)
	case SLB:
		x.rank(scan{weight: loadWeight})
		taken = ordered(lowest(x.ranks, r.Limit))
	case QLB:
		x.rank(scan{weight: queueWeight})
		taken = ordered(lowest(x.ranks, r.Limit))
	default:
		taken = x.phases(&r)
	}
	out := Result{Candidates: make([]uint32, len(taken)), Why: x.why}
	for i, m := range taken {
		out.Candidates[i] = m.at
	}
	return out, nil
}

// present starts the reasons with those that depend on time: disconnected and unsettled machines.
func (x *Index[F]) present(now int64) {
	for i := range x.why {
		why := Reason(0)
		if !x.connected(uint32(i), now) {
			why = Disconnected
		}
		if x.columns.unsettled[i] {
			if now-x.columns.since[i] < int64(x.config.SettleAfter) {
				why |= Unsettled
			}
		}
		x.why[i] = why
	}
}

// phases are those of Algorithm 4.
func (x *Index[F]) phases(r *Rule) []ranked[F] {
	if r.Mode == RP {
		x.blacklistHighest(x.columns.cpi, r.WorstCPI, r.NeedCounters)
		x.blacklistHighest(x.columns.mpki, r.WorstMPKI, r.NeedCounters)
	}
	x.blacklistRated(r.WorstRated, r.Strict)
	x.rank(scan{weight: loadWeight, all: true, own: r.Own})
	byLoad := lowest(x.ranks, widened(r.Widen, r.Limit, len(x.ranks)))
	for i := range byLoad {
		_, q := x.Indices(byLoad[i].at)
		if math.IsNaN(q) { // two sums beyond all numbers
			q = math.Inf(1)
		}
		byLoad[i].key = F(q)
	}
	return ordered(lowest(byLoad, r.Limit))
}

// widened is ceil(d limit), at most n.
func widened(d float64, limit, n int) int {
	if all := math.Ceil(d * float64(limit)); all < float64(n) {
		return int(all)
	}
	return n
}

func ordered[F Number](r []ranked[F]) []ranked[F] {
	slices.SortFunc(r, ranked[F].compare)
	return r
}

// blacklistHighest marks the k highest of a counter (B0); a missing one is not
// ranked.
func (x *Index[F]) blacklistHighest(counter []F, k int, need bool) {
	x.ranks = x.ranks[:0]
	for i, v := range counter {
		switch {
		case !math.IsNaN(float64(v)):
			x.ranks = append(x.ranks, ranked[F]{-v, uint32(i)})
		case need:
			x.why[i] |= Missing
		}
	}
	for _, m := range lowest(x.ranks, k) {
		x.why[m.at] |= Interferes
	}
}

// blacklistRated marks the k lowest scores (B1), of machines with a penalty
// unless strict.
func (x *Index[F]) blacklistRated(k int, strict bool) {
	x.ranks = x.ranks[:0]
	for i, score := range x.columns.score {
		if score < 0 || strict {
			x.ranks = append(x.ranks, ranked[F]{F(score), uint32(i)})
		}
	}
	for _, m := range lowest(x.ranks, k) {
		x.why[m.at] |= WeakRated
	}
}

// keep lists the machines without a reason against them.
func (x *Index[F]) keep() {
	x.ranks = x.ranks[:0]
	for i, why := range x.why {
		if why == 0 {
			x.ranks = append(x.ranks, ranked[F]{0, uint32(i)})
		}
	}
}

// random draws k of the ranked without replacement to their front.
func (x *Index[F]) random(k int, rng *rand.Rand) []ranked[F] {
	k = min(k, len(x.ranks))
	for i := range k {
		j := i + rng.IntN(len(x.ranks)-i)
		x.ranks[i], x.ranks[j] = x.ranks[j], x.ranks[i]
	}
	return x.ranks[:k]
}

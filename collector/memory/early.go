package memory

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/quantity"
)

// In version 1 nothing slows a group down at its limit, and a second is long. So the kernel tells when the
// usage of a group passes its next step,
//
//	inactive page cache + limit · (0.5, 0.6, … 1),   at most limit − 256 KiB
//
// and the group is read at once. 256 KiB is the batch in which Linux charges memory (MEMCG_CHARGE_BATCH, 64
// pages): from there on charges are refused. A step that was passed and changed no limit is not asked for
// again for quietFor rounds, so that a group that goes up and down costs little. Instead it is read halfway
// from its use to its limit, once a round: a rise that doubled from there would reach the limit.
const (
	firstStep, nextStep, lastStep = 0.5, 0.1, 1
	charge                        = 256 << 10
	quietFor                      = 10
)

// step is the next step of a group.
type step struct {
	// at is the usage, in bytes; 0: there is none. part is that of the limit.
	at, limit, part float64
	// above is the part up to which no step is asked for before a round.
	above   float64
	untilIn int
}

// Woken has the groups that passed a step.
func (r *reader) Woken() <-chan string {
	if r.steps == nil {
		return nil
	}
	return r.steps.Passed
}

// Early reads a group that passed a step.
func (r *reader) Early(path string) (g poll.Group, all []*trimtab.Sample) {
	for of, s := range r.states {
		if of.Path != path || s.last == nil {
			continue
		}
		now, err := read(r.groups, path, s.last)
		if err != nil {
			return of, nil
		}
		if s.step.part > s.step.above {
			s.step.above, s.step.untilIn = s.step.part, r.rounds+quietFor
		}
		r.ask(path, &s.step, now, true)
		r.states[of] = s
		return of, samples(of.Sample, s.last, now, nil)
	}
	return g, nil
}

// ask asks the kernel to tell of a group's next step, given its newest reading; nil: of none. passed says
// that it told of the last one.
func (r *reader) ask(path string, s *step, now *reading, passed bool) {
	if r.steps == nil {
		return
	}
	next := step{above: s.above, untilIn: s.untilIn}
	if now != nil {
		next.limit = now.bytes[quantity.MemoryLimit]
	}
	if next.limit != s.limit || r.rounds >= next.untilIn {
		next.above = 0
	}
	if next.limit > 0 {
		usage := now.bytes[quantity.MemoryUsage]
		for part := firstStep; part < lastStep+nextStep/2 && next.at == 0; part += nextStep {
			at := math.Min(usage-now.bytes[quantity.WorkingSet]+part*next.limit, next.limit-charge)
			if at > usage && part > next.above+nextStep/2 {
				next.at, next.part = at, part
			}
		}
		if half := usage + (next.limit-now.bytes[quantity.WorkingSet])/2; !passed && next.above > 0 && half < next.at {
			next.at, next.part = half, next.above
		}
	}
	if !passed && next.limit == s.limit && math.Abs(next.at-s.at) < next.limit/64 {
		next.at, next.part = s.at, s.part // near enough
	} else if next.at != s.at || passed {
		_ = r.steps.At(path, uint64(next.at)) // without it the group is read at each round
	}
	*s = next
}

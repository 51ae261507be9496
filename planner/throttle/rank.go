package throttle

import (
	"cmp"
	"math"
	"slices"
)

// suspect is a task with the evidence against it.
type suspect struct {
	*task
	// weight is the evidence in natural logarithms of odds, rounded to a whole number: smaller
	// differences do not matter.
	weight int
	// turn is the paper's order: by the class of the cores, then by progress.
	turn float64
}

// rank returns the suspects, ordered by evidence. If the evidence is equal, tasks on cores of the
// first class come first, and among these the one with the least progress (6.2).
func (p *Policy) rank(lead *victim, cleared uint64) []suspect {
	p.suspects = p.suspects[:0]
	for _, t := range p.running {
		if t.status == free && !t.ending && t.cleared <= cleared {
			weight := correlation(&t.activity, &lead.excess) + p.jobs.prior(t)
			p.suspects = append(p.suspects, suspect{t, int(math.Round(weight)), t.turn()})
		}
	}
	slices.SortFunc(p.suspects, func(a, b suspect) int {
		switch {
		case a.weight != b.weight:
			return b.weight - a.weight
		case a.turn < b.turn:
			return -1
		case a.turn > b.turn:
			return 1
		}
		return cmp.Compare(a.id, b.id)
	})
	return p.suspects
}

// prior returns the evidence from former verdicts on the job:
//
//	ln((4 guilty + 1) / (innocent + 1)), limited to −2 to 3
//
// A guilty verdict counts four times, since most tasks are innocent, even of a job with guilty
// ones.
func (r records) prior(t *task) float64 {
	j := r[t.key()]
	if j == nil {
		return 0
	}
	return max(-2, min(math.Log((4*j.guilty+1)/(j.innocent+1)), 3))
}

// correlation returns the evidence from the correlation r of activity and excess over the last n
// ticks, in natural logarithms of odds. Fisher's z is N(0, 1) for an innocent task, and assumed to
// be N(2, 1) for a guilty one:
//
//	z = atanh(r) √(n − 3),  ln φ(z − 2) / φ(z) = 2 z − 2
//
// Half of that counts, since neighbouring ticks are not independent. The result is limited to −2 to
// 4; 0 if r is unknown.
func correlation(activity, excess *course) float64 {
	var n, sx, sy, xx, yy, xy float64
	for i := range activity {
		x, y := float64(activity[i]), float64(excess[i])
		if d := x + y; d-d == 0 { // both are numbers
			n, sx, sy = n+1, sx+x, sy+y
			xx, yy, xy = xx+x*x, yy+y*y, xy+x*y
		}
	}
	if n < leastTicks {
		return 0
	}
	// Ignore variances that are only rounding errors.
	rest := 1e-9 * xx
	xx, yy, xy = xx-sx*sx/n, yy-sy*sy/n, xy-sx*sy/n
	if !(xx > rest) || !(yy > 1e-12) {
		return 0
	}
	r := max(-0.99, min(xy/math.Sqrt(xx*yy), 0.99))
	return max(-2, min(math.Atanh(r)*math.Sqrt(n-3)-1, 4))
}

// leastTicks is the number of ticks that a correlation needs.
const leastTicks = 8

// standsOut is the weight of evidence from which on one suspect is tried alone.
const standsOut = 2

// freeing sums up the resources that throttled tasks free, as fractions of the capacity.
type freeing [MaxDimensions]float64

// add adds a task, and returns the largest share of any resource that it frees.
func (f *freeing) add(c *Config, o *Observation, t *task) (most float64) {
	for k := range c.Resources {
		if c.Resources[k].Stock || k >= len(t.holds) || k >= len(o.Capacity) || !amount(t.holds[k]) || !(o.Capacity[k] > 0) {
			continue
		}
		part := t.holds[k] * (1 - c.Proof.Cut) / o.Capacity[k]
		f[k] += part
		most = max(most, part)
	}
	return most
}

// group returns the suspects to throttle at once, from the head of the list. If the victim's
// sensitivity is known, they are the fewest whose predicted effect, less one standard deviation,
// brings the victim below its boundary; if not even all suffice, they are half of the suspects. If
// it is unknown, they are the fewest that have the configured fraction of all suspects' resources,
// at most half of the suspects. If the evidence against the first one stands out, the group ends
// before the first suspect with less evidence.
func (p *Policy) group(o *Observation, lead *victim, all []suspect) []suspect {
	total := 0.0
	for _, s := range all {
		var f freeing
		total += f.add(&p.Config, o, s.task)
	}
	var f freeing
	share, half := 0.0, (len(all)+1)/2
	for i := range all {
		share += f.add(&p.Config, o, all[i].task)
		mean, deviation, known := lead.sensitivity.fall(f[:len(p.Resources)])
		if known = known && mean > deviation; known && mean-deviation >= lead.look.before {
			return all[:i+1]
		}
		enough := share >= p.Proof.Fraction*total
		if total == 0 {
			enough = float64(i+1) >= p.Proof.Fraction*float64(len(all))
		}
		enough = enough || i+1 >= half
		if !known && enough || i+1 < len(all) && all[0].weight >= standsOut && all[i+1].weight < all[0].weight {
			return all[:i+1]
		}
	}
	return all[:half]
}

package quota

import "math"

// TicksPerSecond of a rule; a tick is a period of the quotas.
const TicksPerSecond = 10

const (
	// least is the smallest quota that any rule sets, begin what the evaluation of
	// Autothrottle begins with, in cores.
	least, begin = 0.01, 32.0
)

// Look is what one tick shows of one service.
type Look struct {
	// Used is the mean use since the last tick, in cores.
	Used float64
	// Throttled counts the periods since the last tick in which the quota stopped it.
	Throttled int
}

// Rule sets quotas.
type Rule interface {
	// Step takes the looks of tick t, which counts from 0, and changes quotas, in cores.
	Step(t int, looks []Look, quotas []float64)
}

// Threshold keeps use under a share of the quota: k8s-cpu and k8s-cpu-fast.
type Threshold struct {
	// Share of the quota that is to be used, in (0, 1].
	Share float64
	// Every so many seconds a quota is recommended; the highest of Keep seconds counts.
	Every, Keep int

	sum    []float64
	recent [][]float64
}

// K8sCPU is the slow rule.
func K8sCPU(share float64) *Threshold { return &Threshold{Share: share, Every: 15, Keep: 300} }

// K8sCPUFast is the fast rule.
func K8sCPUFast(share float64) *Threshold { return &Threshold{Share: share, Every: 1, Keep: 20} }

// Step implements Rule.
func (r *Threshold) Step(t int, looks []Look, quotas []float64) {
	if r.sum == nil {
		r.sum, r.recent = make([]float64, len(looks)), make([][]float64, len(looks))
		fill(quotas, begin)
	}
	ticks := r.Every * TicksPerSecond
	for i := range looks {
		r.sum[i] += looks[i].Used
		if t == 0 || t%ticks != 0 {
			continue
		}
		r.recent[i] = append(r.recent[i], r.sum[i]/float64(ticks)/r.Share)
		if n := len(r.recent[i]) - r.Keep/r.Every; n > 0 {
			r.recent[i] = r.recent[i][n:]
		}
		r.sum[i] = 0
		top := least
		for _, v := range r.recent[i] {
			top = math.Max(top, v)
		}
		quotas[i] = top
	}
}

func fill(v []float64, x float64) {
	for i := range v {
		v[i] = x
	}
}

// Captain is one controller per service, with a throttle target each.
type Captain struct {
	// Targets are shares of periods, in [0, 1]; one for all where there is only one.
	Targets []float64
	of      []captain
}

// Constants of the source.
const (
	throttles, uses     = 10, 50 // ticks that are kept
	rollback            = 3.0    // times the target
	betaMax, betaMin    = 0.9, 0.5
	firstMargin, eachTh = 3.0, 10
)

type captain struct {
	throttled [throttles]float64
	used      [uses]float64
	last      float64
	margin    float64
	down      bool
}

// Step implements Rule.
func (r *Captain) Step(t int, looks []Look, quotas []float64) {
	if r.of == nil {
		r.of = make([]captain, len(looks))
		fill(quotas, begin)
		for i := range r.of {
			r.of[i].margin, r.of[i].last = firstMargin, begin
		}
	}
	for i := range looks {
		g := r.Targets[min(i, len(r.Targets)-1)]
		quotas[i] = r.of[i].step(t, looks[i], quotas[i], g)
	}
}

func (c *captain) step(t int, l Look, quota, g float64) float64 {
	c.throttled[t%throttles] = float64(l.Throttled)
	c.used[t%uses] = l.Used
	if r := mean(c.throttled[:]); r > rollback*g && c.down {
		quota = 2*c.last - quota // all that was taken, and as much on top
		c.margin += r - g
		c.throttled, c.down = [throttles]float64{}, false
	}
	if t%eachTh != 0 {
		return quota
	}
	c.last, c.down = quota, false
	r := mean(c.throttled[:])
	c.margin = math.Max(0, c.margin+r-g)
	if r > rollback*g {
		quota *= 1 + r - rollback*g
	} else if want := top(c.used[:]) + c.margin*deviation(c.used[:]); want <= betaMax*quota {
		quota, c.down = math.Max(betaMin*quota, want), true
	}
	c.throttled = [throttles]float64{}
	return math.Max(least, quota)
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func mean(v []float64) float64 { return sum(v) / float64(len(v)) }

func top(v []float64) float64 {
	m := 0.0
	for _, x := range v {
		m = math.Max(m, x)
	}
	return m
}

// deviation is the standard deviation with n − 1.
func deviation(v []float64) float64 {
	m, squares := mean(v), 0.0
	for _, x := range v {
		squares += (x - m) * (x - m)
	}
	return math.Sqrt(squares / float64(len(v)-1))
}

// Escra moves a pool of cores. The first of its rules that fits a service holds.
type Escra struct {
	// Pool is what all services share, in cores.
	Pool float64

	throttled, unused [][escraWindow]float64
	seen              []int
	silent            []int
	given             float64
}

// Constants of the source, in cores, ticks and shares.
const (
	escraStep, escraRevived = 0.3, 1.0
	escraIdle, escraSmall   = 0.2, 0.05
	escraMuch, escraAny     = 0.5, 0.1
	escraGain, escraKept    = 20.0, 0.8
	escraHalf, escraTwice   = 0.5, 2.0
	escraSilent             = 2 * TicksPerSecond
	escraWindow             = 10
)

// Step implements Rule.
func (r *Escra) Step(_ int, looks []Look, quotas []float64) {
	n := len(looks)
	fair := r.Pool / float64(n)
	if r.seen == nil {
		r.throttled, r.unused = make([][escraWindow]float64, n), make([][escraWindow]float64, n)
		r.seen, r.silent = make([]int, n), make([]int, n)
		fill(quotas, fair)
	}
	r.given = sum(quotas)
	for i, l := range looks {
		unused, set := math.Max(0, quotas[i]-l.Used), quotas[i]
		at := r.seen[i] % escraWindow
		r.throttled[i][at], r.unused[i][at] = float64(l.Throttled), unused
		r.seen[i]++
		switch was := r.silent[i]; {
		case l.Used <= 0:
			if r.silent[i]++; r.silent[i]%escraSilent == 0 {
				set = math.Min(set, escraStep)
			}
		case was > escraSilent:
			r.silent[i] = 0
			set = math.Max(set, math.Min(r.Pool-r.given, escraRevived))
		default:
			r.silent[i] = 0
			set = r.next(i, quotas[i], fair, unused)
		}
		if set != quotas[i] { // what was seen is forgotten at every change
			r.throttled[i], r.unused[i], r.seen[i] = [escraWindow]float64{}, [escraWindow]float64{}, 0
			r.given += set - quotas[i]
			quotas[i] = set
		}
	}
}

// next is the first rule that fits.
func (r *Escra) next(i int, q, fair, unused float64) float64 {
	thr, idle, free := mean(r.throttled[i][:]), mean(r.unused[i][:]), r.Pool-r.given
	switch {
	case free < 0 && q > fair: // overdrawn
		back := (q/fair - 1) * (q - fair)
		if q > escraTwice*fair {
			back = (q/fair - 1) * escraStep
		}
		return math.Max(fair, q-back)
	case q < fair && thr > escraMuch:
		lacks := fair - q
		if lacks >= escraStep*escraHalf {
			lacks *= 1 - q/fair
		}
		return q + lacks // nothing free: overdrawn
	case thr >= escraAny && free > 0:
		return q + math.Min(free, escraGain*thr*escraStep)
	case unused > escraIdle*q && q > escraStep:
		return math.Max(escraStep, escraKept*q)
	case idle > escraSmall && q > escraStep:
		return math.Max(escraStep, q-escraSmall)
	}
	return q
}

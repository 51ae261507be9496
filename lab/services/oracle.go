package services

import (
	"math"

	"github.com/trimtab/trimtab"
)

// oracle begins the names of rules that know all costs and arrivals, and serve an objective.
const oracle = "oracle:"

// told has weights that were decided beforehand, for each second.
type told [][]float64

func (told) shares() bool { return true }

func (w told) second(t float64, qs []*queue, _ [][]answer) {
	now := w[min(int(t), len(w)-1)]
	pool, sum := map[int]float64{}, map[int]float64{} // by host
	for i, q := range qs {
		pool[q.Host], sum[q.Host] = pool[q.Host]+q.quota, sum[q.Host]+now[i]
	}
	for i, q := range qs {
		q.quota = pool[q.Host] * now[i] / sum[q.Host]
	}
}

// Oracle returns the weights of each service in each second, below one quota of the pool's
// size, that serve an objective of [Objectives] best, for one who knows what comes and what it
// costs. A run is cut where an overload begins. In each stretch, from the state in which the one
// before left the queues, it plays every way to share:
//
//	equal weights; weights in proportion to the work that comes; each order of the services,
//	one before the other by weight, with and without the last one held back; all but one in
//	proportion, and that one held back (weight 0)
//
// or, of several hosts, equal weights and each order on each of them, and takes the one whose stretch is worth most. Among these ways and cuts it is exact, by the
// queues of this package; somebody who decides anew within an overload might do better.
func Oracle(s *Scenario, coming [][]Request, objective string) ([][]float64, error) {
	if _, err := (Welfare{}).Of(objective); err != nil {
		return nil, err
	}
	tried, entitled := ways(s, coming), Entitled(s, coming)
	at := begin(s, coming)
	var out [][]float64
	cuts := append(s.overloads(), s.Seconds)
	for from, k := 0, 0; from < s.Seconds; k++ {
		var best *state
		var weights [][]float64
		highest := math.Inf(-1)
		for _, way := range tried {
			next := at.clone()
			w := next.play(way, from, cuts[k])
			if v, _ := Judge(utilities(s, next.windows(s)), entitled).Of(objective); v > highest+1e-9 {
				best, weights, highest = next, w, v
			}
		}
		at, from, out = best, cuts[k], append(out, weights...)
	}
	return out, nil
}

// overloads returns the seconds in which the services begin to ask for more than the pool,
// but the first second.
func (s *Scenario) overloads() (out []int) {
	over := s.need(0) > s.Pool
	for t := 1; t < s.Seconds; t++ {
		now := s.need(float64(t)) > s.Pool
		if now && !over {
			out = append(out, t)
		}
		over = now
	}
	return out
}

// need is what all ask for at t, in cores.
func (s *Scenario) need(t float64) (sum float64) {
	for i := range s.Services {
		v := &s.Services[i]
		sum += v.Load(t) * v.costAt(t)
	}
	return sum
}

// Weights of those that are served first, next, and so on.
func rank(k int) float64 { return math.Pow(0.01, float64(k)) }

// ways are those to share that an oracle tries.
func ways(s *Scenario, coming [][]Request) (out []func(second int) []float64) {
	if s.Places != nil {
		return s.waysOfHosts()
	}
	n := len(s.Services)
	need := needs(s, coming)
	equal := make([]float64, n)
	for i := range equal {
		equal[i] = 1
	}
	out = append(out, func(int) []float64 { return equal }, func(second int) []float64 { return need[second] })
	for _, w := range ranked(n) {
		out = append(out, func(int) []float64 { return w })
	}
	for last := range n {
		if n < 3 {
			break // an order says it
		}
		out = append(out, func(second int) []float64 {
			w := append([]float64(nil), need[second]...)
			w[last] = 0
			return w
		})
	}
	return out
}

// ranked are the weights of each order of n, one before the other, with and without the last one
// held back.
func ranked(n int) (out [][]float64) {
	for _, order := range orders(n) {
		w := make([]float64, n)
		for k, i := range order {
			w[i] = rank(k)
		}
		if out = append(out, w); n > 1 {
			held := append([]float64(nil), w...)
			held[order[n-1]] = 0
			out = append(out, held)
		}
	}
	return out
}

// waysOfHosts are those to share on several hosts: each of those of one with each of another.
func (s *Scenario) waysOfHosts() (out []func(second int) []float64) {
	all := [][]float64{make([]float64, len(s.All()))}
	for _, a := range s.aboves() {
		equal := make([]float64, len(a.members))
		for k := range equal {
			equal[k] = 1
		}
		var more [][]float64
		for _, w := range all {
			for _, own := range append([][]float64{equal}, ranked(len(equal))...) {
				next := append([]float64(nil), w...)
				for k, i := range a.members {
					next[i] = own[k]
				}
				more = append(more, next)
			}
		}
		all = more
	}
	for _, w := range all {
		out = append(out, func(int) []float64 { return w })
	}
	return out
}

// around is over how many seconds before and after needs are averaged.
const around = 2

// needs are the parts of the work that comes around each second, at least a hundredth.
func needs(s *Scenario, coming [][]Request) (out [][]float64) {
	work := make([][]float64, s.Seconds)
	for t := range work {
		work[t] = make([]float64, len(coming))
	}
	for i := range coming {
		for _, r := range coming[i] {
			work[min(int(r.At), s.Seconds-1)][i] += r.Work
		}
	}
	for t := range work {
		sum, each := 0.0, make([]float64, len(coming))
		for k := max(0, t-around); k <= min(s.Seconds-1, t+around); k++ {
			for i, v := range work[k] {
				each[i], sum = each[i]+v, sum+v
			}
		}
		for i := range each {
			each[i] = max(rank(1), each[i]/max(sum, 1e-9))
		}
		out = append(out, each)
	}
	return out
}

// orders returns all orders of 0 to n-1.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, rest := range orders(n - 1) {
		for at := range n {
			o := append([]int(nil), rest[:at]...)
			out = append(out, append(append(o, n-1), rest[at:]...))
		}
	}
	return out
}

// Welfare is what a run is worth by each objective: the mean over windows of 5 s of the mean
// utility (social), the least (egalitarian), their geometric mean (nash), and the least ratio of
// a utility to that with the entitlement alone, at most 1 (njc). A utility is
//
//	u = min(1, share in time / the share that the SLO asks for)
//
// Source: Cilantro (OSDI'23), section 4.1, for social, egalitarian and njc; J. Nash, "The
// bargaining problem" (1950), for the product.
type Welfare struct {
	NJC         float64 `json:"njc"`
	Egalitarian float64 `json:"egalitarian"`
	Social      float64 `json:"social"`
	Nash        float64 `json:"nash"`
}

// Objectives are those that [Oracle] and [Welfare] know.
func Objectives() []string { return []string{"njc", "egalitarian", "social", "nash"} }

// Of returns the worth by one objective.
func (w Welfare) Of(objective string) (float64, error) {
	switch objective {
	case "njc":
		return w.NJC, nil
	case "egalitarian":
		return w.Egalitarian, nil
	case "social":
		return w.Social, nil
	case "nash":
		return w.Nash, nil
	}
	return 0, trimtab.Invalidf("objective %.40q: want njc, egalitarian, social or nash", objective)
}

// Judge says what utilities of each service in each window are worth, where those with the
// entitlement alone are known; NaN: nobody asked.
func Judge(utility, entitled [][]float64) (w Welfare) {
	windows := 0.0
	for k := range utility[0] {
		sum, least, product, njc, n := 0.0, 1.0, 1.0, 1.0, 0.0
		for i := range utility {
			u := utility[i][k]
			if math.IsNaN(u) {
				continue
			}
			sum, least, product, n = sum+u, min(least, u), product*u, n+1
			if e := entitled[i][k]; e > 0 { // not where it is NaN
				njc = min(njc, u/e)
			}
		}
		if n == 0 {
			continue
		}
		windows++
		w.Social, w.Egalitarian = w.Social+sum/n, w.Egalitarian+least
		w.Nash, w.NJC = w.Nash+math.Pow(product, 1/n), w.NJC+njc
	}
	if windows > 0 {
		w.Social, w.Egalitarian, w.Nash, w.NJC = w.Social/windows, w.Egalitarian/windows, w.Nash/windows, w.NJC/windows
	}
	return w
}

// utilities are those of shares in time.
func utilities(s *Scenario, windows [][]float64) (out [][]float64) {
	for i := range windows {
		u := make([]float64, len(windows[i]))
		for k, v := range windows[i] {
			u[k] = v / s.Services[i].Fraction
			if u[k] > 1 {
				u[k] = 1
			}
		}
		out = append(out, u)
	}
	return out
}

// Entitled has the utility of each service in each window of 5 s where its equal part of the
// pool is all that it has, with a gate before it where the scenario has them.
func Entitled(s *Scenario, coming [][]Request) [][]float64 {
	at := begin(s, coming)
	if s.Gated {
		_ = at.stand(Gate) // there is one of that name
	}
	for k := range s.Seconds * int(1/step) {
		at.advance(false, float64(k)*step, k%steps)
	}
	return utilities(s, at.windows(s))
}

package colocate

import "math"

// fullest is the utilisation above which the formula of the stationary queue is
// not used: what comes beyond is a backlog that carries over.
const fullest = 0.98

// station is a component in one period: what the two random parts of a sojourn
// time are, service and waiting, and pauses.
type station struct {
	// mean service time under interference, s; floor is added to it.
	mean, floor float64
	// A request waits with probability exp(logWait), then exponentially with
	// mean wait; behind is what a backlog adds.
	logWait, wait, behind float64
	// A request meets a pause with probability exp(logStall), mean pause.
	logStall, pause float64
	// busy is the utilisation without the backlog.
	busy float64
}

// erlangC is the probability that a request of M/M/k waits, with a = λ/μ < k:
//
//	B(0) = 1,  B(k) = a B(k−1) / (k + a B(k−1)),  C = B / (1 − ρ(1 − B))
func erlangC(k int, a float64) float64 {
	b := 1.0
	for i := 1; i <= k; i++ {
		b = a * b / (float64(i) + a*b)
	}
	rho := a / float64(k)
	return b / (1 - rho*(1-b))
}

// queue sets waiting for λ visits/s, by Allen and Cunneen for M/G/k:
//
//	W = C(k, λS)/(k/S − λ) · (1 + cv²)/2,   given that it waits: exponential
//
// backlog is the number of visits left over from before; the new one is returned
// after a period.
func (s *station) queue(rate, cv float64, servers int, backlog float64) float64 {
	k := float64(servers)
	offered := rate * s.mean
	s.busy = offered / k
	a := math.Min(offered, fullest*k)
	c := erlangC(servers, a)
	s.logWait = math.Log(math.Max(c, 1e-300))
	s.wait = s.mean / (k - a) * (1 + cv*cv) / 2
	after := math.Max(0, backlog+(rate-k/s.mean)*PeriodSeconds)
	s.behind = (backlog + after) / 2 * s.mean / k
	return after
}

// sojourn is the mean time in the station, s.
func (s *station) sojourn() float64 {
	return s.floor + s.mean + math.Exp(s.logWait)*s.wait + s.behind + s.stalled()
}

func (s *station) stalled() float64 {
	if s.pause == 0 {
		return 0
	}
	return math.Exp(s.logStall) * s.pause
}

// variance of the time in the station: of the service, of the wait and of the
// pause; what is exponential with mean m with probability p has m² p (2 − p).
func (s *station) variance(cv float64) float64 {
	p := math.Exp(s.logWait)
	v := s.mean*s.mean*cv*cv + s.wait*s.wait*p*(2-p)
	if s.pause > 0 {
		p = math.Exp(s.logStall)
		v += s.pause * s.pause * p * (2 - p)
	}
	return v
}

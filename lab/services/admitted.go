package services

// Admission is what came of the requests of an overload, where something before the services may
// refuse them. Shares are of the requests that came while more was wanted than the pool has, or, where
// that never was, of all.
type Admission struct {
	// Goodput is the work of the requests in time over what the pool could do, at their mean cost.
	Goodput float64
	// InTime and Refused are the shares of each class of all services, in order of [Classes].
	InTime, Refused [3]float64
	// Services are the shares in time of each service, RefusedOf the refused ones.
	Services, RefusedOf []float64
	// First is the time from the begin of the first overload until a request is refused, in seconds;
	// < 0: none was. Before and After are the shares refused while the needs fitted: up to the first
	// overload, and from 5 s after an overload.
	First, Before, After float64
}

// calmed is how many seconds after an overload no request should be refused any more.
const calmed = 5

// part is a share of some requests.
type part struct{ of, all float64 }

func (p *part) add(in bool) {
	if p.all++; in {
		p.of++
	}
}

// share is 0 without requests.
func (p *part) share() float64 { return p.of / max(1, p.all) }

// phase is a part of a run: needs fit and always did, they do not, they did not a moment ago, they fit
// again.
type phase int

const (
	calm phase = iota
	overloaded
	settling
	recovered
)

// phases has the phase of each second, and the first second of an overload; all are of one that begins
// with the run where needs always fit.
func (s *Scenario) phases() (of []phase, first int) {
	of, first = make([]phase, s.Seconds), -1
	last := 0
	for t := range of {
		switch over := s.need(float64(t)) > s.Pool; {
		case over:
			if of[t], last = overloaded, t; first < 0 {
				first = t
			}
		case first < 0:
		case t-last <= calmed:
			of[t] = settling
		default:
			of[t] = recovered
		}
	}
	if first < 0 {
		for t := range of {
			of[t] = overloaded
		}
		first = 0
	}
	return of, first
}

// Admitted says what came of the requests of a run.
func (s *Scenario) Admitted(r *Result) (out Admission) {
	of, first := s.phases()
	var in, refused [3]part
	var fits [recovered + 1]part
	work, seconds := 0.0, 0.0
	for _, p := range of {
		if p == overloaded {
			seconds++
		}
	}
	out.First = -1
	for i := range s.Services {
		v := &s.Services[i]
		var mine, lost part
		for _, a := range r.answers[i] {
			p, met := of[int(a.at)], a.met(v.Latency)
			if fits[p].add(a.refused); p != overloaded {
				continue
			}
			mine.add(met)
			lost.add(a.refused)
			in[a.class].add(met)
			refused[a.class].add(a.refused)
			if met {
				work += v.costAt(a.at)
			}
			if late := a.end - float64(first); a.refused && (out.First < 0 || late < out.First) {
				out.First = late
			}
		}
		out.Services, out.RefusedOf = append(out.Services, mine.share()), append(out.RefusedOf, lost.share())
	}
	for k := range in {
		out.InTime[k], out.Refused[k] = in[k].share(), refused[k].share()
	}
	out.Goodput, out.Before, out.After = work/(s.Pool*seconds), fits[calm].share(), fits[recovered].share()
	return out
}

// costAt is the mean work of a request that comes at t, in core-seconds.
func (s *Service) costAt(t float64) float64 {
	if s.Dearer == nil {
		return s.Cost
	}
	return s.Cost * s.Dearer(t)
}

package view

import (
	"maps"
	"math"
	"slices"
	"time"
)

// maxClasses bounds the classes of a workload's refused requests that its history tells apart.
// Those beyond it count as otherClasses.
const (
	maxClasses   = 17
	otherClasses = "other"
)

// refusals are requests per second that gates refused, by class.
type refusals [maxClasses]float32

// refusals returns the refused requests of a report; nil: there are none.
func (h *series) refusals(byClass map[string]float64) *refusals {
	var out *refusals
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		v := byClass[class]
		if !(v > 0) {
			continue
		}
		if out == nil {
			out = new(refusals)
		}
		out[h.class(class)] += float32(min(v, math.MaxFloat32/(2*maxClasses)))
	}
	return out
}

// class returns the index of a class, and adds the class if it is new.
func (h *series) class(name string) int {
	i := slices.Index(h.classes, name)
	if i < 0 && len(h.classes) == maxClasses-1 {
		name = otherClasses
	}
	if i < 0 && len(h.classes) < maxClasses {
		h.classes = append(h.classes, name)
	}
	if i < 0 {
		i = len(h.classes) - 1
	}
	return i
}

// known reports whether it is known how many requests a point had, and how many were refused.
func (p *point) known() bool { return p.refused != nil || !isMissing(p.v[colLoad]) }

// meanRefused returns the mean of the points of which refused requests are known.
func meanRefused(points []point) *refusals {
	var sum *[maxClasses]float64
	n := 0.0
	for i := range points {
		p := &points[i]
		if !p.known() {
			continue
		}
		n += float64(p.many)
		if p.refused == nil {
			continue
		}
		if sum == nil {
			sum = new([maxClasses]float64)
		}
		for c, v := range p.refused {
			sum[c] += float64(v) * float64(p.many)
		}
	}
	if sum == nil {
		return nil
	}
	out := new(refusals)
	for c, v := range sum {
		out[c] = float32(v / n)
	}
	return out
}

// began is the time of the oldest point of this process, in milliseconds since 1970: points from
// before are taken from decisions, which do not have the refused requests.
func (h *series) began() int64 {
	for i := levels - 1; i >= 0; i-- {
		if l := h.levels[i]; len(l) > 0 {
			return l[0].at
		}
	}
	return math.MaxInt64
}

// refusedBy returns the columns of refused requests, by class.
func (h *series) refusedBy(points []point) map[string][]*float64 {
	if len(h.classes) == 0 {
		return nil
	}
	out, began := map[string][]*float64{}, h.began()
	for c, class := range h.classes {
		column := make([]*float64, len(points))
		for i := range points {
			switch p := &points[i]; {
			case p.at < began || !p.known():
			case p.refused == nil:
				column[i] = new(float64)
			default:
				column[i] = number(p.refused[c])
			}
		}
		out[class] = column
	}
	return out
}

// Requests counts the requests to a workload, over the time in which load and refused requests are
// known. What is refused is not in time:
//
//	of all       in time / (answered + refused)
//	of answered  in time / answered
type Requests struct {
	// Refused counts those that gates refused, by class.
	Refused map[string]float64 `json:"refused"`
	// Came, Answered and InTime count the requests of the time in which it is known how many were
	// in time. Answered is Came less the refused requests.
	Came     float64 `json:"came"`
	Answered float64 `json:"answered"`
	InTime   float64 `json:"in_time"`
	// OfAll and OfAnswered are InTime over Came and over Answered; nil: not known.
	OfAll      *float64 `json:"in_time_of_all,omitempty"`
	OfAnswered *float64 `json:"in_time_of_answered,omitempty"`
}

// requests counts the requests of spans; nil: none was refused in the time that is kept. since is
// from when on refused requests are known.
func (s *state) requests(spans []stretch) (out *Requests, since time.Time) {
	if len(s.series.classes) == 0 {
		return nil, since
	}
	began, counted := s.series.began(), s.Share
	if e := s.estimate.Value; e != nil {
		if in := input(e.Inputs, "performance"); in != nil && in.Source != "spans" {
			counted = false // what was not passed on is in spans alone
		}
	}
	out = &Requests{Refused: map[string]float64{}}
	for i := range spans {
		p := &spans[i]
		if p.at < began || !p.known() {
			continue
		}
		if since.IsZero() {
			since = p.began()
		}
		refused := 0.0
		if p.refused != nil {
			for c, class := range s.series.classes {
				if n := float64(p.refused[c]) * p.Seconds(); n > 0 {
					out.Refused[class] += n
					refused += n
				}
			}
		}
		load, performance := float64(p.v[colLoad]), float64(p.v[colPerformance])
		if p.starved() {
			performance = 0
		}
		if !counted || math.IsNaN(load) || math.IsNaN(performance) {
			continue
		}
		came := load * p.Seconds()
		out.Came, out.Answered, out.InTime = out.Came+came, out.Answered+max(0, came-refused), out.InTime+came*min(1, performance)
	}
	out.divide()
	return out, since
}

// divide sets the shares in time.
func (r *Requests) divide() {
	r.OfAll, r.OfAnswered = nil, nil
	if r.Came > 0 {
		v := min(1, r.InTime/r.Came)
		r.OfAll = &v
	}
	if r.Answered > 0 {
		v := min(1, r.InTime/r.Answered)
		r.OfAnswered = &v
	}
}

// add adds the requests of another workload.
func (r *Requests) add(o *Requests) {
	for class, n := range o.Refused {
		r.Refused[class] += n
	}
	r.Came, r.Answered, r.InTime = r.Came+o.Came, r.Answered+o.Answered, r.InTime+o.InTime
	r.divide()
}

// Total returns how many were refused, of all classes.
func (r *Requests) Total() (sum float64) {
	for _, class := range slices.Sorted(maps.Keys(r.Refused)) {
		sum += r.Refused[class]
	}
	return sum
}

// classes says how many were refused, of which class, the most first.
func (r *Requests) classes() string {
	x := Shed{Classes: shedClasses(r.Refused)}
	return x.classes()
}

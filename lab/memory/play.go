package memory

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// Rule sets a limit from the readings before.
type Rule interface {
	// Take adds a reading, and Limit returns the limit for what comes after it; 0: none yet.
	Take(at time.Time, use float64)
	Limit() float64
	// Overrun says that a reading was above the limit.
	Overrun(at time.Time, limit, use float64)
}

// Rules are the names of the rules, in the order of the table.
func Rules() []string { return []string{"trimtab", "autopilot", "autopilot98", "vpa"} }

// NewRule returns a rule by its name; nil: there is none.
func NewRule(name string) Rule {
	switch name {
	case "trimtab":
		return &ours{}
	case "autopilot":
		return &autopilot{}
	case "autopilot98":
		return &autopilot{quantile: 0.98}
	case "vpa":
		return &vpa{VPA: autoscale.NewVPA()}
	}
	return nil
}

// watched is the time at the beginning in which nothing is counted.
const watched = 24 * time.Hour

// Score is what became of a rule.
type Score struct {
	Rule string `json:"rule"`
	// Readings were judged, Overruns of them above the limit; Limit and Slack are means, in bytes and
	// as a part of the limit.
	Readings int     `json:"readings"`
	Overruns int     `json:"overruns"`
	Limit    float64 `json:"limit_bytes"`
	Slack    float64 `json:"slack"`
	// Leaks are the times at which a growth that does not stop began to be told. Days are those of
	// the series.
	Leaks int     `json:"leaks"`
	Days  float64 `json:"days"`
}

// Add adds the score of another series.
func (s *Score) Add(o Score) {
	n := float64(s.Readings + o.Readings)
	if n == 0 {
		return
	}
	s.Limit = (s.Limit*float64(s.Readings) + o.Limit*float64(o.Readings)) / n
	s.Slack = (s.Slack*float64(s.Readings) + o.Slack*float64(o.Readings)) / n
	s.Readings, s.Overruns, s.Leaks, s.Days = s.Readings+o.Readings, s.Overruns+o.Overruns, s.Leaks+o.Leaks, s.Days+o.Days
}

// Play plays a series under a rule.
func Play(s Series, rule string) Score {
	r, out := NewRule(rule), Score{Rule: rule}
	if r == nil || len(s.Readings) == 0 {
		return out
	}
	begin := s.Readings[0].At
	out.Days = s.Readings[len(s.Readings)-1].At.Sub(begin).Hours() / 24
	leaked := false
	for _, x := range s.Readings {
		limit := r.Limit()
		if limit > 0 && x.At.Sub(begin) >= watched {
			out.Readings++
			out.Limit += limit
			out.Slack += (limit - x.Bytes) / limit
			if x.Bytes > limit {
				out.Overruns++
				r.Overrun(x.At, limit, x.Bytes)
			}
		}
		r.Take(x.At, x.Bytes)
		if o, ok := r.(*ours); ok {
			now := o.Growth(whole) != nil
			if now && !leaked {
				out.Leaks++
			}
			leaked = now
		}
	}
	if n := float64(out.Readings); n > 0 {
		out.Limit /= n
		out.Slack /= n
	}
	return out
}

// ours is the learner of production.
type ours struct {
	workingset.Learner
	at time.Time
}

func (o *ours) Take(at time.Time, use float64) { o.at = at; o.Learner.Take(at, use) }

func (o *ours) Limit() float64 {
	n, ok := o.Need(o.at)
	if !ok {
		return 0
	}
	return n.Limit * (1 + workingset.Margin)
}

// Overrun: the next reading teaches the rise.
func (o *ours) Overrun(time.Time, float64, float64) {}

// autopilot is a moving window recommender of Autopilot.
type autopilot struct {
	quantile float64 // 0: the maximum
	peaks    []slot
	results  []slot
}

// slot is the peak of 5 minutes, or a result at their end.
type slot struct {
	number int64
	value  float64
}

const (
	slotTime = 5 * time.Minute
	halfLife = 48 * time.Hour
	// safe is the margin.
	safe = 1.15
)

// keep drops the slots that are older than a time.
func keep(all []slot, now int64, length time.Duration) []slot {
	for len(all) > 0 && now-all[0].number > int64(length/slotTime) {
		all = all[1:]
	}
	return all
}

func (a *autopilot) Take(at time.Time, use float64) {
	now := at.UnixNano() / int64(slotTime)
	if n := len(a.peaks); n > 0 && a.peaks[n-1].number == now {
		a.peaks[n-1].value = math.Max(a.peaks[n-1].value, use)
		return
	}
	if len(a.peaks) > 0 { // an interval has ended: what do all of them ask for?
		a.results = append(keep(a.results, now, time.Hour), slot{now, a.recommend(now)})
	}
	length := halfLife
	if a.quantile > 0 {
		length = 8 * halfLife
	}
	a.peaks = append(keep(a.peaks, now, length), slot{now, use})
}

func (a *autopilot) recommend(now int64) float64 {
	if a.quantile == 0 {
		most := 0.0
		for _, p := range a.peaks {
			most = math.Max(most, p.value)
		}
		return safe * most
	}
	h := autoscale.NewHistogram(1e7, 1e12)
	for _, p := range a.peaks {
		h.Add(time.Time{}.Add(time.Hour), p.value, math.Exp2(-float64(now-p.number)*float64(slotTime)/float64(halfLife)))
	}
	return safe * h.Quantile(a.quantile)
}

func (a *autopilot) Limit() float64 {
	most := 0.0
	for _, r := range a.results {
		most = math.Max(most, r.value)
	}
	return most
}

// Overrun: the paper names no rule beside the peak itself.
func (a *autopilot) Overrun(time.Time, float64, float64) {}

// vpa is the recommender of a VerticalPodAutoscaler.
type vpa struct {
	*autoscale.VPA
}

func (v *vpa) Take(at time.Time, use float64) {
	v.CPU(at, 1) // without samples of CPU it recommends nothing
	v.Memory(at, use)
}

func (v *vpa) Limit() float64 {
	_, memory, ok := v.Recommend()
	if !ok {
		return 0
	}
	return memory.Target
}

// Overrun counts as a peak, as an OOM does.
func (v *vpa) Overrun(at time.Time, limit, _ float64) {
	v.Memory(at, math.Max(limit*1.2, limit+100<<20))
}

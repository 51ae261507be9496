package colocate

import (
	"fmt"
	"math"
	"time"
)

// standing is the remembered state of a service.
type standing struct {
	// Missing is the time since which its slack or load is missing; zero: it is not.
	Missing time.Time `json:"missing,omitzero"`
	// Acted is when jobs were last stopped or cut: a measurement that began before it causes no
	// other cut.
	Acted time.Time `json:"acted,omitzero"`
	// Over says that its load exceeded the limit, and has not fallen below it by the margin since.
	Over bool `json:"over,omitempty"`
	// Ceilings are the amounts that jobs may have beside it without a wait, by resource.
	Ceilings map[string]ceiling `json:"ceilings,omitempty"`
	// Proven are the amounts that jobs had beside it while growth was allowed, by resource.
	Proven map[string]ceiling `json:"proven,omitempty"`
	// Strikes counts missed SLOs in a row.
	Strikes int `json:"strikes,omitempty"`
	// Load and Slack are smoothed; Spread and Noise are the mean squares of their deviations;
	// Ready is the load that jobs leave capacity for; Last is the last slack; Seen counts the
	// ticks in Slack, Heard those in Noise.
	Load   float64 `json:"load,omitempty"`
	Spread float64 `json:"spread,omitempty"`
	Ready  float64 `json:"ready,omitempty"`
	Slack  float64 `json:"slack,omitempty"`
	Noise  float64 `json:"noise,omitempty"`
	Last   float64 `json:"last,omitempty"`
	Seen   int     `json:"seen,omitempty"`
	Heard  int     `json:"heard,omitempty"`
	// Care is the number of standard deviations that misses have added to the margin of growth.
	Care float64 `json:"care,omitempty"`
	// Missed is the moving average of the share of ticks that missed the SLO.
	Missed float64 `json:"missed,omitempty"`
	// Blames counts misses that no step explains; Blamed is the time of the last.
	Blames int       `json:"blames,omitempty"`
	Blamed time.Time `json:"blamed,omitzero"`
	// Above counts ticks with slack above the loadlimit.
	Above int `json:"above,omitempty"`
	// Episode says that jobs were stopped or cut for it and it has not been calm since.
	Episode bool `json:"episode,omitempty"`
	// Search finds unknown limits; nil: all are known.
	Search *Search `json:"search,omitempty"`
	seen   bool
	over   bool
}

// margin is the fraction of loadlimit by which the load must be below it before suspended jobs
// resume.
const margin = 0.05

// rule names the rule that decided.
type rule int

const (
	byNothing rule = iota
	bySlack
	byLoad
	byHalf
	byLimit
	byCalm
	byMargin
	byMissing
	byLongMissing
)

// verdict is the result of algorithm 2 for one service, or for all.
type verdict struct {
	verb Verb
	by   string
	rule rule
	// slack and load are NaN if they are missing.
	slack, load float64
	limits      limits
	share       float64
	measured    time.Time
	missing     time.Duration
	// free says that there is no service here; oldest is the time of the oldest measurement.
	free   bool
	oldest time.Time
}

// strictness returns the rank of a verb.
func strictness(v Verb) int {
	switch v {
	case StopBE:
		return 4
	case SuspendBE:
		return 3
	case CutBE:
		return 2
	case DisallowBEGrowth:
		return 1
	}
	return 0
}

// judge returns the verdict of the strictest service, and among equals of that with the largest
// share. It records when jobs were last cut or stopped for that service.
func (p *policy) judge(o *Observation) verdict {
	all := verdict{verb: AllowBEGrowth, free: len(o.Services) == 0, oldest: o.Time}
	for _, s := range p.Services {
		s.seen = false
	}
	ran := ran(o)
	for i := range o.Services {
		s := &o.Services[i]
		st := p.Services[s.Workload]
		if st == nil {
			st = &standing{}
			p.Services[s.Workload] = st
		}
		st.seen = true
		v := p.judgeOne(o, s, st, ran)
		if v.measured.Before(all.oldest) {
			all.oldest = v.measured
		}
		a, b := strictness(v.verb), strictness(all.verb)
		if all.rule == byNothing || a > b || a == b && v.share > all.share {
			v.free, v.oldest = false, all.oldest
			all = v
		}
	}
	for name, s := range p.Services {
		if !s.seen {
			delete(p.Services, name)
		}
	}
	if all.verb == StopBE || all.verb == CutBE {
		p.Services[all.by].Acted = o.Time
		p.Services[all.by].Seen = 0
	}
	return all
}

// ran reports whether a best-effort job runs.
func ran(o *Observation) bool {
	for i := range o.Jobs {
		if o.Jobs[i].State == Running {
			return true
		}
	}
	return false
}

// judgeOne applies algorithm 2 to one service, and handles missing numbers.
func (p *policy) judgeOne(o *Observation, s *Service, st *standing, ran bool) verdict {
	v := verdict{by: s.Workload, slack: known(s.Slack), load: known(s.Load), share: s.Share, measured: o.Time.Add(-max(0, s.Age))}
	if !(v.share >= 0 && v.share <= 1) {
		v.share = 1
	}
	if v.load < 0 {
		v.load = math.NaN()
	}
	old := s.Age < 0 || s.Age > p.MaxAge
	if old {
		v.slack, v.load = math.NaN(), math.NaN()
	}
	st.follow(v.load, v.slack)
	if ran && !math.IsNaN(v.slack) {
		st.spend(v.slack < 0)
	}
	v.limits = p.limitsOf(s, st, &v, ran)
	p.trial(st, &v)
	v.verb, v.rule = p.compare(&v, st, s.Window)
	if !math.IsNaN(v.slack) && !math.IsNaN(v.load) {
		st.Missing = time.Time{}
		return v
	}
	if st.Missing.IsZero() || st.Missing.After(o.Time) {
		st.Missing = o.Time
		if old && s.Age > 0 {
			st.Missing = v.measured.Add(p.MaxAge)
		}
	}
	v.missing = o.Time.Sub(st.Missing)
	switch {
	case v.missing > p.MaxAge && !s.Idle && strictness(v.verb) < strictness(SuspendBE):
		v.verb, v.rule = SuspendBE, byLongMissing
	case strictness(v.verb) < strictness(DisallowBEGrowth):
		v.verb, v.rule = DisallowBEGrowth, byMissing
	}
	return v
}

// compare is algorithm 2: the first rule that is true decides. Missing values do not delay
// reductions.
func (p *policy) compare(v *verdict, st *standing, window time.Duration) (Verb, rule) {
	fresh := v.measured.Add(-max(0, window)).After(st.Acted)
	if v.load > v.limits.load {
		st.Over = true
	} else if v.load < v.limits.load*(1-margin) {
		st.Over = false
	}
	switch {
	case v.slack < 0 && fresh && p.deflates:
		return CutBE, bySlack
	case v.slack < 0 && fresh:
		return StopBE, bySlack
	case v.load > v.limits.load && !(p.apart && st.stands()):
		return SuspendBE, byLoad
	case v.slack < v.limits.slack/2 && fresh && !p.deflates:
		return CutBE, byHalf
	case v.slack < v.limits.slack:
		return DisallowBEGrowth, byLimit
	case st.Over && !(p.apart && st.stands()):
		return DisallowBEGrowth, byMargin
	}
	return AllowBEGrowth, byCalm
}

// limitsOf returns the limits of a service: those of the policy, of its Servpod, of the search, or
// the least.
func (p *policy) limitsOf(s *Service, st *standing, v *verdict, ran bool) limits {
	if p.rules.limits != nil {
		return *p.rules.limits
	}
	l := limits{known(s.LoadLimit), known(s.SlackLimit)}
	if l.slack >= 1 {
		l.slack = leastSlack // the start of a search: no growth
	}
	if l.load >= 0 && l.slack >= 0 {
		st.Search = nil
		return l
	}
	if p.spares {
		st.Search = nil
		return l.orLeast()
	}
	if st.Search == nil {
		st.Search = NewSearch(v.share)
	}
	if !math.IsNaN(v.slack) && !math.IsNaN(v.load) {
		st.Search.Observe(p.Search, Evidence{Held: v.slack >= 0, Ran: ran, Slack: v.slack, Load: v.load, Share: v.share})
	}
	if !(l.load >= 0) {
		l.load = st.Search.LoadLimit
	}
	if !(l.slack >= 0) {
		l.slack = st.Search.SlackLimit
	}
	return l
}

// orLeast replaces unknown limits: the slacklimit by the least, since growth keeps its own margin,
// and the loadlimit by the value from which a search starts.
func (l limits) orLeast() limits {
	if !(l.load >= 0) {
		l.load = firstLoad
	}
	if !(l.slack >= 0) {
		l.slack = leastSlack
	}
	return l
}

// known returns a number, NaN if it is missing.
func known(v *float64) float64 {
	if v == nil || !finite(*v) {
		return math.NaN()
	}
	return *v
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// why describes the decision for people.
func (v *verdict) why(forced bool) string {
	text := v.sentence()
	if forced {
		text += "; best-effort jobs had more than there is, or than was stood at this load"
	}
	return text
}

func (v *verdict) sentence() string {
	switch v.rule {
	case bySlack:
		return fmt.Sprintf("%s misses its SLO: its slack is %.3g", v.by, v.slack)
	case byLoad:
		return fmt.Sprintf("the load of %s is %.3g, over its limit of %.3g", v.by, v.load, v.limits.load)
	case byHalf:
		return fmt.Sprintf("the slack of %s is %.3g, below half its limit of %.3g", v.by, v.slack, v.limits.slack)
	case byLimit:
		return fmt.Sprintf("the slack of %s is %.3g, below its limit of %.3g", v.by, v.slack, v.limits.slack)
	case byMargin:
		return fmt.Sprintf("the load of %s is %.3g: jobs resume below %.3g", v.by, v.load, v.limits.load*(1-margin))
	case byMissing:
		return fmt.Sprintf("%s has told no %s", v.by, v.missingText())
	case byLongMissing:
		return fmt.Sprintf("%s has told no %s for %v", v.by, v.missingText(), v.missing.Round(time.Second))
	case byCalm:
		return fmt.Sprintf("the slack of %s is %.3g, its limit %.3g, and its load %.3g, the limit %.3g", v.by, v.slack, v.limits.slack, v.load, v.limits.load)
	}
	return "no latency-critical service runs here"
}

func (v *verdict) missingText() string {
	switch {
	case !math.IsNaN(v.load):
		return "slack"
	case !math.IsNaN(v.slack):
		return "load"
	}
	return "slack and no load"
}

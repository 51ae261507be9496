package colocation

import (
	"cmp"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
)

// MaxServpods bounds the Servpods of one workload, MaxGrowthParts the components
// that the growth of a tail is ascribed to, and MaxCalls the calls between them.
const (
	MaxServpods    = 1024
	MaxGrowthParts = 16
	MaxCalls       = trimtab.MaxSketchCalls
)

// Contributions is the state of a latency-critical workload's tail latency, and what each Servpod
// adds to it (Rhythm, TOCS'23, equations (2) to (6)).
type Contributions struct {
	Workload string    `json:"workload"`
	Time     time.Time `json:"time"`
	// Window is the length of the time that Load, Tail and Requests cover.
	Window trimtab.Seconds `json:"window_s"`
	// Load is requests per second.
	Load float64 `json:"load"`
	// MaxLoad is the most seen, or what was declared; 0: not known.
	MaxLoad float64 `json:"max_load,omitempty"`
	// SLO is the threshold of the SLO, and Quantile its fraction.
	SLO      trimtab.Seconds `json:"slo_s,omitempty"`
	Quantile float64         `json:"quantile,omitempty"`
	// Tail is the latency at Quantile, or with too few requests the slowest one's; nil: unknown.
	Tail     *float64 `json:"tail_s,omitempty"`
	Requests float64  `json:"requests"`
	// Levels is how many load levels have been seen. Contribution and its factors are 0 while
	// there are fewer than two.
	Levels int `json:"levels"`
	// Servpods are in order of component and host, at most MaxServpods.
	Servpods []Servpod `json:"servpods,omitempty"`
	// Growth compares the tail with the time before; nil: too few requests in either.
	Growth *TailGrowth `json:"growth,omitempty"`
	// Calls are the calls between components in the newest seconds of traffic, in order of caller
	// and callee, at most MaxCalls; none: unknown.
	Calls []Call `json:"calls,omitempty"`
}

// Call says that one component calls another, or itself.
type Call struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Rate is calls per second.
	Rate float64 `json:"rate"`
}

// Servpod is all of a component that runs on one host.
type Servpod struct {
	Component string `json:"component"`
	// Host is k8s.node.name or host.name of its spans; "": they have neither.
	Host string `json:"host,omitempty"`
	// Peer: it sends no spans, and is named by the spans of its callers. Its host is unknown, and
	// it has no limits.
	Peer bool `json:"peer,omitempty"`
	// Sojourn is its mean time per request over all load levels, in seconds.
	Sojourn float64 `json:"sojourn_s"`
	// Weight is P (2), Correlation is rho (3), Variation is V (4), and
	// Contribution is C (5)(6).
	Weight       float64 `json:"weight"`
	Correlation  float64 `json:"correlation"`
	Variation    float64 `json:"variation"`
	Contribution float64 `json:"contribution"`
	// LoadLimit is a share of MaxLoad: above it no best-effort job runs beside the Servpod; nil:
	// unknown.
	LoadLimit *float64 `json:"load_limit,omitempty"`
	// SlackLimit is the slack below which best-effort jobs do not grow; nil: not
	// known. The slack is (SLO - Tail) / SLO.
	SlackLimit *float64 `json:"slack_limit,omitempty"`
	// Origin says where LoadLimit is from, SlackOrigin where SlackLimit is.
	Origin      ThresholdOrigin `json:"origin,omitempty"`
	SlackOrigin ThresholdOrigin `json:"slack_origin,omitempty"`
}

// ThresholdOrigin says where a threshold of a Servpod is from.
type ThresholdOrigin = string

// The origins. "" is that of an unknown threshold.
const (
	FromHistory ThresholdOrigin = "history"
	FromSearch  ThresholdOrigin = "search"
	Declared    ThresholdOrigin = "declared"
)

// TailGrowth says whether the tail grew, and in which components.
type TailGrowth struct {
	// Changed: it did, by more than chance and load explain.
	Changed bool `json:"changed"`
	// Quantile is the one with the clearest growth, Before and After its values, in seconds.
	Quantile float64 `json:"quantile"`
	Before   float64 `json:"before_s"`
	After    float64 `json:"after_s"`
	// Since is when what is compared as After began.
	Since time.Time `json:"since"`
	// Parts are the components in which it grew, the largest first, at most MaxGrowthParts; none
	// without change.
	Parts []GrowthPart `json:"parts,omitempty"`
}

// GrowthPart is one Servpod's part of the growth of the tail.
type GrowthPart struct {
	Component string `json:"component"`
	Host      string `json:"host,omitempty"`
	// Share is its part of the growth, (0, 1].
	Share float64 `json:"share"`
	// Before and After are its mean sojourn times, in seconds.
	Before float64 `json:"before_s"`
	After  float64 `json:"after_s"`
}

// Compare orders Servpods by component and host.
func (s *Servpod) Compare(t *Servpod) int {
	return cmp.Or(cmp.Compare(s.Component, t.Component), cmp.Compare(s.Host, t.Host))
}

// Compare orders calls by caller and callee.
func (c *Call) Compare(d *Call) int {
	return cmp.Or(cmp.Compare(c.From, d.From), cmp.Compare(c.To, d.To))
}

// Slack is (SLO - Tail) / SLO, and false where either is not known.
func (c *Contributions) Slack() (float64, bool) {
	if c.SLO <= 0 || c.Tail == nil {
		return 0, false
	}
	return 1 - *c.Tail/float64(c.SLO), true
}

// Budget is how long one component may delay a request.
type Budget struct {
	Component string
	Time      trimtab.Seconds
}

// Budgets divides what the SLO leaves beyond the mean sojourn times among the components, in
// order of name: if none delays a request for longer, as by its quota, their stalls together stay
// within the SLO. Peers take time, and get none. A component that adds more to the tail gets
// less, in proportion to the step of Rhythm's algorithm 1, 1 - C_i/ΣC. Times are 0 if nothing is
// left; there are none without an SLO or Servpods.
func (c *Contributions) Budgets() []Budget {
	if c.SLO <= 0 || len(c.Servpods) == 0 {
		return nil
	}
	var out []Budget
	var added []float64
	room, all := float64(c.SLO), 0.0
	for i := range c.Servpods { // in order of component
		s := &c.Servpods[i]
		if s.Peer {
			room -= s.Sojourn
			continue
		}
		if len(out) == 0 || out[len(out)-1].Component != s.Component {
			out, added = append(out, Budget{Component: s.Component}), append(added, 0)
		}
		room -= s.Sojourn
		added[len(added)-1] += max(0, s.Contribution)
		all += max(0, s.Contribution)
	}
	n := float64(len(out))
	for i := range out {
		part := 1 / n
		if n > 1 && all > 0 {
			part = (1 - added[i]/all) / (n - 1)
		}
		out[i].Time = trimtab.Seconds(max(0, room) * part)
	}
	return out
}

// Kind returns KindContributions.
func (c *Contributions) Kind() trimtab.Kind { return KindContributions }

// Key returns the workload.
func (c *Contributions) Key() string { return c.Workload }

// Validate checks names, order and every number.
func (c *Contributions) Validate() error {
	if err := valid.Named("contributions to workload", c.Workload); err != nil {
		return err
	}
	if c.Time.IsZero() {
		return trimtab.Invalidf("contributions to %s: no time", c.Workload)
	}
	for _, v := range []float64{float64(c.Window), c.Load, c.MaxLoad, float64(c.SLO), c.Requests, float64(c.Levels)} {
		if !valid.IsNonNegative(v) {
			return valid.NonNegative("contributions to "+c.Workload+":", v)
		}
	}
	if !(c.Quantile >= 0 && c.Quantile <= 1) {
		return valid.Fraction("quantile of "+c.Workload, c.Quantile)
	}
	if c.Tail != nil && !valid.IsNonNegative(*c.Tail) {
		return valid.NonNegative("tail of "+c.Workload, *c.Tail)
	}
	// A slack must be a number: no SLO is so short that the quotient overflows.
	if slack, ok := c.Slack(); ok && !valid.IsFinite(slack) {
		return trimtab.Invalidf("contributions to %s: slack %v of an SLO of %v s", c.Workload, slack, float64(c.SLO))
	}
	if len(c.Servpods) > MaxServpods {
		return trimtab.Invalidf("contributions to %s: %d Servpods, limit %d", c.Workload, len(c.Servpods), MaxServpods)
	}
	for i := range c.Servpods {
		if err := c.Servpods[i].validate(c.Workload); err != nil {
			return err
		}
		if i > 0 && c.Servpods[i-1].Compare(&c.Servpods[i]) >= 0 {
			return trimtab.Invalidf("contributions to %s: %.253s on host %.253s given twice, or out of order", c.Workload, c.Servpods[i].Component, c.Servpods[i].Host)
		}
	}
	if c.Growth != nil {
		if err := c.Growth.validate(c.Workload); err != nil {
			return err
		}
	}
	return c.validateCalls()
}

func (c *Contributions) validateCalls() error {
	if len(c.Calls) > MaxCalls {
		return trimtab.Invalidf("contributions to %s: %d calls, limit %d", c.Workload, len(c.Calls), MaxCalls)
	}
	for i := range c.Calls {
		x := &c.Calls[i]
		if x.From == "" || len(x.From) > 253 || x.To == "" || len(x.To) > 253 || i > 0 && c.Calls[i-1].Compare(x) >= 0 {
			return trimtab.Invalidf("contributions to %s: call of %.40q by %.40q: want names of 1 to 253 bytes, each pair once and in order", c.Workload, x.To, x.From)
		}
		if !(x.Rate > 0 && valid.IsFinite(x.Rate)) {
			return trimtab.Invalidf("contributions to %s: %v calls/s of %.253s by %.253s: want a finite number > 0", c.Workload, x.Rate, x.To, x.From)
		}
	}
	return nil
}

func (s *Servpod) validate(workload string) error {
	if err := valid.Component(workload, s.Component, s.Host); err != nil {
		return err
	}
	ok := valid.IsNonNegative(s.Sojourn) && valid.IsNonNegative(s.Variation) && valid.IsFinite(s.Contribution) &&
		s.Weight >= 0 && s.Weight <= 1 && s.Correlation >= -1 && s.Correlation <= 1
	if !ok {
		return trimtab.Invalidf("contribution of %s to %s: sojourn %v s, weight %v, correlation %v, variation %v, contribution %v: want finite numbers, a weight in [0, 1], a correlation in [-1, 1]",
			s.Component, workload, s.Sojourn, s.Weight, s.Correlation, s.Variation, s.Contribution)
	}
	for _, limit := range []*float64{s.LoadLimit, s.SlackLimit} {
		if limit != nil && !(*limit >= 0 && *limit <= 1) {
			return valid.Fraction("threshold of "+s.Component+" of "+workload, *limit)
		}
	}
	for _, origin := range []ThresholdOrigin{s.Origin, s.SlackOrigin} {
		switch origin {
		case "", FromHistory, FromSearch, Declared:
		default:
			return trimtab.Invalidf("threshold of %s of %s: origin %.40q: want %s, %s or %s", s.Component, workload, origin, FromHistory, FromSearch, Declared)
		}
	}
	return nil
}

func (g *TailGrowth) validate(workload string) error {
	if !(valid.IsNonNegative(g.Before) && valid.IsNonNegative(g.After) && g.Quantile >= 0 && g.Quantile <= 1) {
		return trimtab.Invalidf("growth of the tail of %s: quantile %v from %v s to %v s", workload, g.Quantile, g.Before, g.After)
	}
	if len(g.Parts) > MaxGrowthParts {
		return trimtab.Invalidf("growth of the tail of %s: %d parts, limit %d", workload, len(g.Parts), MaxGrowthParts)
	}
	for i := range g.Parts {
		p := &g.Parts[i]
		if err := valid.Component(workload, p.Component, p.Host); err != nil {
			return err
		}
		if !(p.Share > 0 && p.Share <= 1 && valid.IsNonNegative(p.Before) && valid.IsNonNegative(p.After)) {
			return trimtab.Invalidf("growth of the tail of %s: share %v of %s, from %v s to %v s", workload, p.Share, p.Component, p.Before, p.After)
		}
	}
	return nil
}

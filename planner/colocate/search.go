package colocate

import (
	"math"
	"time"
)

// SearchConfig configures the search for limits.
type SearchConfig struct {
	// Window is how long a candidate is tried; 0: 10 min.
	Window time.Duration
	// Budget is the share of ticks with a missed SLO that a candidate, and the whole search, may
	// cost; 0: 0.01.
	Budget float64

	ticks int // length of a window, in ticks
}

func (c SearchConfig) withDefaults(period time.Duration) SearchConfig {
	if c.Window <= 0 {
		c.Window = 10 * time.Minute
	}
	if !(c.Budget > 0 && c.Budget < 1) {
		c.Budget = 0.01
	}
	c.ticks = max(10, int(c.Window/period))
	return c
}

// The bounds of the search.
const (
	// leastStep and greatestStep bound stepSize = 1 − C_i/ΣC. It would be 0 with a single Servpod,
	// and nearly 1 with many, so that one step would end the search. A step is also at most half of
	// the limit.
	leastStep, greatestStep = 0.05, 0.25
	// leastSlack is the smallest slacklimit: that of HAProxy in the paper.
	leastSlack = 0.03
	// firstLoad is where loadlimit starts, greatestLoad its upper bound; near is how close to it
	// the load must be for a tick to count as evidence.
	firstLoad, greatestLoad, leastLoad = 0.85, 0.95, 0.5
	loadStep, loadBack, near           = 0.02, 0.05, 0.05
	// changed is the change of C_i/ΣC after which the search starts again.
	changed = 0.1
	// idle is the fraction of a window after which a candidate that allowed no jobs is passed.
	idle = 10
	// doublings is how often the length of the window doubles, once with each restart.
	doublings = 4
)

// Search is algorithm 1, run online: the limits of one Servpod, and how far they have been tried.
// The candidate is lowered by stepSize each time the SLO held for a window in which jobs ran. When
// the SLO was missed, the last candidate with which it held becomes the slacklimit. If the SLO is
// missed again, or the contribution changes much, the search continues from one step above, with
// windows twice as long.
//
// A window costs at most Budget of its ticks, since the candidate is given up then. While more than
// Budget of all ticks missed the SLO, the candidate stays.
type Search struct {
	// SlackLimit and LoadLimit are in force.
	SlackLimit float64 `json:"slack_limit"`
	LoadLimit  float64 `json:"load_limit"`
	// Good is the last slacklimit under which the SLO held.
	Good float64 `json:"good"`
	// Share is C_i/ΣC when the search began.
	Share float64 `json:"share"`
	// Done says that the SLO was missed with the next candidate, or that there is none.
	Done bool `json:"done,omitempty"`
	// LoadDone says the same of the loadlimit.
	LoadDone bool `json:"load_done,omitempty"`
	// Restarts counts how often the search started again.
	Restarts int `json:"restarts,omitempty"`
	// Window, Load and Total count ticks.
	Window Ticks `json:"window"`
	Load   Ticks `json:"load"`
	Total  Ticks `json:"total"`
}

// Ticks counts all ticks, those on which jobs ran, and those of them on which the SLO was missed.
type Ticks struct {
	All    int `json:"all"`
	Ran    int `json:"ran"`
	Missed int `json:"missed"`
}

func (t *Ticks) add(e *Evidence) {
	t.All++
	if e.Ran {
		t.Ran++
		if !e.Held {
			t.Missed++
		}
	}
}

// Evidence is the observation of one tick.
type Evidence struct {
	// Held says that the SLO was met, Ran that a best-effort job ran.
	Held, Ran          bool
	Slack, Load, Share float64
}

// NewSearch returns a new search, whose first slacklimit of 1 allows no growth.
func NewSearch(share float64) *Search {
	return &Search{SlackLimit: 1, Good: 1, LoadLimit: firstLoad, Share: share}
}

// step returns stepSize, bounded, for a step from a limit.
func (s *Search) step(from float64) float64 {
	return math.Min(math.Max(leastStep, math.Min(greatestStep, 1-s.Share)), from/2)
}

// Observe updates the search with one tick.
func (s *Search) Observe(c SearchConfig, e Evidence) {
	c = c.counted()
	if !(math.Abs(e.Share-s.Share) <= changed) {
		s.again(e.Share)
	}
	s.Total.add(&e)
	s.Window.add(&e)
	s.loads(c, &e)
	ticks := c.ticks << min(s.Restarts, doublings)
	allowed := int(c.Budget * float64(ticks))
	switch {
	case s.Window.Missed > allowed:
		s.missed()
	case s.Window.Ran >= ticks, !s.Done && s.Window.Ran == 0 && s.Window.All >= ticks/idle && e.Slack < s.SlackLimit:
		s.held(c)
	}
}

// counted sets the defaults of a configuration that did not pass through New.
func (c SearchConfig) counted() SearchConfig {
	if c.ticks == 0 {
		c = c.withDefaults(2 * time.Second)
	}
	return c
}

// held ends a window in which the SLO held.
func (s *Search) held(c SearchConfig) {
	s.Window = Ticks{}
	s.Good = s.SlackLimit
	if s.Done || float64(s.Total.Missed) > c.Budget*float64(s.Total.All) {
		return
	}
	next := math.Max(leastSlack, s.SlackLimit-s.step(s.SlackLimit))
	s.Done = next >= s.SlackLimit
	s.SlackLimit = next
}

// missed ends a window in which the SLO was missed.
func (s *Search) missed() {
	s.Window = Ticks{}
	if s.Done || s.Good <= s.SlackLimit {
		s.again(s.Share)
		return
	}
	s.SlackLimit, s.Done = s.Good, true
}

// again restarts the search from one step above.
func (s *Search) again(share float64) {
	if !(share >= 0 && share <= 1) {
		share = 1
	}
	s.Share, s.Done, s.LoadDone, s.Window, s.Load = share, false, false, Ticks{}, Ticks{}
	s.SlackLimit = math.Min(1, s.SlackLimit+math.Max(leastStep, math.Min(greatestStep, 1-share)))
	s.Good = s.SlackLimit
	s.Restarts++
}

// loads raises loadlimit after a tenth of a window of ticks on which the load was close to it and
// jobs ran, or after twice as many while they did not run. It lowers it when the SLO was missed
// on too many of these ticks.
func (s *Search) loads(c SearchConfig, e *Evidence) {
	if math.Abs(e.Load-s.LoadLimit) > near || e.Load > s.LoadLimit && e.Ran {
		return
	}
	s.Load.add(e)
	ticks := max(5, c.ticks/10)
	switch {
	case s.Load.Missed > int(c.Budget*float64(ticks)):
		s.LoadLimit, s.LoadDone, s.Load = math.Max(leastLoad, s.LoadLimit-loadBack), true, Ticks{}
	case s.Load.Ran >= ticks, s.Load.All >= 2*ticks:
		s.Load = Ticks{}
		if !s.LoadDone && e.Held && e.Slack >= s.SlackLimit {
			s.LoadLimit = math.Min(greatestLoad, s.LoadLimit+loadStep)
		}
	}
}

package workingset

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// Peaks are kept of the last shorts intervals of length short, and of the last hours hours.
	short, shorts = 5 * time.Minute, 72
	hours         = 8 * 24
	// startup is how long a process counts as starting.
	startup = 10 * time.Minute
	// day is how long a history counts as incomplete, and how long a kill raises the need.
	day = 24 * time.Hour
	// unseen is what an incomplete history adds, as a part of the peak.
	unseen = 0.15
	// A reading below restart times the one before it is taken to be of a new process.
	restart = 0.5
	// enough is the history after which the need is learnt.
	enough = time.Hour
	// asked is how far the need after a kill exceeds the limit in force at the kill, as a part of it, and
	// missed how far it exceeds a limit under which pages were read again.
	asked, missed = 0.2, 0.05
	// reread is the time within which a page that is read again is worth its memory.
	reread = 5 * time.Minute
)

// Margin is the default of how far a limit is above the need, as a part of the need. It is twice the
// least margin with which no recording of docs/lab.md exceeds its limit (3 to 4%): trimtab-lab sim
// memory.
const Margin = 0.07

// windows are the lengths of the windows, the shortest first.
func windows() [4]time.Duration {
	return [4]time.Duration{time.Hour, shorts * short, day, hours * time.Hour}
}

// span has the highest reading in an interval; Number counts intervals since the Unix epoch.
type span struct {
	Number int64   `json:"n"`
	Most   float64 `json:"most"`
}

// hour also has, for each window, the largest excess of a reading over the base before it.
type hour struct {
	span
	Over [4]float64 `json:"over"`
}

// Learner learns from the readings of one instance. The zero Learner has seen nothing.
type Learner struct {
	// First and Last are the times of the first and the latest reading, Use is the latest reading.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Use   float64   `json:"use"`
	// Started is when the current process started; zero: before the first reading. StartPeak is the
	// highest reading of a starting process, StartAt its time.
	Started   time.Time `json:"started"`
	StartPeak float64   `json:"start_peak,omitempty"`
	StartAt   time.Time `json:"start_at"`
	// Floor is the least need after a kill, or after pages were read again, until FloorEnds. Rise is the
	// largest rise within a minute.
	Floor     float64   `json:"floor,omitempty"`
	FloorEnds time.Time `json:"floor_ends"`
	// KilledAt is when the kernel last killed a process for lack of memory; zero: never.
	KilledAt time.Time `json:"killed_at"`
	Rise     float64   `json:"rise,omitempty"`
	// Leaks is since when its use has grown without an end, as the caller said; zero: it does not.
	Leaks time.Time `json:"leaks,omitzero"`
	// The oldest interval comes first.
	Shorts []span   `json:"shorts,omitempty"`
	Hours  []hour   `json:"hours,omitempty"`
	Scales [5]scale `json:"scales"`
}

// Need is how much memory an instance needs.
type Need struct {
	// Limit is the upper bound of the use, in bytes, and Peak the base in it.
	Limit, Peak float64
	// Highest is the highest use of the last 8 days, in the hour that began at HighestAt; zero: there is
	// no complete start yet.
	Highest   float64
	HighestAt time.Time
	// Window is the window whose bound is the least. History is the time between the first and the
	// latest reading.
	Window, History time.Duration
	// Hours is n of the bound: the next hour exceeds it with a probability of at most 1/(n+1).
	Hours int
	// Learnt: the history suffices, and no start or growth is under way.
	Learnt bool
	// Why says why it is not learnt; "": it is.
	Why string
}

// Take adds a reading, in bytes. It ignores one that is invalid, or not later than the one before.
func (l *Learner) Take(at time.Time, use float64) {
	if !(use >= 0 && use <= math.MaxFloat64) || !at.After(l.Last) {
		return
	}
	since := at.Sub(l.Last)
	if l.First.IsZero() {
		l.First = at
	} else if use < restart*l.Use {
		l.Start(at)
	}
	before := *l
	l.Last, l.Use = at, use
	if l.starting(at) {
		if use >= l.StartPeak || at.Sub(l.StartAt) > hours*time.Hour {
			l.StartPeak, l.StartAt = use, at
		}
		return
	}
	for i, length := range lengths() {
		l.Scales[i].take(at, length, use)
	}
	var over [4]float64
	if known := len(before.Hours) > 0 && since <= short; known { // a rise over a gap says nothing of the next one
		for i := range over {
			over[i] = use - before.base(i, at)
		}
		if since <= time.Minute {
			l.Rise = math.Max(l.Rise, use-before.Use)
		}
	}
	l.Shorts = enter(l.Shorts, span{number(at, short), use}, shorts)
	l.enterHour(at, use, over)
}

// Start records that a new process started. What a leak of the one before used is forgotten.
func (l *Learner) Start(at time.Time) {
	l.Started = at
	l.Scales = [5]scale{}
	if l.Leaks.IsZero() {
		return
	}
	l.Shorts = slices.DeleteFunc(l.Shorts, func(s span) bool { return s.Number >= number(l.Leaks, short) })
	l.Hours = slices.DeleteFunc(l.Hours, func(h hour) bool { return h.Number >= number(l.Leaks, time.Hour) })
	l.Leaks = time.Time{}
}

// Clone returns a copy that shares nothing.
func (l *Learner) Clone() Learner {
	c := *l
	c.Shorts, c.Hours = slices.Clone(l.Shorts), slices.Clone(l.Hours)
	for i := range c.Scales {
		c.Scales[i].Periods = slices.Clone(l.Scales[i].Periods)
	}
	return c
}

// Leak records the growth that [Learner.Growth] returned for the limit in force: while there is one, what
// is used is no need that outlives the process.
func (l *Learner) Leak(now time.Time, g *Growth) {
	switch {
	case g == nil:
		l.Leaks = time.Time{}
	case l.Leaks.IsZero():
		l.Leaks = now.Add(-g.Seen)
	}
}

// Killed records that the kernel killed a process for lack of memory under a limit, in bytes. If the use
// was not far from it, the process counts as having used all of the limit.
func (l *Learner) Killed(at time.Time, limit float64) {
	if !(limit > 0 && limit <= math.MaxFloat64) {
		return
	}
	if at.Before(l.Last) {
		at = l.Last
	}
	if len(l.Hours) > 0 && limit > l.Use && l.Use >= restart*limit {
		var over [4]float64
		for i := range over {
			over[i] = limit - l.base(i, at)
		}
		l.enterHour(at, limit, over)
	}
	l.Floor, l.FloorEnds, l.KilledAt = math.Min(math.Max(l.Floor, limit*(1+asked)+l.Rise), math.MaxFloat64), at.Add(day), at
	l.Start(at)
}

// Refaulted records that within a minute so many bytes were read again soon after they were reclaimed,
// while the group was full to its limit. If all of the limit would be read again within five minutes,
// the need is at least 1.05 times the limit for a day, but no more than was given before: most is the
// highest limit that the instance ever had. All are in bytes.
func (l *Learner) Refaulted(at time.Time, limit, most, again float64) {
	if !(limit > 0 && limit <= most && most <= math.MaxFloat64/2 && again*reread.Minutes() >= limit) {
		return
	}
	if at.After(l.FloorEnds) {
		l.Floor = 0
	}
	l.Floor, l.FloorEnds = math.Max(l.Floor, math.Min(limit*(1+missed), most/(1+Margin))), at.Add(day)
}

// Probed records that within the time up to the last reading a probe took memory away, until the instance
// used need bytes and missed none of the rest. Nothing that was used before needed more of itself than that
// part of the use at the begin, but for uses that were higher than it by more than the margin.
func (l *Learner) Probed(lasted time.Duration, need float64) {
	began, use := number(l.Last.Add(-lasted), short), l.Use
	for _, s := range l.Shorts {
		if s.Number >= began {
			use = math.Max(use, s.Most)
		}
	}
	if !(need > 0 && need < use) {
		return
	}
	lower := func(s *span) {
		if s.Most <= use*(1+Margin) {
			s.Most *= need / use
		}
	}
	for i := range l.Shorts {
		lower(&l.Shorts[i])
	}
	for i := range l.Hours {
		lower(&l.Hours[i].span)
	}
}

// starting reports whether a start is under way.
func (l *Learner) starting(at time.Time) bool {
	return !l.Started.IsZero() && at.Sub(l.Started) < startup
}

// number returns which interval since the Unix epoch contains a time.
func number(at time.Time, interval time.Duration) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano() / int64(interval)
}

// enter appends an interval, or joins it with the newest if both are the same one. It drops the oldest
// of more than most.
func enter(all []span, s span, most int) []span {
	if n := len(all); n > 0 && all[n-1].Number == s.Number {
		all[n-1].Most = math.Max(all[n-1].Most, s.Most)
		return all
	}
	if len(all) >= most {
		all = append(all[:0], all[1:]...)
	}
	return append(all, s)
}

func (l *Learner) enterHour(at time.Time, use float64, over [4]float64) {
	now := number(at, time.Hour)
	n := len(l.Hours)
	if n == 0 || l.Hours[n-1].Number != now {
		if n >= hours {
			l.Hours = append(l.Hours[:0], l.Hours[1:]...)
		}
		l.Hours = append(l.Hours, hour{span: span{now, use}})
		n = len(l.Hours)
	}
	h := &l.Hours[n-1]
	h.Most = math.Max(h.Most, use)
	for i := range over {
		h.Over[i] = math.Max(h.Over[i], over[i])
	}
}

// base returns the highest use in a window that ends at a time; 0: there was none.
func (l *Learner) base(window int, at time.Time) (most float64) {
	length := windows()[window]
	if length <= shorts*short {
		now := number(at, short)
		for i := len(l.Shorts) - 1; i >= 0 && now-l.Shorts[i].Number <= int64(length/short); i-- {
			most = math.Max(most, l.Shorts[i].Most)
		}
		return math.Max(most, l.Use)
	}
	now := number(at, time.Hour)
	for i := len(l.Hours) - 1; i >= 0 && now-l.Hours[i].Number <= int64(length/time.Hour); i-- {
		most = math.Max(most, l.Hours[i].Most)
	}
	return math.Max(most, l.Use)
}

// Need returns what the instance needs at a time; false: there are no readings of the last hour.
func (l *Learner) Need(now time.Time) (n Need, ok bool) {
	if l.First.IsZero() || now.Sub(l.Last) > time.Hour {
		return Need{}, false
	}
	n = Need{Limit: math.Inf(1), History: l.Last.Sub(l.First), Hours: len(l.Hours)}
	oldest := number(now, time.Hour) - hours
	for i, length := range windows() {
		over := 0.0
		for j := range l.Hours {
			if l.Hours[j].Number >= oldest {
				over = math.Max(over, l.Hours[j].Over[i])
			}
		}
		base := l.base(i, now)
		if base+over < n.Limit {
			n.Limit, n.Peak, n.Window = base+over, base, length
		}
	}
	for i := range l.Hours {
		if h := &l.Hours[i]; h.Number >= oldest && h.Most >= n.Highest {
			n.Highest, n.HighestAt = h.Most, time.Unix(0, h.Number*int64(time.Hour)).UTC()
		}
	}
	if n.History < day {
		n.Limit += unseen * n.Peak
	}
	if l.starting(now) && now.Sub(l.StartAt) <= hours*time.Hour {
		n.Limit = math.Max(n.Limit, l.StartPeak)
	}
	if now.Before(l.FloorEnds) {
		n.Limit = math.Max(n.Limit, l.Floor)
	}
	n.Limit = math.Min(n.Limit, math.MaxFloat64)
	switch {
	case n.History < enough:
		n.Why = "it was watched for less than an hour"
	case l.starting(now):
		n.Why = "it started less than ten minutes ago"
	case l.grows(math.Inf(1)) != nil:
		n.Why = "its use grows and does not stop"
	}
	n.Learnt = n.Why == ""
	return n, true
}

// Validate checks a state that was stored.
func (l *Learner) Validate() error {
	numbers := []float64{l.Use, l.StartPeak, l.Floor, l.Rise}
	lengths := len(l.Shorts) > shorts || len(l.Hours) > hours
	for i := range l.Shorts {
		numbers = append(numbers, l.Shorts[i].Most)
		lengths = lengths || i > 0 && l.Shorts[i].Number <= l.Shorts[i-1].Number
	}
	for i := range l.Hours {
		numbers = append(append(numbers, l.Hours[i].Most), l.Hours[i].Over[:]...)
		lengths = lengths || i > 0 && l.Hours[i].Number <= l.Hours[i-1].Number
	}
	for i := range l.Scales {
		lengths = lengths || len(l.Scales[i].Periods) > points
		for _, p := range l.Scales[i].Periods {
			numbers = append(numbers, p.Least)
		}
		numbers = append(numbers, l.Scales[i].Now.Least)
	}
	for _, v := range numbers {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return trimtab.Invalidf("working set: %v: want a finite number >= 0", v)
		}
	}
	if lengths {
		return trimtab.Invalidf("working set: more intervals than are kept, or out of order")
	}
	return nil
}

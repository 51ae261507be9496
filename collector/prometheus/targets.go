package prometheus

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// target is a scrape target, or another source of series, as one selector of an expression reads
// it.
type target struct {
	part          int // the selector's number
	job, instance string
}

func (t target) compare(u target) int {
	return cmp.Or(cmp.Compare(t.part, u.part), cmp.Compare(t.job, u.job), cmp.Compare(t.instance, u.instance))
}

// ages are the ages of the newest samples of a target's series: of its newest series and of its
// oldest.
type ages struct{ newest, oldest time.Duration }

// targets follows the targets of one expression. It distinguishes a target that has ended, so
// that the rest is complete, from one that cannot be reached, without which the rest is a part:
//
//	a target of Prometheus (it has a series up)
//	  without a sample at its last scrape   its series ended there: the pod was replaced
//	  removed, up is gone                   ended
//	  removed, until Prometheus marks that  in doubt, for up to three scrape intervals
//	  up is 0                               in doubt
//	another source (pushed, federated)
//	  without new samples, or gone          in doubt
//
// While a target is in doubt, a value that adds up over targets counts only if it is hardly less
// than the last one without a doubt: then the others have taken over.
type targets struct {
	of map[target]*source
	// whole is the greater of the last two values without a doubt, before the last of them, over
	// count targets; none while count is 0.
	whole, before float64
	count         int
}

// source is the state of a target.
type source struct {
	// at is when the sample that counts was taken: the newest of a target of Prometheus, the
	// oldest of another source, whose series may come from different processes.
	at time.Time
	// gaps are the latest intervals between two samples, lag is how old the last sample was when
	// it was first seen.
	gaps [4]time.Duration
	next int
	lag  time.Duration
	ages ages
	// found says that the selector finds it now; asked, that up was queried since that last
	// changed; scraped, that it has, or had, a series up; down, that up is 0; ended, that it has
	// ended, see targets.
	found, asked, scraped, down, ended bool
	// doubted says that it was in doubt; back is when it came back from there.
	doubted bool
	back    time.Time
}

const (
	// maxTargets is the largest number of targets that are distinguished. More count as one source.
	maxTargets = 1000
	// alike is the part of the last whole value that is taken for no fall.
	alike = 0.9
	// lostFor is the time after which a target that does not return no longer makes values partial.
	lostFor = 24 * time.Hour
	// sameSample is the distance below which two samples are one: an age is known to some
	// milliseconds.
	sameSample = 50 * time.Millisecond
)

// age is the one that counts.
func (s *source) age() time.Duration {
	if s.scraped {
		return s.ages.newest
	}
	return s.ages.oldest
}

// every is the least of the latest times between two samples; 0: unknown.
func (s *source) every() (least time.Duration) {
	for _, gap := range s.gaps {
		if gap > 0 && (least == 0 || gap < least) {
			least = gap
		}
	}
	return least
}

// late reports whether an age exceeds that of a regularly updated source. rate() considers a
// series ended when its newest sample is more than 1.1 intervals old.
func (s *source) late(age time.Duration) bool {
	every := s.every()
	return every > 0 && age > every*11/10+s.lag+time.Second
}

// unsure reports whether Prometheus must be asked for up: for a target that is new, late or
// no longer found. One that had none before is asked for again: a server that is sent both
// may show up later than the samples.
func (t *targets) unsure(found map[target]ages) bool {
	for id, a := range found {
		if s := t.of[id]; s == nil || !s.asked || s.late(a.oldest) || s.scraped && (s.ended || s.down) {
			return true
		}
	}
	return len(t.away(found)) > 0
}

// maxAway bounds the targets without series of which up is asked at once.
const maxAway = 50

// away lists the targets that are no longer found, and are scraped or were not asked for
// since, in order, those first that are not known to be down.
func (t *targets) away(found map[target]ages) []target {
	var all []target
	for id, s := range t.of {
		if _, ok := found[id]; !ok && (s.scraped || s.found || !s.asked) {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b target) int {
		if t.of[a].down != t.of[b].down && t.of[a].down {
			return 1
		} else if t.of[a].down != t.of[b].down {
			return -1
		}
		return a.compare(b)
	})
	return all[:min(len(all), maxAway)]
}

// health is the series up of targets, by job and instance: whether the newest scrape worked, and
// when it was. nil: not queried, or no answer.
type health map[[2]string]struct {
	works bool
	at    time.Time
}

// enter records what was found at now, and up of these targets and of those that are away. Here
// and below, now is the time as of which the server answered, by its own clock: VictoriaMetrics
// answers as of the last whole second, so that by any other clock one sample would have several
// times.
func (t *targets) enter(now time.Time, found map[target]ages, up health, away []target) {
	if t.of == nil {
		t.of = map[target]*source{}
	}
	for id, a := range found {
		s := t.of[id]
		if s == nil {
			s = &source{}
			t.of[id] = s
		}
		s.ages, s.found = a, true
		s.judge(now, id, up)
		s.taken(now)
	}
	for id, s := range t.of {
		if _, ok := found[id]; ok {
			continue
		}
		s.asked = s.asked && !s.found
		if s.found = false; slices.Contains(away, id) {
			s.judge(now, id, up)
		}
		if s.ended || now.Sub(s.at) > lostFor || len(t.of) > 2*maxTargets {
			delete(t.of, id)
		}
	}
}

// judge records the value of up for a target.
func (s *source) judge(now time.Time, id target, up health) {
	if up == nil {
		return
	}
	is, has := up[[2]string{id.job, id.instance}]
	s.asked, s.scraped = true, s.scraped || has
	s.down = has && !is.works
	switch {
	case !s.scraped || s.down:
		s.ended = false
	case has: // a later scrape worked, without these series
		s.ended = !s.found && !s.late(now.Sub(is.at)) && is.at.Sub(s.at) > s.every()/2
	default:
		s.ended = s.ended || s.marked()
	}
}

// marked reports whether the series of a target that was removed can have ended by a
// staleness marker, which Prometheus writes 3.1 intervals after the last sample. Without
// one they are found for 5 minutes, however long the interval.
func (s *source) marked() bool { return s.age() <= 4*s.every() }

// taken records when the sample that counts was taken.
func (s *source) taken(now time.Time) {
	at := now.Add(-s.age())
	gap := at.Sub(s.at)
	switch known := !s.at.IsZero() && s.at.Before(now.Add(time.Second)); { // the server's clock was not set back
	case known && gap < sameSample:
		return
	case known:
		s.gaps[s.next%len(s.gaps)] = gap
		s.next++
	}
	s.at, s.lag, s.ended = at, s.age(), false
}

// targetState is the state of the targets at one time.
type targetState struct {
	now time.Time
	// age is the age of the oldest target still scraped, or, if none is, of the newest sample; live
	// is true in the first case. oldest is the same over all targets that have not ended.
	age, oldest time.Duration
	live        bool
	doubted     []target
	count       int // the targets that should exist
}

// stand judges each target. window is the range of the expression.
func (t *targets) stand(now time.Time, window time.Duration) targetState {
	st := targetState{now: now}
	newest := time.Duration(-1)
	for id, s := range t.of {
		doubt := !s.found || s.down || s.late(s.age()) && !s.ended
		if s.found {
			if newest < 0 || s.ages.newest < newest {
				newest = s.ages.newest
			}
			if !s.ended {
				st.oldest = max(st.oldest, s.age())
			}
		}
		if s.doubted && !doubt {
			s.back = now
		}
		if s.doubted = doubt; s.ended && s.found && !doubt {
			continue
		}
		st.count++
		if !doubt {
			st.live, st.age = true, max(st.age, s.age())
		}
		if doubt || !s.back.IsZero() && now.Sub(s.back) <= window {
			st.doubted = append(st.doubted, id)
		}
	}
	if !st.live {
		st.age = max(0, newest)
		st.oldest = max(st.oldest, st.age)
	}
	slices.SortFunc(st.doubted, target.compare)
	return st
}

// partial returns why a value that adds up over targets lacks some of them; nil: it does not.
func (t *targets) partial(st *targetState, value float64, window time.Duration) error {
	if len(st.doubted) == 0 {
		t.whole, t.before, t.count = max(value, t.before), value, st.count
		return nil
	}
	if t.count > 0 && value >= t.enough(st)*t.whole {
		t.settle(st, window)
		return nil
	}
	if t.count > 0 && value >= t.share(st)*t.whole && t.settle(st, window) {
		return nil
	}
	return t.words(st, value)
}

// words describes what a partial value lacks.
func (t *targets) words(st *targetState, value float64) error {
	id := slices.MaxFunc(st.doubted, func(a, b target) int { return cmp.Compare(t.grave(a), t.grave(b)) })
	first := t.of[id]
	if first == nil {
		first = &source{at: st.now}
	}
	what := fmt.Sprintf("told nothing new for %v", st.now.Sub(first.at).Round(time.Second))
	switch {
	case first.down:
		what = fmt.Sprintf("has not answered Prometheus for %v (up is 0)", st.now.Sub(first.at).Round(time.Second))
	case !first.doubted:
		what = fmt.Sprintf("came back %v ago", st.now.Sub(first.back).Round(time.Second))
	}
	which := " one" // the gravest
	if id.job != "" || id.instance != "" {
		which = fmt.Sprintf(" job %.60q instance %.60q,", id.job, id.instance)
	}
	text := fmt.Sprintf("partial: %d of %d targets,%s %s", len(st.doubted), st.count, which, what)
	if len(st.doubted) > 1 {
		text = fmt.Sprintf("partial: %d of %d targets are in doubt, among them%s %s", len(st.doubted), st.count, which, what)
	}
	if t.count > 0 {
		text += fmt.Sprintf("; it reads %.3g, and was %.3g with all", value, t.whole)
	}
	return &fault{kindPartial, text}
}

// grave orders targets in doubt by the evidence against them.
func (t *targets) grave(id target) int {
	switch s := t.of[id]; {
	case s == nil:
		return 0
	case s.down:
		return 3
	case s.doubted:
		return 2
	}
	return 1
}

// enough is the fraction of the last whole value below which a value is partial. For some scrapes
// a removed target looks like one that cannot be reached, while the rates of the old and the new
// target blend.
func (t *targets) enough(st *targetState) float64 {
	if !st.live {
		return alike
	}
	for _, id := range st.doubted {
		if s := t.of[id]; !s.doubted || !s.scraped || !s.found || s.down || !s.marked() {
			return alike
		}
	}
	return min(alike, t.share(st))
}

// share is the fraction of the last whole value half-way between the others having taken over the
// work of those in doubt, and not.
func (t *targets) share(st *targetState) float64 {
	return 1 - float64(len(st.doubted))/float64(2*max(st.count, len(st.doubted)))
}

// settle forgets each target in doubt that the window no longer contains, since the others have
// taken over, and reports whether none is left.
func (t *targets) settle(st *targetState, window time.Duration) bool {
	left := false
	for _, id := range st.doubted {
		s := t.of[id]
		if !s.found && st.now.Sub(s.at) > window+2*s.every() {
			delete(t.of, id)
		} else {
			left = true
		}
	}
	return !left
}

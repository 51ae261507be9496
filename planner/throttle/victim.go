package throttle

import (
	"math"
	"time"
)

// victimID identifies a signal of an LRA.
type victimID struct{ Workload, Signal string }

// app is the state of one LRA.
type app struct {
	victims []*victim
	seen    uint64
	// heard is when the last valid sample arrived, left when the LRA was last on this host.
	heard, left time.Duration
	ever        bool
}

// recentSamples is the number of samples before a trial over which the signal is averaged.
const recentSamples = 8

// window has the last samples outside of trials.
type window struct {
	excess [recentSamples]float64
	over   [recentSamples]bool
	n      int
}

func (w *window) add(excess float64, over bool) {
	w.excess[w.n%recentSamples], w.over[w.n%recentSamples] = excess, over
	w.n++
}

// means returns the mean excess of the n samples, and how many of them were over the boundary.
func (w *window) means() (excess float64, over, n int) {
	n = min(w.n, recentSamples)
	for i := range n {
		excess += w.excess[i] / float64(n)
		if w.over[i] {
			over++
		}
	}
	return excess, over, n
}

// victim is the state of one signal of an LRA.
type victim struct {
	victimID
	// last is the time of the last sample, heard when it arrived.
	last  time.Time
	heard time.Duration

	anomalous bool
	// onset is when the anomaly began, since the number of the last trial before that.
	onset time.Duration
	since uint64
	// overs counts samples over the boundary since the onset, below the latest ones in a row that
	// were not.
	overs, below int
	// tried: a task was accused since the onset; triedAll: all tasks were.
	tried, triedAll bool
	// resume is when tasks may be accused again, backoff how long the last pause was.
	resume, backoff time.Duration

	recent window
	look   look
	// excess has the mean of each of the last ticks; sum and n are of the samples of this tick.
	excess course
	sum    float64
	n      int

	sensitivity sensitivity
}

// look is what a trial has measured at one victim.
type look struct {
	watching bool
	evidence evidence
	sum      float64
	// before is the mean excess before the trial.
	before float64
}

// The largest number of signals of an LRA, and of LRAs.
const (
	maxSignals = 16
	maxLRAs    = MaxVictims / maxSignals
)

// lras is the state of the LRAs on this host. It shares the clock and the log of the policy.
type lras struct {
	*Config
	clock   *clock
	log     *log
	apps    map[string]*app
	present []*victim // of this observation, in its order
	// disturbed is when an LRA was last anomalous, if wasDisturbed; calm: none is now.
	disturbed          time.Duration
	wasDisturbed, calm bool
}

// listen reads the samples of all LRAs.
func (l *lras) listen(o *Observation, t *trial) {
	l.present = l.present[:0]
	for i := range o.LRAs {
		in := &o.LRAs[i]
		a := l.apps[in.Workload]
		if a == nil {
			if len(l.apps) >= maxLRAs {
				l.log.counts.Ignored++
				continue
			}
			a = &app{}
			l.apps[in.Workload] = a
		}
		if a.seen == l.clock.ticks {
			l.log.counts.Ignored++
			continue
		}
		a.seen = l.clock.ticks
		for j := range in.Samples {
			l.hear(o, in.Workload, a, &in.Samples[j], t)
		}
		l.present = append(l.present, a.victims...)
	}
	for name, a := range l.apps {
		if a.seen == l.clock.ticks {
			a.left = l.clock.now
			continue
		}
		for _, v := range a.victims { // it is not on this host, so that nothing is to be protected
			v.anomalous, v.look.watching = false, false
		}
		if l.clock.now-a.left > keepAbsent {
			delete(l.apps, name)
		}
	}
	for _, v := range l.present {
		mean := math.NaN()
		if v.n > 0 {
			mean = v.sum / float64(v.n)
		}
		v.excess[l.clock.ticks%history], v.sum, v.n = float32(mean), 0, 0
	}
}

// keepAbsent is how long the sensitivity of an LRA that left the host is kept.
const keepAbsent = time.Hour

// hear reads one sample.
func (l *lras) hear(o *Observation, workload string, a *app, s *Sample, t *trial) {
	ok := s.Value >= 0 && s.Value <= greatestAmount && s.Boundary > 0 && s.Boundary <= greatestAmount
	ok = ok && s.Signal != "" && s.Length >= 0 && !s.Time.After(o.Time) && o.Time.Sub(s.Time) <= l.MaxAge
	v := a.find(s.Signal)
	if ok && v == nil && len(a.victims) < maxSignals {
		v = newVictim(workload, s.Signal, l.Resources)
		a.victims = append(a.victims, v)
	}
	if !ok || v == nil || !s.Time.After(v.last) {
		l.log.counts.Ignored++
		return
	}
	v.last, v.heard, a.heard, a.ever = s.Time, l.clock.now, l.clock.now, true
	if o.Mode == UP {
		v.anomalous = false
		return
	}
	l.follow(v, s, t)
}

func newVictim(workload, signal string, resources []Resource) *victim {
	return &victim{victimID: victimID{workload, signal}, excess: unknown(), sensitivity: newSensitivity(resources)}
}

func (a *app) find(signal string) *victim {
	for _, v := range a.victims {
		if v.Signal == signal {
			return v
		}
	}
	return nil
}

// excessOf returns by how much a sample exceeds its boundary, relative to the boundary:
func excessOf(s *Sample) float64 { return min(s.Value/s.Boundary-1, 10) }

// follow updates a victim with a sample, and detects the beginning and end of an anomaly.
func (l *lras) follow(v *victim, s *Sample, t *trial) {
	excess, over := excessOf(s), s.Value > s.Boundary
	v.sum += excess
	v.n++
	if v.look.watching {
		if start := s.Time.Add(-s.Length); !start.Before(t.effective) {
			v.look.evidence.add(over)
			v.look.sum += excess
			l.log.counts.Samples++
		}
	}
	switch {
	case v.anomalous && over:
		v.overs, v.below = v.overs+1, 0
	case v.anomalous:
		v.below++
	case s.Anomaly && over && !v.look.watching:
		v.anomalous, v.onset, v.since = true, l.clock.now, t.number
		v.overs, v.below, v.tried, v.triedAll, v.recent = 0, 0, false, false, window{}
		l.log.counts.Anomalies++
		l.log.tell(AnomalyBegan, nil, v, 0)
	}
	if !v.look.watching {
		v.recent.add(excess, over)
	}
	if v.anomalous && v.below >= l.Proof.Calm {
		l.recovered(v)
	}
}

// recovered ends an anomaly.
func (l *lras) recovered(v *victim) {
	v.anomalous, v.backoff, v.resume = false, 0, 0
	if !v.tried {
		l.log.counts.Noise++
		l.log.tell(Noise, nil, v, v.below)
		return
	}
	l.log.counts.Recoveries++
	l.log.counts.Recovering += l.clock.now - v.onset
	l.log.tell(AnomalyEnded, nil, v, v.below)
}

// judge ends anomalies whose signal has been missing for longer than MaxAge, without a verdict. It
// also sets calm.
func (l *lras) judge() {
	l.calm = true
	for _, v := range l.present {
		if l.clock.now-v.heard > l.MaxAge {
			v.anomalous, v.look.watching = false, false
		}
		l.calm = l.calm && !v.anomalous
	}
	if !l.calm {
		l.disturbed, l.wasDisturbed = l.clock.now, true
	}
}

// unsafe returns why no task may start beside the LRAs, or "" if one may.
func (l *lras) unsafe(o *Observation) Reason {
	if l.wasDisturbed && l.clock.now-l.disturbed < l.Quiet {
		return Settling
	}
	for i := range o.LRAs {
		a := l.apps[o.LRAs[i].Workload]
		if a == nil || !a.ever || l.clock.now-a.heard > l.MaxAge {
			return Unwatched
		}
	}
	return ""
}

// watcher returns the first victim that takes part in the trial.
func (l *lras) watcher() *victim {
	for _, v := range l.present {
		if v.look.watching {
			return v
		}
	}
	return &victim{}
}

// word returns the joint result of the victims: recovered as soon as one has recovered, not
// recovered once none of them has.
func (l *lras) word(began time.Duration) word {
	watching, undecided := 0, false
	for _, v := range l.present {
		if v.look.watching {
			watching++
		}
	}
	if watching == 0 {
		return unheard
	}
	for _, v := range l.present {
		if !v.look.watching {
			continue
		}
		switch v.look.evidence.word(l.Proof.WrongConviction, l.Proof.MissedGuilt, watching, l.Proof.Watch) {
		case cured:
			return cured
		case open:
			undecided = true
		}
	}
	switch {
	case !undecided:
		return uncured
	case l.clock.now-began > l.Proof.Patience:
		return unheard
	}
	return open
}

// learn updates the sensitivity of the victims in the trial with what was freed and by how much
// their signals fell.
func (l *lras) learn(freed []float64) {
	for _, v := range l.present {
		if k := &v.look; k.watching && k.evidence.n > 0 {
			v.sensitivity.learn(freed, k.before-k.sum/float64(k.evidence.n))
		}
	}
}

// notOurs starts the backoff of the victims that watched: speculative tasks are not the cause.
func (l *lras) notOurs(trial uint64) {
	for _, v := range l.present {
		if !v.look.watching {
			continue
		}
		v.backoff = min(max(2*v.backoff, l.Proof.Backoff), l.Proof.MaxHold)
		v.resume, v.since, v.triedAll = l.clock.now+v.backoff, trial, false
		l.log.counts.NotOurs++
		l.log.tell(NotOurs, nil, v, v.look.evidence.n)
	}
}

package throttle

import (
	"math"
	"time"
)

// victimID names a signal of an LRA.
type victimID struct{ Workload, Signal string }

// app is the state of one LRA.
type app struct {
	victims []*victim
	seen    uint64
	// heard is when the last usable sample came, left when it was last here.
	heard, left time.Duration
	ever        bool
}

// recentSamples is the number of samples before a trial over which the signal is averaged.
const recentSamples = 8

// window has the last samples that were taken outside of trials.
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
	// last is the time of the last sample, heard when it came.
	last  time.Time
	heard time.Duration

	anomalous bool
	// onset is when the anomaly began, since which trial was the last before.
	onset time.Duration
	since uint64
	// overs counts samples over the boundary since the onset, below those in a row
	// that were not.
	overs, below int
	// tried: somebody was accused since the onset; triedAll: all were.
	tried, triedAll bool
	// resume is when somebody may be accused again, backoff how long that took last.
	resume, backoff time.Duration

	recent window
	look   look
	// excess of the last ticks, and the samples of this one.
	excess course
	sum    float64
	n      int

	sensitivity sensitivity
}

// look is what a trial has measured at a victim.
type look struct {
	watching bool
	evidence evidence
	sum      float64
	// before is the mean excess before the trial.
	before float64
}

// The most signals of an LRA, and the most LRAs.
const (
	maxSignals = 16
	maxLRAs    = MaxVictims / maxSignals
)

// listen reads the samples of all LRAs.
func (p *Policy) listen(o *Observation) {
	p.present = p.present[:0]
	for i := range o.LRAs {
		in := &o.LRAs[i]
		a := p.apps[in.Workload]
		if a == nil {
			if len(p.apps) >= maxLRAs {
				p.counts.Ignored++
				continue
			}
			a = &app{}
			p.apps[in.Workload] = a
		}
		if a.seen == p.ticks {
			p.counts.Ignored++
			continue
		}
		a.seen = p.ticks
		for j := range in.Samples {
			p.hear(o, in.Workload, a, &in.Samples[j])
		}
		p.present = append(p.present, a.victims...)
	}
	for name, a := range p.apps {
		if a.seen == p.ticks {
			a.left = p.clock
			continue
		}
		for _, v := range a.victims { // it is not here: nothing to protect
			v.anomalous, v.look.watching = false, false
		}
		if p.clock-a.left > keepAbsent {
			delete(p.apps, name)
		}
	}
	for _, v := range p.present {
		mean := math.NaN()
		if v.n > 0 {
			mean = v.sum / float64(v.n)
		}
		v.excess[p.ticks%history], v.sum, v.n = float32(mean), 0, 0
	}
}

// keepAbsent is how long the sensitivity of an LRA that left the host is kept.
const keepAbsent = time.Hour

// hear reads one sample.
func (p *Policy) hear(o *Observation, workload string, a *app, s *Sample) {
	ok := s.Value >= 0 && s.Value <= greatestAmount && s.Boundary > 0 && s.Boundary <= greatestAmount
	ok = ok && s.Signal != "" && s.Length >= 0 && !s.Time.After(o.Time) && o.Time.Sub(s.Time) <= p.MaxAge
	v := a.find(s.Signal)
	if ok && v == nil && len(a.victims) < maxSignals {
		v = p.newVictim(workload, s.Signal)
		a.victims = append(a.victims, v)
	}
	if !ok || v == nil || !s.Time.After(v.last) {
		p.counts.Ignored++
		return
	}
	v.last, v.heard, a.heard, a.ever = s.Time, p.clock, p.clock, true
	if o.Mode == UP {
		v.anomalous = false
		return
	}
	p.follow(v, s)
}

func (p *Policy) newVictim(workload, signal string) *victim {
	return &victim{victimID: victimID{workload, signal}, excess: unknown(), sensitivity: newSensitivity(p.Resources)}
}

func (a *app) find(signal string) *victim {
	for _, v := range a.victims {
		if v.Signal == signal {
			return v
		}
	}
	return nil
}

// excessOf is by how much a sample is over its boundary, as a part of that:
//
//	e = value / boundary − 1, at most 10
func excessOf(s *Sample) float64 { return min(s.Value/s.Boundary-1, 10) }

// follow says whether the signal is anomalous.
func (p *Policy) follow(v *victim, s *Sample) {
	excess, over := excessOf(s), s.Value > s.Boundary
	v.sum += excess
	v.n++
	if v.look.watching {
		if start := s.Time.Add(-s.Length); !start.Before(p.trial.effective) {
			v.look.evidence.add(over)
			v.look.sum += excess
			p.counts.Samples++
		}
	}
	switch {
	case v.anomalous && over:
		v.overs, v.below = v.overs+1, 0
	case v.anomalous:
		v.below++
	case s.Anomaly && over && !v.look.watching:
		v.anomalous, v.onset, v.since = true, p.clock, p.trial.number
		v.overs, v.below, v.tried, v.triedAll, v.recent = 0, 0, false, false, window{}
		p.counts.Anomalies++
		p.tell(AnomalyBegan, nil, v, 0)
	}
	if !v.look.watching {
		v.recent.add(excess, over)
	}
	if v.anomalous && v.below >= p.Proof.Calm {
		p.recovered(v)
	}
}

// recovered ends an anomaly.
func (p *Policy) recovered(v *victim) {
	v.anomalous, v.backoff, v.resume = false, 0, 0
	if !v.tried {
		p.counts.Noise++
		p.tell(Noise, nil, v, v.below)
		return
	}
	p.counts.Recoveries++
	p.counts.Recovering += p.clock - v.onset
	p.tell(AnomalyEnded, nil, v, v.below)
}

// judge ends anomalies whose signal has been missing for longer than MaxAge, without a verdict,
// and sets whether the host is calm.
func (p *Policy) judge() {
	p.calm = true
	for _, v := range p.present {
		if p.clock-v.heard > p.MaxAge {
			v.anomalous, v.look.watching = false, false
		}
		p.calm = p.calm && !v.anomalous
	}
	if !p.calm {
		p.disturbed, p.wasDisturbed = p.clock, true
	}
}

// calmNow reports whether no LRA is anomalous and no trial is under way.
func (p *Policy) calmNow() bool { return p.calm && p.trial.phase == idle }

// unsafe returns why no task may start beside the LRAs, "" if one may.
func (p *Policy) unsafe(o *Observation) Reason {
	switch {
	case !p.calmNow():
		return Anomalous
	case p.wasDisturbed && p.clock-p.disturbed < p.Quiet:
		return Settling
	}
	for i := range o.LRAs {
		a := p.apps[o.LRAs[i].Workload]
		if a == nil || !a.ever || p.clock-a.heard > p.MaxAge {
			return Unwatched
		}
	}
	return ""
}

package throttle

import "time"

// phase is the phase of the search for the guilty tasks.
type phase uint8

const (
	// idle: no task is on trial.
	idle phase = iota
	// probing: the first suspects are throttled.
	probing
	// everybody: all tasks are throttled, since each by itself was found innocent.
	everybody
	// narrowing: one or more of several tasks are guilty; half of them are throttled.
	narrowing
	// swapped: the other half is throttled, since the victim did not stay well with the first.
	swapped
	// rejoined: both halves are throttled again, since neither was enough.
	rejoined
)

// trial is one change of the throttling whose effect is measured. A host has one trial at a time,
// in which all victims are measured: the effects of two could not be told apart.
type trial struct {
	phase phase
	// number counts trials.
	number uint64
	// began is the start by the policy's clock. Only samples that began at effective or later
	// count.
	began     time.Duration
	effective time.Time
	// set has the tasks that are throttled, rest those that are on trial as well but run.
	set, rest []*task
	// relapsed: the victim did not stay well while set ran, and did while it was throttled.
	relapsed bool
	// again: two halves both harmed the victim twice, which chance rarely does.
	again bool
}

// prove evaluates the current trial, or begins one.
func (p *Policy) prove(o *Observation) {
	if p.trial.phase != idle {
		p.weigh(o)
	}
	if p.trial.phase == idle {
		p.accuse(o)
	}
}

// begin begins a phase: it throttles the tasks of set, releases those of rest, and restarts the
// measurements.
func (p *Policy) begin(o *Observation, ph phase, set, rest []*task) {
	t := &p.trial
	t.phase, t.set, t.rest = ph, set, rest
	t.number++
	t.began, t.effective = p.clock.now, o.Time.Add(p.Proof.Settle)
	p.log.counts.Trials++
	for _, v := range p.lras.present {
		v.look.evidence.again()
		v.look.sum = 0
	}
	for _, s := range rest {
		s.release()
	}
	lead := p.lras.watcher()
	for _, s := range set {
		if !s.pending {
			s.pending = true
			p.log.counts.Accusations++
			p.log.tell(Accused, s, lead, 0)
		}
		p.throttle(s, accused, lead.victimID, p.clock.now+p.Proof.Patience)
	}
}

// weigh evaluates the trial so far.
func (p *Policy) weigh(o *Observation) {
	t := &p.trial
	t.set, t.rest = p.alive(t.set), p.alive(t.rest)
	if len(t.set)+len(t.rest) == 0 {
		p.abandon()
		return
	}
	word := p.lras.word(t.began)
	if word == open {
		for _, s := range t.set {
			p.throttle(s, accused, s.victim, p.clock.now+p.Proof.Patience)
		}
		return
	}
	if t.phase == probing || t.phase == everybody {
		var freed freeing
		for _, s := range t.set {
			freed.add(&p.Config, o, s)
		}
		p.lras.learn(freed[:len(p.Resources)])
	}
	switch {
	case word == cured && t.phase == rejoined && !t.again:
		t.again, t.relapsed = true, false
		p.narrow(o)
	case word == cured && t.phase == rejoined:
		p.convict(t.set, Jointly)
	case word == cured:
		p.acquit(t.rest, Innocent)
		t.rest, t.relapsed = nil, t.phase == swapped
		p.narrow(o)
	case t.phase == narrowing && len(t.rest) > 0:
		p.begin(o, swapped, t.rest, t.set)
	case t.phase == swapped && len(t.rest) > 0:
		p.begin(o, rejoined, append(t.set, t.rest...), nil)
	case t.phase >= narrowing || word == unheard:
		p.acquit(t.set, Undecided)
		p.end()
	default:
		p.acquit(t.set, Innocent)
		if t.phase == everybody {
			p.lras.notOurs(p.trial.number)
		}
		p.end()
	}
}

// alive returns the tasks that are still on trial, without those that ended or were released for
// another reason.
func (p *Policy) alive(all []*task) []*task {
	kept := all[:0]
	for _, t := range all {
		switch {
		case t.pending && t.seen == p.clock.ticks && !t.ending:
			kept = append(kept, t)
		case t.pending:
			t.pending = false
			p.log.counts.Undecided++
		}
	}
	clear(all[len(kept):])
	return kept
}

// narrow continues after the victim recovered. Of several tasks, half are released to see whether
// the victim stays well. A single task is released once as a control, unless former verdicts make
// that unnecessary.
func (p *Policy) narrow(o *Observation) {
	t := &p.trial
	n := len(t.set)
	switch {
	case n == 0:
		p.end()
		return
	case n == 1 && (p.Proof.NoControl || t.relapsed || p.jobs.prior(t.set[0]) >= proven):
		p.convict(t.set, Guilty)
		return
	}
	for _, v := range p.lras.present { // victims that did not recover take no part in the rest of the trial
		e := &v.look.evidence
		v.look.watching = v.look.watching && e.word(p.Proof.WrongConviction, p.Proof.MissedGuilt, 1, p.Proof.Watch) == cured
	}
	half := n / 2
	set := append([]*task(nil), t.set[:half]...)
	rest := append([]*task(nil), t.set[half:]...)
	p.begin(o, narrowing, set, rest)
}

// proven is the evidence of former verdicts from which on a task is found guilty without a control:
// one guilty verdict, and none of innocence.
const proven = 1.6

// acquit releases tasks as innocent or undecided.
func (p *Policy) acquit(all []*task, kind EventKind) {
	lead := p.lras.watcher()
	for _, s := range all {
		s.release()
		s.pending, s.cleared = false, p.trial.number
		if kind == Innocent {
			p.log.counts.FalseAccusations++
			p.jobs.of(s.key(), p.clock.ticks).innocent++
		} else {
			p.log.counts.Undecided++
		}
		p.log.tell(kind, s, lead, lead.look.evidence.n)
	}
}

// convict keeps tasks throttled, the longer the more often their job was found guilty.
func (p *Policy) convict(all []*task, kind EventKind) {
	lead := p.lras.watcher()
	for _, s := range all {
		s.pending, s.parole = false, 0
		j := p.jobs.of(s.key(), p.clock.ticks)
		hold := p.Proof.Hold
		for i := 1.0; i <= j.guilty && hold < p.Proof.MaxHold; i++ {
			hold *= 2
		}
		j.guilty += 1 / float64(len(all)) // a joint verdict is divided among them
		p.throttle(s, convicted, lead.victimID, p.clock.now+min(hold, p.Proof.MaxHold))
		j.until = max(j.until, s.until)
		if kind == Guilty {
			p.log.counts.Proofs++
		} else {
			p.log.counts.Joint++
		}
		p.log.tell(kind, s, lead, lead.look.evidence.n)
	}
	p.end()
}

// end ends the trial.
func (p *Policy) end() {
	for _, v := range p.lras.present {
		v.look.watching = false
	}
	p.trial = trial{number: p.trial.number}
}

// abandon ends the trial without a verdict.
func (p *Policy) abandon() {
	if p.trial.phase == idle {
		return
	}
	p.acquit(p.alive(p.trial.set), Undecided)
	p.acquit(p.alive(p.trial.rest), Undecided)
	p.end()
}

// accuse begins a trial for the anomalous victims, if there are suspects.
func (p *Policy) accuse(o *Observation) {
	var lead *victim
	cleared := uint64(0)
	for _, v := range p.lras.present {
		v.look.watching = v.anomalous && v.overs >= max(0, p.Proof.Confirm) && p.clock.now >= v.resume
		if !v.look.watching {
			continue
		}
		if lead == nil || v.onset < lead.onset {
			lead = v
		}
		cleared = max(cleared, v.since)
		before, over, n := v.recent.means()
		v.look.before, v.look.evidence = before, newEvidence(over, n)
	}
	if lead == nil {
		return
	}
	all, ph := p.choose(o, lead, cleared)
	if ph == idle {
		if len(all) > 0 {
			p.lras.notOurs(p.trial.number)
		}
		p.end()
		return
	}
	set := make([]*task, len(all))
	for i := range all {
		set[i] = all[i].task
	}
	for _, v := range p.lras.present {
		v.tried = v.tried || v.look.watching
		v.triedAll = v.triedAll || v.look.watching && ph == everybody
	}
	p.begin(o, ph, set, nil)
}

// choose returns the tasks to try, and the phase. It tries suspects that were not found innocent
// since the anomaly began; if none is left, it tries all tasks. If throttling all tasks had no
// effect, the next attempt begins with all of them. idle: no task is left to try, or all were
// tried.
func (p *Policy) choose(o *Observation, lead *victim, cleared uint64) ([]suspect, phase) {
	if lead.backoff == 0 || lead.triedAll {
		if all := p.rank(lead, cleared); len(all) > 0 {
			return p.group(o, lead, all), probing
		}
	}
	all := p.rank(lead, ^uint64(0))
	if len(all) == 0 || lead.triedAll || len(all) == 1 && lead.backoff == 0 {
		return all, idle
	}
	return all, everybody
}

// calmNow reports whether no LRA is anomalous and no trial is under way.
func (p *Policy) calmNow() bool { return p.lras.calm && p.trial.phase == idle }

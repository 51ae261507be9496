package path

// clockID is the number of a sender's clock; noClock: none is tracked.
type clockID uint32

const noClock clockID = 0

// clock has the timing of one sender's spans. A sender is a process, as far as its resource
// distinguishes processes: SDKs collect spans for some seconds and then send them in the order in
// which they ended.
type clock struct {
	workload int32
	// flushes is how often it has sent, up to enoughFlushes; flushes are at least learnEvery apart.
	flushes uint8
	// arrived is when it last sent, learnt when late and disorder were last computed, and faded when
	// its history was last halved. newest is the latest end of its spans by this host's clock. All
	// in Unix ns.
	arrived, learnt, faded, newest int64
	// shift is the correction to add to its times, in ns, if its clock is wrong. strayed is since
	// when its times are implausible; 0: they are plausible.
	shift, strayed int64
	// age is the histogram of how long after their end its spans arrived; behind is that of how
	// long before the newest arrived one they had ended.
	age, behind lateness
	// late and disorder are the quantiles of these, in ns; spans is the number of spans that they
	// are based on.
	late, disorder int64
	spans          int
}

const (
	// enoughFlushes is how often a sender must have sent before its lateness is known.
	enoughFlushes = 3
	// learnEvery is the least time between two flushes, in ns: a sender whose queue is
	// full sends several batches at once.
	learnEvery = 100 * 1e6
	// fadeEvery is the half-life of the history of a sender, in ns.
	fadeEvery = 30 * 1e9
	// batches is the lateness, in ns, from which on a sender counts as collecting spans. A sender
	// that sends full batches early, as all do under load, takes its whole delay when the load
	// falls.
	batches = 500 * 1e6
	// awaited is how long a silent sender is waited for, in ns: after that it counts as gone, or as
	// sending hardly anything.
	awaited = 30 * 1e9
	// gone is the silence after which a sender is ignored, in ns.
	gone = 600 * 1e9
	// strayFor is how long all spans of a sender must be older than maxAge before its clock counts
	// as wrong, in ns: before that, the spans may have been delayed.
	strayFor = 30 * 1e9
)

// observe records a frame of spans, the newest of which ended at newest by the sender's own clock.
func (c *clock) observe(now, newest int64, config *Config) {
	c.arrived = now
	c.set(now, newest, config)
	c.newest = max(c.newest, min(newest+c.shift, now))
	if now-c.learnt < learnEvery {
		return
	}
	c.learnt = now
	c.flushes = min(c.flushes+1, enoughFlushes)
	c.learn()
	if now-c.faded >= fadeEvery {
		c.faded = now
		c.age.fade()
		c.behind.fade()
	}
}

// set computes the correction for the sender's clock from the end of its newest span. Times in the
// future cannot be explained by a delay.
func (c *clock) set(now, newest int64, config *Config) {
	skew, off := int64(config.Skew), now-newest
	believed := func(age int64) bool { return age >= -skew && age <= maxAge }
	switch {
	case believed(off):
		c.shift, c.strayed = 0, 0
	case c.shift != 0 && believed(off-c.shift):
		c.strayed = 0
	case off < -skew:
		c.shift = off
	case c.strayed == 0:
		c.strayed = now
	case now-c.strayed >= strayFor:
		c.shift, c.strayed = off, 0
	}
}

// learn computes late and disorder from the histograms.
func (c *clock) learn() {
	if v, ok := c.age.quantile(); ok {
		c.late = v
	}
	if v, ok := c.behind.quantile(); ok {
		c.disorder = v
	}
	c.spans = c.age.spans()
}

// wait returns for how long after the end of an interval a silent sender may still have spans of
// it, in ns.
func (c *clock) wait(config *Config) int64 {
	w := c.late + int64(config.Settle)
	if c.late >= batches || c.flushes < enoughFlushes {
		w = max(w, int64(config.Lateness))
	}
	return w
}

// mark returns the time up to which all spans of the sender have arrived.
func (c *clock) mark(now int64, config *Config) int64 {
	m := now - c.wait(config)
	if c.flushes >= enoughFlushes {
		m = max(m, c.newest-c.disorder)
	}
	return m
}

// silent reports whether the sender is no longer waited for.
func (c *clock) silent(now int64, config *Config) bool {
	return now-c.arrived > max(awaited, 3*c.wait(config))
}

// senders tracks when spans arrive, and so up to which time all have arrived.
//
// Workloads with spans in the same trace are kin and wait for each other; other workloads do not
// wait, however late those spans are.
type senders struct {
	config *Config
	// clocks is indexed by number; the first is not used.
	clocks []clock
	// kin is a union-find forest of workloads: kin[w] is another workload of the same kin, or w
	// itself if it is the root.
	kin []int32
	// groups is indexed by 1 + the root of a kin; the first is for spans that belong to no
	// workload.
	groups []*group
	slot   int64
	slots  int64
}

// group has the traces of one kin that wait for further spans.
type group struct {
	// mark is the time up to which all spans have arrived, except those that are later than the
	// longest wait. done is the number of the first slot that was not checked yet.
	mark, done int64
	// lists is a ring buffer of slots; a slot lists the traces that are due in its time.
	lists []list
	// share is the number of recent spans of its senders, missing the number of those from senders
	// that are later than the longest wait.
	share, missing float64
}

// part returns the fraction of spans that may arrive after the longest wait, [0, 1].
func (g *group) part() float64 {
	if g.share == 0 {
		return 0
	}
	return g.missing / g.share
}

func newSenders(c *Config) *senders {
	slot := max(int64(c.Every)/64, int64(c.Timeout)/256, 1)
	return &senders{config: c, clocks: make([]clock, 1), groups: []*group{nil}, slot: slot, slots: int64(c.Timeout+c.Skew)/slot + 3}
}

// root returns the root of the kin of w.
func (s *senders) root(w int32) int32 {
	for int(w) >= len(s.kin) {
		s.kin = append(s.kin, int32(len(s.kin)))
	}
	for s.kin[w] != w {
		s.kin[w] = s.kin[s.kin[w]]
		w = s.kin[w]
	}
	return w
}

// group returns the group of the kin of w, or that of spans without a workload.
func (s *senders) group(w int32) *group {
	at := 0
	if w != noWorkload {
		at = 1 + int(s.root(w))
	}
	for at >= len(s.groups) {
		s.groups = append(s.groups, nil)
	}
	if s.groups[at] == nil {
		s.groups[at] = &group{lists: make([]list, s.slots)}
		for i := range s.groups[at].lists {
			s.groups[at].lists[i].which = 1
		}
	}
	return s.groups[at]
}

// join makes two workloads kin, whose spans were in the same trace.
func (s *senders) join(a, b int32, traces *slab[traceRecord]) {
	a, b = s.root(a), s.root(b)
	if a == b {
		return
	}
	if b < a {
		a, b = b, a
	}
	to, from := s.group(a), s.group(b)
	s.kin[b] = a
	if to.done == 0 || from.done > 0 && from.done < to.done {
		to.done = from.done
	}
	to.mark = min(to.mark, from.mark)
	for i := range from.lists {
		for t := from.lists[i].head; t != 0; t = from.lists[i].head {
			from.lists[i].remove(traces, t)
			to.lists[i].push(traces, t)
		}
	}
	s.groups[1+b] = nil
}

// list returns the list of g for traces that are due at the given time.
func (s *senders) list(g *group, due int64) *list { return &g.lists[due/s.slot%s.slots] }

// advance computes the mark of each kin: up to which time all its spans have arrived.
func (s *senders) advance(now int64) {
	least := now - int64(s.config.Timeout)
	for at, g := range s.groups {
		if g == nil {
			continue
		}
		if g.share, g.missing = 0, 0; at == 0 || s.config.Lateness == 0 {
			g.mark = now - int64(s.config.Settle)
			continue
		}
		g.mark = -1
	}
	if s.config.Lateness == 0 {
		return
	}
	// If all senders of a kin are silent, the slowest one counts.
	for _, silent := range []bool{false, true} {
		for i := range s.clocks {
			c := &s.clocks[i]
			if now-c.arrived > gone || c.silent(now, s.config) != silent {
				continue
			}
			g := s.group(c.workload)
			if silent && g.share > 0 {
				continue
			}
			m := c.mark(now, s.config)
			if g.mark < 0 || m < g.mark {
				g.mark = max(m, least)
			}
			if silent {
				continue
			}
			n := 1 + float64(c.spans)
			if g.share += n; m < least {
				g.missing += n
			}
		}
	}
	for _, g := range s.groups[1:] {
		if g != nil && g.mark < 0 {
			g.mark = now - int64(max(s.config.Settle, s.config.Lateness))
		}
	}
}

// follow adds the clock of a new sender of a workload and returns its number. It starts with the
// timing of another sender of its component, if there is one.
func (s *senders) follow(workload int32, like clockID) clockID {
	c := clock{workload: workload}
	if like != noClock {
		c.late, c.disorder, c.flushes = s.clocks[like].late, s.clocks[like].disorder, s.clocks[like].flushes
	}
	s.clocks = append(s.clocks, c)
	return clockID(len(s.clocks) - 1)
}

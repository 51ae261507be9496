package fast

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/planner/local"
)

// loop moves the quotas of this host inside the envelopes of plans: the actuator reads,
// planner/local decides, the actuator writes. They do not use the bus.
type loop struct {
	fastActuator fastActuator
	host         string
	metrics      *metric.Set
	logger       *slog.Logger

	frame agent.Loop[bool, local.Decision]
	rule  *local.Host
	// planned is the generation of groups that was passed to the rule; ready says that one was.
	planned uint64
	ready   bool

	look     actuator.FastLook
	readings []local.Reading
	found    []float64
	moves    []actuator.FastMove
	status   []local.Status
	// parent is the total time that the group above was throttled until the last look, at parentAt.
	// pressure is the total time that its tasks waited for a CPU, valid if pressed is true. stalled
	// has the total throttled time of each group below.
	parent   float64
	parentAt time.Duration
	bound    bool
	pressure float64
	pressed  bool
	stalled  []float64

	totals totals
}

// fastActuator is the part of an actuator that the loop uses.
type fastActuator interface {
	FastLook(*actuator.FastLook)
	FastMove(generation uint64, moves []actuator.FastMove, found []float64) []float64
	FastRecord([]actuator.FastAccount)
}

func newLoop(m fastActuator, host string, set *metric.Set, logger *slog.Logger) *loop {
	l := &loop{fastActuator: m, host: host, metrics: set, logger: logger, rule: local.New(), totals: totals{groups: map[trimtab.KnobID]*group{}}}
	l.frame = agent.Loop[bool, local.Decision]{Every: local.Tick, Look: l.see, Decide: l.decide, Act: l.act, Tell: l.tell, Took: l.took}
	return l
}

// Run moves the quotas of a host inside the envelopes that its actuator was given,
// until ctx ends.
func Run(ctx context.Context, a *actuator.Actuator, host string, set *metric.Set, logger *slog.Logger) error {
	return newLoop(a, host, set, logger).frame.Run(ctx)
}

// see reads all groups, and reports whether there is a group to control.
func (l *loop) see(context.Context, time.Time) bool {
	l.fastActuator.FastLook(&l.look)
	if !l.ready || l.planned != l.look.Generation {
		l.plan()
	}
	return !l.still()
}

// decide lets the rule decide.
func (l *loop) decide(_ context.Context, _ time.Time, moves bool) (d local.Decision) {
	if !moves {
		return d
	}
	look := local.Look{At: l.look.At, Contention: l.contention(), Groups: l.read()}
	if d = l.rule.Tick(&look); d.Late {
		l.metrics.Counter("trimtab_fast_late_total", l.host).Inc()
	}
	return d
}

// act writes the quotas that shrink, reads back, and then writes those that grow.
func (l *loop) act(_ context.Context, _ time.Time, d local.Decision) {
	if l.still() {
		return
	}
	l.found = l.found[:0]
	for i := range l.readings {
		l.found = append(l.found, l.readings[i].Set)
	}
	if len(d.Shrinks) > 0 {
		l.write(d.Shrinks)
	}
	if grows := l.rule.Grow(l.found); len(grows) > 0 {
		l.write(grows)
	}
}

// tell updates the holding and the metrics.
func (l *loop) tell(_ context.Context, _ time.Time, d local.Decision) {
	if l.still() {
		l.totals.idle(l)
		return
	}
	l.totals.take(l, d.Asks)
}

// still reports whether there is no group to control.
func (l *loop) still() bool { return !l.ready || len(l.look.Groups) == 0 }

// took records the duration of rounds that had a group to control.
func (l *loop) took(d time.Duration) {
	if len(l.look.Groups) > 0 {
		l.metrics.Histogram("trimtab_fast_tick_seconds").Observe(d.Seconds())
	}
}

// write writes quotas. found is set to the quotas read back, or to empty if the groups have changed
// meanwhile.
func (l *loop) write(all []local.Write) {
	l.moves = l.moves[:0]
	for _, w := range all {
		l.moves = append(l.moves, actuator.FastMove{Group: w.Group, Set: w.Set, Burst: w.Burst})
	}
	l.found = l.fastActuator.FastMove(l.look.Generation, l.moves, l.found)
}

// plan passes the current groups and limits to the rule.
func (l *loop) plan() {
	p := local.Plan{Capacity: l.look.Capacity, Lendable: l.look.Lendable, Until: l.look.Until, Groups: make([]local.Group, len(l.look.Groups))}
	for i := range l.look.Groups {
		g := &l.look.Groups[i]
		p.Groups[i] = local.Group{Name: g.Name(), Envelope: g.Envelope}
	}
	if err := l.rule.SetPlan(&p); err != nil {
		if l.ready {
			l.logger.Warn("fast loop: nothing is moved", "err", err)
		}
		l.ready = false
		return
	}
	l.planned, l.ready = l.look.Generation, true
}

// read converts the last look into the input of the rule.
func (l *loop) read() []local.Reading {
	l.readings = l.readings[:0]
	for i := range l.look.Counters {
		c, err := &l.look.Counters[i], l.look.Errs[i]
		r := local.Reading{State: local.Fresh, Used: c.Used, Stalled: c.Stalled, Set: math.Inf(1)}
		switch {
		case gone(err):
			r = local.Reading{State: local.Gone, Set: math.NaN()}
		case err != nil:
			r = local.Reading{Set: math.NaN()}
		case !c.Set.Unlimited:
			r.Set = c.Set.Value
		}
		l.readings = append(l.readings, r)
	}
	return l.readings
}

// contention returns the share of the time since the last look in which the group above was
// throttled, or in which all its tasks waited for a CPU while no quota below throttled one. Larger
// quotas below it would help in neither case. nil: not measured.
func (l *loop) contention() *float64 {
	p := l.look.Parent
	longest := l.longestStall()
	if p == nil {
		l.bound, l.pressed = false, false
		return nil
	}
	stood, elapsed, was := p.Stalled-l.parent, (l.look.At - l.parentAt).Seconds(), l.bound
	l.parent, l.parentAt, l.bound = p.Stalled, l.look.At, true
	waited := 0.0
	if f := l.look.Pressure; f != nil {
		if l.pressed && *f >= l.pressure {
			waited = *f - l.pressure - longest
		}
		l.pressure = *f
	}
	l.pressed = l.look.Pressure != nil
	if !was || !(elapsed > 0) || !(stood >= 0) {
		return nil
	}
	share := math.Min(1, math.Max(stood, waited)/elapsed)
	return &share
}

// longestStall returns the longest time that a quota throttled one group since the last look, in
// seconds. During that time the pressure of the group above does not show a lack of CPUs.
func (l *loop) longestStall() (longest float64) {
	known := len(l.stalled) == len(l.look.Counters)
	if !known {
		l.stalled = make([]float64, len(l.look.Counters))
	}
	for i := range l.look.Counters {
		if l.look.Errs[i] != nil {
			continue
		}
		now := l.look.Counters[i].Stalled
		longest = math.Max(longest, now-l.stalled[i])
		l.stalled[i] = now
	}
	if !known {
		return math.Inf(1)
	}
	return longest
}

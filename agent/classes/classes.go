// Package classes sets, ten times a second, up to which number of requests a HAProxy admits those of
// each class, by the map that its lines read (internal/haproxy):
//
//	read the counters → planner/admission/reservation → set the map → read it back
//
// The bounds have a lease of [Lease], which HAProxy's own clock ends: a killed trimtab leaves none
// behind, and neither journal nor watchdog is needed. If somebody else changed the map, it is left
// alone for a while. Another process of HAProxy, after a restart or reload, begins with the map of
// its file, and what was learnt of the service is learnt again.
//
// The package bounds nothing while a server of the backend has no maxconn: then nobody waits in
// HAProxy. It sets no maxconn, and counts no refusals.
package classes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/planner/admission/reservation"
)

const (
	// Tick is the time between two readings.
	Tick = 100 * time.Millisecond
	// Lease is how long bounds are in force that are not renewed, to a second.
	Lease = 5 * time.Second
)

// Config says what to bound.
type Config struct {
	// Workload is its name in messages.
	Workload string
	Socket   string
	Classes  haproxy.Classes
	// Within is the latency of the SLO.
	Within time.Duration
	// ForeignHold is how long a map is left alone that somebody else changed.
	ForeignHold time.Duration
	// Problem is called when the reason changed why bounds cannot be set; "": they can. It may be nil.
	Problem func(why string)
	// Logger may be nil.
	Logger *slog.Logger
}

// Bounds are the bounds of the classes of one workload.
type Bounds struct {
	config Config
	rule   *reservation.Rule
	// of is the process that was read last.
	of haproxy.Process
	// set are the bounds that are in force, until a Unix time in seconds; nil: none are.
	set   []int
	until int64
	// foreign is the time up to which somebody else's map is left alone.
	foreign time.Time
	// refused is why the map could not be set the last time.
	refused error
	problem string
}

// Open checks the configuration. It does not connect.
func Open(c Config) (*Bounds, error) {
	_, _, err := haproxy.Dialed(c.Socket)
	err = errors.Join(err, c.Classes.Validate())
	if err == nil && (c.Within <= 0 || c.ForeignHold < 0) {
		err = trimtab.Invalidf("within %v, foreign hold %v", c.Within, c.ForeignHold)
	}
	if err != nil {
		return nil, fmt.Errorf("bound the classes of %s: %w", c.Workload, err)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Bounds{config: c}, nil
}

// seen is what HAProxy said.
type seen struct {
	backend haproxy.Backend
	entries map[string]uint64
	err     error
}

// decision is what to write: bounds that differ from those in force, or are to be renewed.
type decision struct {
	most  []int
	until int64
	write bool
}

// Run bounds until ctx ends, and then takes the bounds back.
func (b *Bounds) Run(ctx context.Context) error {
	err := (&agent.Loop[seen, decision]{Every: Tick, Look: b.look, Decide: b.decide, Act: b.act, Tell: func(context.Context, time.Time, decision) {}}).Run(ctx)
	if b.set != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		b.act(ctx, time.Time{}, decision{write: true})
	}
	return err
}

// look reads the counters and the map.
func (b *Bounds) look(ctx context.Context, _ time.Time) (s seen) {
	c := &b.config.Classes
	s.backend, s.err = haproxy.Look(ctx, b.config.Socket, c.Backend, c.Show())
	if s.err == nil && s.backend.Own == nil {
		s.err = trimtab.Invalidf("HAProxy lists no backend %s", c.Backend)
	}
	if s.err == nil {
		s.entries, s.err = haproxy.ParseMap(s.backend.Rest)
	}
	return s
}

// tell reports why the map cannot be read or set, when that changes.
func (b *Bounds) tell(err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why == b.problem {
		return
	}
	b.problem = why
	b.config.Logger.Info("bound classes in HAProxy", "of", b.config.Workload, "problem", why)
	if b.config.Problem != nil {
		b.config.Problem(why)
	}
}

// decide lets the rule decide.
func (b *Bounds) decide(ctx context.Context, now time.Time, s seen) (d decision) {
	if s.err != nil {
		if ctx.Err() == nil {
			b.tell(s.err)
		}
		return d
	}
	if s.backend.Of != b.of {
		b.of, b.set, b.until, b.foreign = s.backend.Of, nil, 0, time.Time{}
		b.rule = reservation.New(b.config.Within, b.config.Classes.Ranks())
	}
	most := b.rule.Tick(reading(now, &s.backend)).Most
	if b.changed(now, s.entries) {
		b.set, b.until, b.foreign = nil, 0, now.Add(b.config.ForeignHold)
	}
	if now.Before(b.foreign) {
		b.tell(fmt.Errorf("somebody else changed the map %s: it is left alone until %s", b.config.Classes.Map, b.foreign.UTC().Format(time.TimeOnly)))
		return d
	}
	if b.refused == nil {
		b.tell(nil)
	}
	switch {
	case most == nil:
		d.write = b.set != nil
	case !slices.Equal(most, b.set) || b.until-now.Unix() < int64(Lease/time.Second)/2:
		d = decision{most: most, until: now.Add(Lease).Unix(), write: true}
	}
	return d
}

// reading turns what HAProxy said into a reading of the rule. Without a limit at each server there is
// none.
func reading(now time.Time, b *haproxy.Backend) reservation.Reading {
	r := reservation.Reading{At: now, Arrived: b.Own.Sessions, Waiting: b.Own.Queued}
	limit, bounded := 0.0, len(b.Servers) > 0
	for i := range b.Servers {
		s := &b.Servers[i]
		r.Answered += s.Answered
		r.Waiting += s.Queued
		r.Serving += s.Serving
		limit += s.Limit.Value
		bounded = bounded && !s.Limit.Unlimited
	}
	if bounded {
		r.Limit = uint64(limit)
	}
	return r
}

// changed reports whether somebody else changed the map: what was written is not there, or bounds are
// in force that were not written.
func (b *Bounds) changed(now time.Time, entries map[string]uint64) bool {
	if b.set == nil {
		return entries[haproxy.UntilKey] > uint64(max(0, now.Add(Lease).Unix()))
	}
	return entries[haproxy.UntilKey] != uint64(b.until) || !slices.Equal(b.config.Classes.Bounds(entries), b.set)
}

// act sets the map. The next round reads it back.
func (b *Bounds) act(ctx context.Context, _ time.Time, d decision) {
	if !d.write {
		return
	}
	c := &b.config.Classes
	commands := []string{c.SetUntil(d.until)}
	if d.most != nil {
		commands = c.SetBounds(d.most, d.until)
	}
	found, err := haproxy.Look(ctx, b.config.Socket, c.Backend, commands...)
	if err == nil {
		err = haproxy.Set(found.Rest)
	}
	if b.refused = err; err != nil {
		b.tell(err)
		b.set, b.until = nil, 0
		return
	}
	b.set, b.until = d.most, d.until
}

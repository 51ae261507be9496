package jobs

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Dispatch is how a host is chosen among the candidates for a speculative task.
type Dispatch int

// The ways of the paper (3.2).
const (
	Random Dispatch = iota
	RoundRobin
)

// Config configures a [Manager]. [Defaults] has the usual values.
type Config struct {
	// Pool is whose jobs these are.
	Pool string
	// Epoch is the leader's term, > 0: no lower than that of the manager before.
	Epoch uint64
	// Dispatch and Seed choose hosts.
	Dispatch Dispatch
	Seed     uint64
	// Tau is the progress, in [0, 1], beyond which a granted task stays where it is.
	Tau float64
	// Lease is how long a host keeps its attempts, counted from when it sent the report that the
	// newest list answers.
	Lease time.Duration
	// QueueTimeout is how long an attempt may wait in a host's queue, and a task for the host
	// that was granted to it.
	QueueTimeout time.Duration
	// KillTimeout is for how long a list includes an attempt that must end, with the reason.
	// After it the attempt is no longer listed, and counts as ended when its lease has.
	KillTimeout time.Duration
	// HostTimeout: a host that was not heard for longer gets no new attempt.
	HostTimeout time.Duration
	// Backoff is the wait after the first failure; it doubles with each until MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// RefusedLimit is how many attempts at one task may be refused, LostLimit how many may be
	// lost with their host or killed by it; with one more, the task has failed.
	RefusedLimit, LostLimit int
	// Queued is how many waiting attempts one host may have, Here how many in all. A regular
	// grant is only bound by Here.
	Queued, Here int
	// Starts is how many attempts one tick places at most.
	Starts int
	// Straggler: an attempt that runs for longer than this many medians of its job's durations is
	// a straggler; 0: none is. StragglerAfter is how many must have ended.
	Straggler      float64
	StragglerAfter int
	// Keep is how long a job that has ended is kept.
	Keep time.Duration
	// MaxJobs and MaxTasks bound what is kept, MaxHosts the hosts that are known.
	MaxJobs, MaxTasks, MaxHosts int
	// StateEvery is the least time between two states of a job.
	StateEvery time.Duration
}

// Defaults returns a configuration without Pool, Epoch and Seed.
func Defaults() Config {
	return Config{
		Tau: .6, Lease: 30 * time.Second, QueueTimeout: time.Minute, KillTimeout: 5 * time.Minute, HostTimeout: 15 * time.Second,
		Backoff: time.Second, MaxBackoff: 5 * time.Minute, RefusedLimit: 20, LostLimit: 20,
		Queued: 8, Here: 200, Starts: 1000, Straggler: 1.5, StragglerAfter: 5,
		Keep: 24 * time.Hour, MaxJobs: 1000, MaxTasks: 1_000_000, MaxHosts: 20_000, StateEvery: 5 * time.Second,
	}
}

// Validate returns an error that is ErrInvalid.
func (c *Config) Validate() error {
	if c.Pool == "" || c.Epoch == 0 || c.Epoch > maxEpoch {
		return trimtab.Invalidf("job manager: pool %.60q, epoch %d: want a name, and 1 to 2^53", c.Pool, c.Epoch)
	}
	if c.Dispatch != Random && c.Dispatch != RoundRobin {
		return trimtab.Invalidf("job manager: dispatch %d: want Random or RoundRobin", int(c.Dispatch))
	}
	if !(c.Tau >= 0 && c.Tau <= 1) || !(c.Straggler == 0 || c.Straggler >= 1) || math.IsInf(c.Straggler, 0) {
		return trimtab.Invalidf("job manager: tau %v, straggler %v: want [0, 1], and 0 or >= 1", c.Tau, c.Straggler)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"queue time-out", c.QueueTimeout, 1}, {"kill time-out", c.KillTimeout, 1}, {"host time-out", c.HostTimeout, 1},
		{"back-off", c.Backoff, 1}, {"largest back-off", c.MaxBackoff, 1}, {"keep", c.Keep, 0}, {"time between states", c.StateEvery, 0},
	} {
		if d.value < d.least || d.value > maxTime {
			return trimtab.Invalidf("job manager: %s %v: want %v to %v", d.name, d.value, d.least, maxTime)
		}
	}
	if c.HostTimeout >= c.Lease || c.Lease > speculation.MaxPlacementLease.Duration() {
		return trimtab.Invalidf("job manager: lease %v: want more than the host time-out of %v, at most %v s", c.Lease, c.HostTimeout, float64(speculation.MaxPlacementLease))
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"attempts that wait on a host", c.Queued}, {"attempts on a host", c.Here}, {"starts", c.Starts},
		{"jobs", c.MaxJobs}, {"tasks", c.MaxTasks}, {"hosts", c.MaxHosts},
	} {
		if n.value < 1 {
			return trimtab.Invalidf("job manager: %d %s: want >= 1", n.value, n.name)
		}
	}
	if c.RefusedLimit < 0 || c.LostLimit < 0 || max(c.RefusedLimit, c.LostLimit) > maxCount || c.Here > speculation.MaxAttemptsHere || c.StragglerAfter < 0 {
		return trimtab.Invalidf("job manager: limits %d and %d, %d attempts on a host, stragglers after %d: want 0 to %d, at most %d, >= 0",
			c.RefusedLimit, c.LostLimit, c.Here, c.StragglerAfter, maxCount, speculation.MaxAttemptsHere)
	}
	return nil
}

const (
	maxEpoch = 1 << 53 // what JSON holds
	maxTime  = 30 * 24 * time.Hour
	maxCount = 1000
)

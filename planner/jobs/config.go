package jobs

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Dispatch is the way to choose a host among the candidates for a speculative task.
type Dispatch int

// The ways in the paper (3.2).
const (
	Random Dispatch = iota
	RoundRobin
)

// Config configures a [Manager]. [Defaults] has the usual values.
type Config struct {
	// Pool is the pool of the jobs.
	Pool string
	// Epoch is the leader's term, > 0 and no lower than that of the previous manager.
	Epoch uint64
	// Dispatch and Seed determine how hosts are chosen.
	Dispatch Dispatch
	Seed     uint64
	// Tau is the progress, in [0, 1], beyond which a running task stays on its host even if it is
	// granted another.
	Tau float64
	// Lease is how long a host may run its attempts without a new list. It counts from when the
	// host sent the report that the newest list answers.
	Lease time.Duration
	// QueueTimeout is how long an attempt may wait in a host's queue, and how long a task waits for
	// the host that was granted to it.
	QueueTimeout time.Duration
	// KillTimeout is how long a list includes an attempt that must end, with the reason. After that
	// it is no longer listed, and counts as ended once its lease has expired.
	KillTimeout time.Duration
	// HostTimeout is the time since its last report after which a host gets no new attempts.
	HostTimeout time.Duration
	// Backoff is the wait after the first failure; it doubles with each until MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// RefusedLimit and LostLimit are how many attempts at one task may be refused, and how many may
	// be lost with their host or killed by it. One more, and the task has failed.
	RefusedLimit, LostLimit int
	// Queued and Here are how many attempts may wait on one host, and how many it may have in all.
	// Only Here limits regular grants.
	Queued, Here int
	// Starts is the largest number of attempts that one tick places.
	Starts int
	// Straggler is the multiple of the median duration in its job beyond which a running attempt is
	// a straggler; 0: none is. StragglerAfter is how many attempts of the job must have ended for
	// that.
	Straggler      float64
	StragglerAfter int
	// Keep is how long a job that has ended is kept.
	Keep time.Duration
	// MaxJobs and MaxTasks bound the jobs and tasks that are kept, MaxHosts the known hosts.
	MaxJobs, MaxTasks, MaxHosts int
	// StateEvery is the least time between two published states of a job.
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

// Validate returns an error that is trimtab.ErrInvalid if a setting is invalid.
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
	maxEpoch = 1 << 53 // the largest integer that JSON represents exactly
	maxTime  = 30 * 24 * time.Hour
	maxCount = 1000
)

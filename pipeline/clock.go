package pipeline

import "time"

// trust is how far the wall clock may be behind a stage's time for the stage to wait; beyond that
// the clock was set back, and the stage's time continues without it.
const trust = time.Hour

// clock gives a stage its time: the wall clock, except that it never goes
// back. Behind a clock that was set back it runs at half speed until that has
// caught up, and at full speed when there is more than an hour to catch up.
type clock struct {
	last time.Time // in UTC, without monotonic reading
	read time.Time // the reading of the clock when last was returned
}

// now returns the time for the next step, given a reading of time.Now.
func (c *clock) now(read time.Time) time.Time {
	wall := read.Round(0).UTC()
	elapsed := max(read.Sub(c.read), 0)
	behind := c.last.Sub(wall)
	switch {
	case c.read.IsZero() || behind <= 0:
		c.last = wall
	case behind > trust:
		c.last = c.last.Add(elapsed)
	default:
		c.last = c.last.Add(elapsed / 2)
	}
	c.read = read
	return c.last
}

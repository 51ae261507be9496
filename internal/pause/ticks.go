package pause

import (
	"context"
	"hash/fnv"
	"os"
	"strconv"
	"time"
)

// Ticks sends the time every d until ctx ends, the first time within d, for housekeeping. Ticks
// of one interval come together, whenever they began, so that an idle process with a dozen of
// them wakes once for all, and not once for each. A tick that is not received is not sent again.
// Processes and hosts do not tick together.
func Ticks(ctx context.Context, d time.Duration) <-chan time.Time {
	own := fnv.New64a()
	host, _ := os.Hostname() // without one the process tells
	own.Write([]byte(host + " " + strconv.Itoa(os.Getpid())))
	apart := own.Sum64() >> 1
	ticks := make(chan time.Time, 1)
	var tick func()
	next := func() {
		time.AfterFunc(d-time.Duration((uint64(time.Now().UnixNano())+apart)%uint64(d)), tick)
	}
	tick = func() {
		if ctx.Err() != nil {
			return
		}
		select {
		case ticks <- time.Now():
		default:
		}
		next()
	}
	next()
	return ticks
}

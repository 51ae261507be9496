package main

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"time"
)

// The scheduler of Go wakes an idle processor for each goroutine that becomes ready, which then
// looks for work in vain: of a proxy with one request at a time that is a third of its CPU time. A
// gate therefore has as many processors as it uses.
const (
	// usedEvery is how often that is looked at. Above busyShare of its processors in use it has
	// another one at once; one is taken away after idleFor looks in a row at which the others would
	// be in use by less than idleShare.
	usedEvery            = 100 * time.Millisecond
	busyShare, idleShare = 0.6, 0.4
	idleFor              = 20
)

// processors is how many processors this process has, of at most most.
type processors struct{ now, most, idle int }

// next returns the number of processors after a look at which used of them were in use.
func (p *processors) next(used float64) int {
	if used < idleShare*float64(p.now-1) {
		p.idle++
	} else {
		p.idle = 0
	}
	switch {
	case used > busyShare*float64(p.now) && p.now < p.most:
		p.now++
	case p.idle >= idleFor && p.now > 1:
		p.now, p.idle = p.now-1, 0
	}
	return p.now
}

// useFewProcessors keeps as many processors as are in use, until ctx ends. GOMAXPROCS in the
// environment replaces it.
func useFewProcessors(ctx context.Context) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	p := &processors{now: 1, most: runtime.GOMAXPROCS(1)}
	go func() {
		t := time.NewTicker(usedEvery)
		defer t.Stop()
		for at, before := time.Now(), cpuTime(); ; {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			now, used := time.Now(), cpuTime()
			had := p.now
			if n := p.next(float64(used-before) / float64(now.Sub(at))); n != had {
				runtime.GOMAXPROCS(n)
			}
			at, before = now, used
		}
	}()
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

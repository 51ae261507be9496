package service

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// chunk is how many rounds of mixing are done between two reads of the clock: some 20 µs, against
// about 0.3 µs for the read.
const chunk = 20_000

// Burn keeps the calling goroutine's thread busy until it has used d of CPU time, by the thread's
// own clock; the result depends on all of the work, so that none is optimised away. Time in which
// the thread did not run does not count.
func Burn(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	x := uint64(d)
	for start := ThreadTime(); ThreadTime()-start < d; {
		x = Mix(x, chunk)
	}
	return x
}

// Mix does n dependent rounds of xorshift.
func Mix(x uint64, n int) uint64 {
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// ThreadTime returns the CPU time of the calling thread, which must be locked.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		// Every Linux has this clock; without it nothing here makes sense.
		panic(fmt.Sprintf("read the thread's clock: %v", err))
	}
	return time.Duration(t.Nano())
}

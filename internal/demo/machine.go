package demo

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/trimtab/trimtab/internal/demo/service"
)

// Machine is the result of the calibration.
type Machine struct {
	// CPUs is the number of CPUs that this process may use.
	CPUs int
	// Free is how much CPU time busy threads, one for each CPU, got per second, in cores, in (0,
	// CPUs].
	Free float64
	// Speed is how many millions of mixing rounds a core does per second of
	// CPU time; the machine that the demo was sized on does about 500.
	Speed float64
}

// referenceSpeed is the speed of the machine on which overhead was measured.
const referenceSpeed = 500

// String describes the measurements.
func (m Machine) String() string {
	return fmt.Sprintf("%d CPUs, %.2f cores free, speed %.0f", m.CPUs, m.Free, m.Speed)
}

// busy reports whether others use more than a quarter of the machine.
func (m Machine) busy() bool { return m.Free < 0.75*float64(m.CPUs) }

// Calibrate measures three times for d and returns the measurement with the most free cores, since
// a short disturbance lowers the others.
func Calibrate(d time.Duration) Machine {
	var best Machine
	for range 3 {
		if m := measure(d); m.Free > best.Free {
			best = m
		}
	}
	return best
}

// measure keeps every CPU (at most 4) busy for d.
func measure(d time.Duration) Machine {
	n := min(runtime.GOMAXPROCS(0), 4)
	type count struct {
		cpu    time.Duration
		rounds int
	}
	counts := make([]count, n)
	begin := time.Now()
	var busy sync.WaitGroup
	for i := range n {
		busy.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start, x := service.ThreadTime(), uint64(i+1)
			for time.Since(begin) < d {
				x = service.Mix(x, 20_000)
				counts[i].rounds += 20_000
			}
			counts[i].cpu = service.ThreadTime() - start + time.Duration(x&1)
		})
	}
	busy.Wait()
	wall := time.Since(begin).Seconds()
	m := Machine{CPUs: runtime.GOMAXPROCS(0)}
	var cpu, rounds float64
	for _, c := range counts {
		cpu += c.cpu.Seconds()
		rounds += float64(c.rounds)
	}
	m.Free = cpu / wall * float64(m.CPUs) / float64(n)
	m.Speed = rounds / cpu / 1e6
	return m
}

package cli

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab/sim"
)

// Counted runs work under a progress bar; work calls done after each part.
func Counted(out io.Writer, what string, total int, work func(done func()) error) error {
	bar := NewProgress(out, what, total)
	var parts atomic.Int64
	over := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-over:
				return
			case <-every.C:
				bar.At(int(parts.Load()))
			}
		}
	})
	err := work(func() { parts.Add(1) })
	close(over)
	shown.Wait()
	bar.Done()
	return err
}

// Parallel returns a runner with the given number of threads; each iteration writes only its own
// results, so the figures are the same for any number. Once ctx is done, no iteration begins.
func Parallel(ctx context.Context, threads int) sim.Runner {
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	return func(n int, work func(i int)) {
		var next atomic.Int64
		var all sync.WaitGroup
		for range min(threads, n) {
			all.Go(func() {
				for ctx.Err() == nil {
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					work(i)
				}
			})
		}
		all.Wait()
	}
}

package parallel

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/trimtab/trimtab/internal/leak"
)

func TestEveryPartRunsOnceAndRunReturnsAfterAll(t *testing.T) {
	defer leak.None(t)
	for threads := range 5 {
		p := New(threads)
		if p.Threads() != max(1, threads) {
			t.Fatalf("%d threads of %d", p.Threads(), threads)
		}
		for n := range 40 {
			ran := make([]int, n) // plain ints: Run must order them before what follows
			p.Run(n, func(part int) { ran[part]++ })
			for part, times := range ran {
				if times != 1 {
					t.Fatalf("%d threads, %d parts: part %d ran %d times", threads, n, part, times)
				}
			}
		}
		p.Close()
	}
}

func TestASleepingWorkerIsWoken(t *testing.T) {
	p := New(2)
	defer p.Close()
	for range 20 {
		for i := 0; !p.workers[0].asleep.Load(); i++ {
			if i > 1e8 {
				t.Fatal("the worker does not go to sleep")
			}
			runtime.Gosched() // it may have no other thread to go to sleep on
		}
		// Each part waits for the other: one thread alone would not return.
		var n atomic.Int32
		p.Run(2, func(int) {
			n.Add(1)
			for i := 0; n.Load() < 2 && !t.Failed(); i++ {
				if i > 1e8 {
					t.Error("the worker does not wake up")
				}
				runtime.Gosched()
			}
		})
	}
}

func TestALoopWaitsForNobodyWhoHasNotBegun(t *testing.T) {
	p := &Pool{workers: make([]worker, 1)} // one that never comes
	ran := 0
	p.Run(3, func(int) { ran++ })
	if ran != 3 {
		t.Fatalf("%d parts ran, want 3", ran)
	}
}

func BenchmarkRun(b *testing.B) {
	p := New(2)
	defer p.Close()
	for b.Loop() {
		p.Run(2, func(int) {})
	}
}

package resctrl_test

import (
	"fmt"
	"testing"

	"github.com/trimtab/trimtab"
)

// BenchmarkRead is one look at one knob of 14 limited workloads, the most that a CPU
// with 15 classes has, with 100 threads.
func BenchmarkRead(b *testing.B) {
	s := server()
	s.Ways = 20
	h := newHost(b, s)
	for i := range 14 {
		var tasks []int
		for t := range 100 {
			tasks = append(tasks, 1000*(i+1)+t)
		}
		h.cgroup(fmt.Sprint("w", i), tasks...)
		h.write(h.knob(fmt.Sprint("w", i), trimtab.LLC), 1)
	}
	k := h.knob("w0", trimtab.LLC)
	for b.Loop() {
		h.read(k)
	}
}

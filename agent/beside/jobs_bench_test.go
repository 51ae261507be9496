package beside

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkATickOfManyJobs is what one decision takes with so many jobs that tell their
// progress in files, on a tree of plain files.
func BenchmarkATickOfManyJobs(b *testing.B) {
	for _, n := range []int{100, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newJobWorld(b, "act", n)
			for i := range n {
				if err := os.WriteFile(filepath.Join(w.root, fmt.Sprintf("progress-%d", i)), []byte(`{"done": 0.25, "saved": 0.25}`), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			w.pass(20, 20, 0.4)
			for b.Loop() {
				w.pass(1, 20, 0.4)
			}
		})
	}
}

package psi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
)

// nowhere drops what it gets.
type nowhere struct{}

func (nowhere) Publish(context.Context, trimtab.Value) error { return nil }

// BenchmarkRound reads the host and 100 groups once.
func BenchmarkRound(b *testing.B) {
	root := b.TempDir()
	text := []byte("some avg10=0.00 avg60=0.66 avg300=0.69 total=226403120\nfull avg10=0.00 avg60=0.61 avg300=0.61 total=70195444\n")
	for i := range 100 {
		dir := filepath.Join(root, fmt.Sprintf("web@%d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for _, r := range resources() {
			if err := os.WriteFile(filepath.Join(dir, r.name+".pressure"), text, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, r := range resources() {
		if err := os.WriteFile(filepath.Join(root, r.name), text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	c, err := poll.Open(from(root), poll.Config{Host: "h", Root: root, Bus: nowhere{}, Targets: []poll.Target{{Workload: "w", Host: "h", Path: "web@*"}}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		c.Round(b.Context())
	}
}

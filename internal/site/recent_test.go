package site

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTheNewestLogLinesAreKeptWithinTheirBound(t *testing.T) {
	r := &RecentLog{}
	line := strings.Repeat("x", 1000) + "\n"
	for i := range 1000 {
		if _, err := fmt.Fprintf(r, "%d %s", i, line); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	if err := r.print(&b); err != nil || b.Len() > recentBytes || b.Len() < recentBytes/2 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if !strings.HasPrefix(lines[len(lines)-1], "999 ") || !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(a[:3], b[:3]) }) {
		t.Errorf("from %.8s to %.8s", lines[0], lines[len(lines)-1])
	}
}

package cgroup

import (
	"os"
	"testing"

	"github.com/trimtab/trimtab"
)

// Found: pages of 4 KiB were written down, so that on arm64 with pages of 16 or 64 KiB
// limits read back as others than were written, and were held as somebody else's. The kernel
// keeps whole pages (mm/page_counter.c, page_counter_memparse), which is played here.
func TestALimitReadsBackAsItWasWrittenOnPagesOfAnySize(t *testing.T) {
	if page() != float64(os.Getpagesize()) {
		t.Errorf("a page has %v bytes, and this kernel's %d", page(), os.Getpagesize())
	}
	for _, page := range []float64{4 << 10, 16 << 10, 64 << 10} {
		for _, asked := range []float64{1, 100 << 20, 100<<20 + 5000, 123_456_789} {
			v := pages(trimtab.Units(asked), page)
			kept := trimtab.Units(float64(uint64(v.Value) / uint64(page) * uint64(page)))
			if v != kept || !(v.Value > 0) {
				t.Errorf("pages of %v: %v is written as %v, and read back as %v", page, asked, v, kept)
			}
		}
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestASmallHeapHasRoomAndALargeOneDoesNotDouble(t *testing.T) {
	for live, want := range map[uint64]int{0: 200, 1 << 20: 200, 10 << 20: 100, 20 << 20: 50, 40 << 20: 25, 200 << 20: 25, 1 << 30: 15} {
		if got := growth(live, roomBeside); got != want {
			t.Errorf("%d MiB live: may grow by %d%%, want %d%%", live>>20, got, want)
		}
	}
}

// mapped maps a file of 64 pages, which are in the page cache.
func mapped(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 64*os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pages, err := unix.Mmap(int(f.Fd()), 0, 64*os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(pages) })
	return pages
}

// mappingOf returns what /proc says of an area.
func mappingOf(t *testing.T, area []byte) mapping {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := readMappings(f)
	if err != nil {
		t.Fatal(err)
	}
	start := uintptr(unsafe.Pointer(&area[0]))
	i := slices.IndexFunc(all, func(m mapping) bool { return m.start == start })
	if i < 0 {
		t.Fatalf("/proc/self/smaps has no area at %x", start)
	}
	return all[i]
}

func TestOnlyTheUsedPagesOfAFileBecomeResident(t *testing.T) {
	pages := mapped(t)
	switch err := mapSingly([]mapping{mappingOf(t, pages)}); {
	case errors.Is(err, errors.ErrUnsupported):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	used := byte(0)
	for _, page := range []int{0, 20, 40} {
		used |= pages[page*os.Getpagesize()]
	}
	if got := mappingOf(t, pages).resident / int64(os.Getpagesize()); got != 3 || used != 0 {
		t.Errorf("%d pages are resident after 3 were read", got)
	}
}

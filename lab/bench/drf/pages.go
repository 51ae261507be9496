package drf

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	solver "github.com/trimtab/trimtab/planner/drf"
)

// pages is memory from the kernel, in huge pages where it gives them: half of
// the time of a large solve is otherwise spent on translating addresses.
type pages struct{ blocks [][]byte }

// of returns n zeroed values of a type without pointers.
func of[T any](p *pages, n int) ([]T, error) {
	var zero T
	bytes := n * int(unsafe.Sizeof(zero))
	if bytes == 0 {
		return nil, nil
	}
	const huge = 2 << 20
	b, err := unix.Mmap(-1, 0, (bytes+huge-1)/huge*huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	p.blocks = append(p.blocks, b)
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a kernel without them gives small pages
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}

// arena returns an arena for s.
func (p *pages) arena(s solver.Size) (a solver.Arena, err error) {
	n := s.Need()
	if a.Entries, err = of[solver.Entry](p, n.Entries); err != nil {
		return a, err
	}
	if a.Cells, err = of[solver.Cell](p, n.Cells); err != nil {
		return a, err
	}
	if a.Guards, err = of[solver.Guard](p, n.Guards); err != nil {
		return a, err
	}
	if a.Spans, err = of[solver.Span](p, n.Spans); err != nil {
		return a, err
	}
	if a.Words, err = of[uint64](p, n.Words); err != nil {
		return a, err
	}
	if a.Numbers, err = of[float64](p, n.Numbers); err != nil {
		return a, err
	}
	a.Indices, err = of[uint32](p, n.Indices)
	return a, err
}

// free gives everything back; no slice of it may be used after that.
func (p *pages) free() {
	for _, b := range p.blocks {
		_ = unix.Munmap(b)
	}
	p.blocks = nil
}

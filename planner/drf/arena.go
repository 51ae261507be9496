package drf

import (
	"fmt"
	"math"
)

// Size has upper bounds on the contents of a [Matrix].
type Size struct {
	// Tenants, Resources and Entries (positive demands) are upper bounds.
	Tenants, Resources, Entries int
}

// Entry is one rate of a row. It is packed into 12 bytes: the solver reads all
// of them from memory once.
type Entry struct{ column, low, high uint32 }

func entry(column uint32, rate float64) Entry {
	b := math.Float64bits(rate)
	return Entry{column, uint32(b), uint32(b >> 32)}
}

func (e Entry) rate() float64 { return math.Float64frombits(uint64(e.low) | uint64(e.high)<<32) }

// Cell is the state of one resource: the part that changes when a tenant freezes. It is small so
// that many stay in the cache, and none crosses a cache line. The number of active tenants is not
// in it: its [Guard] shows whether there is any.
type Cell struct {
	// rate is F, the sum of the rates of the active tenants; room is U, the fraction of the
	// capacity that the frozen tenants leave.
	rate, room float64
}

// Guard says when the rounding error of a [Cell]'s F, the sum of the rates of the active tenants,
// may matter. F must be summed again when it falls below least or below perRoom U. When F is
// below alone, no tenant is active: alone is less than the smallest rate of the column, and more
// than rounding can leave of F. If no such number exists, alone is unsure, which F never falls
// below; then only summing again shows it.
type Guard struct{ least, perRoom, alone float32 }

// guard returns the guard of a sum of n rates. Subtracting n rates leaves an error of the order
// of sqrt(n) 2^-54 times the initial sum, and never more than n 2^-53 times it. The first must
// not change T = U / F by more than 2e-13 of it; the second must not let F T be off by 2e-13 of
// the capacity. smallest is at most the least of the rates.
func guard(rate float64, n uint32, smallest float64) Guard {
	g := Guard{float32(rate * 0x1p-12 * math.Sqrt(float64(n))), float32(rate * float64(n) / perRoomOf), unsure}
	if noise := g.error(n); smallest > 4*noise {
		g.alone = float32(smallest / 2)
	}
	return g
}

const unsure = -math.MaxFloat32

// perRoomOf is the product of perRoom, rate and n.
const perRoomOf = 2000

// error returns a bound on the error of F after adding and subtracting n rates.
func (g Guard) error(n uint32) float64 {
	if n == 0 {
		return 0
	}
	return float64(g.perRoom) * perRoomOf * 0x1p-52
}

// sure has bounds that are valid for all columns: F is exact enough if it is at least rate and
// perRoom U, and below alone no tenant is active. Checking them first saves reading the guards.
type sure struct{ rate, perRoom, alone float64 }

func (s *sure) add(g Guard) {
	s.rate, s.perRoom = max(s.rate, float64(g.least)), max(s.perRoom, float64(g.perRoom))
	s.alone = min(s.alone, float64(g.alone))
}

// lostRate reports whether cancellation may have cost F digits that matter.
func (x *Cell) lostRate(g Guard) bool {
	return x.rate < float64(g.least) || x.rate < float64(g.perRoom)*x.room
}

// lostRoom reports the same for U.
func (x *Cell) lostRoom(column *Span) bool {
	return x.room < littleRoom && x.room*x.room < float64(column.length)*0x1p-28
}

// littleRoom is the value of U above which no column is long enough for U to have lost digits.
const littleRoom = 0x1p-9

// atLeast returns a lower bound of T, however many digits F and U have lost.
func (x *Cell) atLeast(g Guard, n uint32) float64 {
	return max(0, x.room-float64(n)*0x1p-52) / (x.rate + 2*g.error(n))
}

// Span is a stretch of entries or indices.
type Span struct{ start, length uint32 }

func (s Span) end() uint32 { return s.start + s.length }

// Arena is memory that the caller owns: zeroed, from the heap ([NewArena]) or elsewhere, such as
// huge pages. A [Matrix] keeps using it.
type Arena struct {
	Entries []Entry
	Cells   []Cell
	Guards  []Guard
	Spans   []Span
	Words   []uint64
	Numbers []float64
	Indices []uint32
}

// Need has the sizes that an [Arena] must have.
type Need struct{ Entries, Cells, Guards, Spans, Words, Numbers, Indices int }

// Bytes returns the size of that memory.
func (n Need) Bytes() int64 {
	return 12*int64(n.Entries) + 16*int64(n.Cells) + 12*int64(n.Guards) + 8*(int64(n.Spans)+int64(n.Words)+int64(n.Numbers)) + 4*int64(n.Indices)
}

// Need returns the sizes of an arena for s.
func (s Size) Need() Need {
	return Need{
		Entries: s.Entries,
		Cells:   2 * s.Resources,
		Guards:  s.Resources,
		Spans:   s.Tenants + s.Resources,
		Words:   s.Tenants/32 + 1 + siftBlock,
		Numbers: 2*s.Tenants + s.Resources,
		Indices: s.Entries + // columns
			3*s.Tenants + // freeze order, binding resource, order of limits
			s.Tenants + walkBudget + // gathered rows
			calendarNeed(s.Resources) + s.Resources, // calendar, drained
	}
}

// check returns an error for sizes that exceed 32-bit indices.
func (s Size) check() error {
	const most = math.MaxUint32 / 2
	if s.Tenants < 0 || s.Resources < 0 || s.Entries < 0 || s.Tenants > most || s.Resources > most || s.Entries > math.MaxUint32 {
		return fmt.Errorf("%d tenants, %d resources, %d entries: %w", s.Tenants, s.Resources, s.Entries, ErrMemory)
	}
	return nil
}

// NewArena returns an arena for s from the heap.
func NewArena(s Size) Arena {
	n := s.Need()
	return Arena{make([]Entry, n.Entries), make([]Cell, n.Cells), make([]Guard, n.Guards), make([]Span, n.Spans),
		make([]uint64, n.Words), make([]float64, n.Numbers), make([]uint32, n.Indices)}
}

// take removes the first n values of *from and returns them.
func take[T any](from *[]T, n int) []T {
	head := (*from)[:n:n]
	*from = (*from)[n:]
	return head
}

// holds reports whether the arena has the sizes n.
func (a *Arena) holds(n Need) bool {
	return len(a.Entries) >= n.Entries && len(a.Cells) >= n.Cells && len(a.Guards) >= n.Guards && len(a.Spans) >= n.Spans &&
		len(a.Words) >= n.Words && len(a.Numbers) >= n.Numbers && len(a.Indices) >= n.Indices
}

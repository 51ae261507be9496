package machines

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Number is the precision of an [Index]: float32 halves its memory, float64
// keeps the digits of a paper.
type Number interface{ float32 | float64 }

// Index is the aggregator's knowledge of every machine, one column for each quantity. Positions
// are those in the list of [Index.SetMachines].
type Index[F Number] struct {
	config  Config
	columns columns[F]
	at      map[string]uint32
	// largest is the largest capacity of each dimension; 0: none is reported. unsure marks those
	// whose largest may have left.
	largest []float64
	unsure  []bool
	ratings ratings

	why   []Reason
	ranks []ranked[F]
}

// columns are the machines' state. NaN is missing.
type columns[F Number] struct {
	ids            []string
	load, capacity [][]F // by dimension
	cpi, mpki      []F
	score          []int64
	// told is the time of the last report by the machine's clock, seen its arrival (never: none has
	// arrived), and since is when reports without a gap began; all in Unix nanoseconds.
	told, seen, since []int64
	unsettled         []bool
}

// never is before every time that a report can arrive at, parted after: the
// machine was said to be gone.
const (
	never  = math.MinInt64
	parted = math.MaxInt64
)

func newColumns[F Number](dimensions, n int) columns[F] {
	c := columns[F]{
		ids: make([]string, n), load: make([][]F, dimensions), capacity: make([][]F, dimensions),
		cpi: make([]F, n), mpki: make([]F, n), score: make([]int64, n),
		told: make([]int64, n), seen: make([]int64, n), since: make([]int64, n), unsettled: make([]bool, n),
	}
	for d := range dimensions {
		c.load[d], c.capacity[d] = make([]F, n), make([]F, n)
	}
	return c
}

// clear makes row i that of a machine which never reported.
func (c *columns[F]) clear(i int) {
	missing := F(math.NaN())
	for d := range c.load {
		c.load[d][i], c.capacity[d][i] = missing, missing
	}
	c.cpi[i], c.mpki[i], c.seen[i] = missing, missing, never
}

// copy makes row i what row j of from is.
func (c *columns[F]) copy(i int, from *columns[F], j uint32) {
	for d := range c.load {
		c.load[d][i], c.capacity[d][i] = from.load[d][j], from.capacity[d][j]
	}
	c.cpi[i], c.mpki[i], c.score[i] = from.cpi[j], from.mpki[j], from.score[j]
	c.told[i], c.seen[i], c.since[i], c.unsettled[i] = from.told[j], from.seen[j], from.since[j], from.unsettled[j]
}

// New returns an index without machines.
func New[F Number](c Config) (*Index[F], error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("make index of machines: %w", err)
	}
	c.Dimensions = slices.Clone(c.Dimensions)
	n := len(c.Dimensions)
	return &Index[F]{config: c, columns: newColumns[F](n, 0), largest: make([]float64, n), unsure: make([]bool, n), ratings: newRatings()}, nil
}

// IDs returns the list of machines, which belongs to the index and never changes: a later
// [Index.SetMachines] makes another.
func (x *Index[F]) IDs() []string { return x.columns.ids }

// Position returns where a machine is in the list.
func (x *Index[F]) Position(id string) (at uint32, ok bool) {
	at, ok = x.at[id]
	return at, ok
}

// SetMachines sets the list of all machines, in this order. Machines that stay keep their state
// and scores. A list with an empty name, a name longer than [MaxName], a name twice, or more than
// [MaxMachines] is refused as a whole. changed reports whether the list differs from before.
func (x *Index[F]) SetMachines(ids []string) (changed bool, err error) {
	if slices.Equal(ids, x.columns.ids) {
		return false, nil
	}
	at, err := positions(ids)
	if err != nil {
		return false, fmt.Errorf("set machines: %w", err)
	}
	next := newColumns[F](len(x.config.Dimensions), len(ids))
	moved := make([]uint32, len(x.columns.ids))
	for i := range moved {
		moved[i] = gone
	}
	for i, id := range ids {
		next.ids[i] = id
		if j, known := x.at[id]; known {
			next.copy(i, &x.columns, j)
			moved[j] = uint32(i)
		} else {
			next.clear(i)
		}
	}
	x.columns, x.at = next, at
	x.ratings.move(moved)
	for d := range x.unsure {
		x.unsure[d] = true
	}
	x.why, x.ranks = nil, nil // of another length
	return true, nil
}

// MaxName is the longest name of a machine in bytes, as of a host in the DNS.
const MaxName = 253

// positions checks a list and indexes it.
func positions(ids []string) (map[string]uint32, error) {
	if len(ids) > MaxMachines {
		return nil, trimtab.Invalidf("%d machines: want at most %d", len(ids), MaxMachines)
	}
	at := make(map[string]uint32, len(ids))
	for i, id := range ids {
		if id == "" || len(id) > MaxName {
			return nil, trimtab.Invalidf("machine %d: a name of %d bytes: want 1 to %d", i, len(id), MaxName)
		}
		if first, twice := at[id]; twice {
			return nil, trimtab.Invalidf("machine %.60q stands at %d and at %d", id, first, i)
		}
		at[id] = uint32(i)
	}
	return at, nil
}

// settle brings the largest capacities up to date.
func (x *Index[F]) settle() {
	for d, unsure := range x.unsure {
		if !unsure {
			continue
		}
		most := F(0)
		for _, c := range x.columns.capacity[d] {
			if c > most { // never for NaN
				most = c
			}
		}
		x.largest[d], x.unsure[d] = float64(most), false
	}
}

// Score returns the rating of the machine at a position: 0, or less.
func (x *Index[F]) Score(at uint32) int64 { return x.columns.score[at] }

// lastSecond is in the year 2242; nanoseconds in an int64 reach a little further.
const lastSecond = 1 << 33

// nanoseconds returns t as Unix nanoseconds, if it is a time that can be.
func nanoseconds(t time.Time) (ns int64, ok bool) {
	return t.UnixNano(), t.Unix() >= 0 && t.Unix() < lastSecond
}

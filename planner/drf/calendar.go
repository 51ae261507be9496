package drf

import "math"

// A chunk is one cache line: [cursor of the chunk before it, items…].
const (
	chunkSize  = 16
	chunkItems = chunkSize - 1
)

// calendarOctaves is the number of doublings of T that the windows span before they are laid out
// again.
const calendarOctaves = 4

// windowsPerOctave is a power of two that puts a hundred or so resources into
// one window. Smaller windows make more passes: with 128 windows, not 512,
// `trimtab-lab bench drf --tenants 100000 --resources 100000` makes 721 passes,
// not 2059, with as many looks.
func windowsPerOctave(resources int) int {
	n := 128
	for n < resources/1024 {
		n *= 2
	}
	return n
}

// calendarBuckets returns the number of windows, with the one for all later times.
func calendarBuckets(resources int) int { return calendarOctaves*windowsPerOctave(resources) + 1 }

// calendarChunks returns how many chunks the resources may need: each window has at most one chunk
// that is not full. The first is not used.
func calendarChunks(resources int) int {
	return resources/chunkItems + calendarBuckets(resources) + 2
}

// calendarNeed returns how many indices a calendar takes.
func calendarNeed(resources int) int {
	return calendarBuckets(resources) + chunkSize*calendarChunks(resources)
}

// calendar is a queue of resources by a lower bound of T. Positive floats are ordered as their
// bits are, so a window is a range of bits, and windows are shorter where T is small. A window is
// a list of chunks, identified by its cursor: the index in chunks of the next item, 0 when it is
// empty. Adding reads only the cursor.
type calendar struct {
	cursors []uint32
	chunks  []uint32
	free    uint32 // list of chunks, by their number; 0: none
	fresh   uint32 // chunks never used
	shift   uint
	base    uint64 // bits >> shift of the first window
	now     int    // index of the present window
}

func (c *calendar) lay(resources int, a *Arena) {
	c.chunks = take(&a.Indices, chunkSize*calendarChunks(resources))
	c.cursors = take(&a.Indices, calendarBuckets(resources))
	c.shift = 52
	for n := windowsPerOctave(resources); n > 1; n /= 2 {
		c.shift--
	}
}

func (c *calendar) reset(least uint64) {
	clear(c.cursors)
	c.free, c.fresh, c.now = 0, 0, 0
	c.base = least >> c.shift
}

// add adds r at its T, given as bits. T must not lie before the present window.
func (c *calendar) add(r uint32, bits uint64) {
	w := int(bits>>c.shift) - int(c.base)
	w = min(max(w, c.now), len(c.cursors)-1)
	at := c.cursors[w]
	if at%chunkSize == 0 { // the window is empty, or its chunk is full
		at = c.chunk(at)
	}
	c.chunks[at] = r
	c.cursors[w] = at + 1
}

// chunk returns the index of the first item of a new chunk, which follows the chunk with this
// cursor.
func (c *calendar) chunk(before uint32) uint32 {
	chunk := c.free
	if chunk != 0 {
		c.free = c.chunks[chunk*chunkSize]
	} else {
		c.fresh++
		chunk = c.fresh
	}
	c.chunks[chunk*chunkSize] = before
	return chunk*chunkSize + 1
}

// drain appends the items of the present window to out and empties it.
func (c *calendar) drain(out []uint32) []uint32 {
	for cursor := c.cursors[c.now]; cursor != 0; {
		chunk := (cursor - 1) / chunkSize
		start := chunk * chunkSize
		out = append(out, c.chunks[start+1:cursor]...)
		cursor = c.chunks[start]
		c.chunks[start], c.free = c.free, chunk
	}
	c.cursors[c.now] = 0
	return out
}

// low and high return the bits at the two ends of the present window.
func (c *calendar) low() uint64 { return (c.base + uint64(c.now)) << c.shift }

func (c *calendar) high() uint64 { return (c.base + uint64(c.now) + 1) << c.shift }

// later reports whether the present window is the last, which has all later values of T.
func (c *calendar) later() bool { return c.now == len(c.cursors)-1 }

// never is the key of a resource that no active tenant demands.
const never = math.MaxUint64

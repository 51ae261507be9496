package drf

import "math"

// A chunk is [next, count, items…].
const (
	chunkSize  = 32
	chunkItems = chunkSize - 2
)

// calendarOctaves is how many doublings of T the windows span before they are
// laid out anew.
const calendarOctaves = 4

// windowsPerOctave is a power of two that puts a hundred or so resources into
// one window.
func windowsPerOctave(resources int) int {
	n := 512
	for n < resources/1024 {
		n *= 2
	}
	return n
}

// calendarBuckets is how many windows there are, with the one for all that
// comes later.
func calendarBuckets(resources int) int { return calendarOctaves*windowsPerOctave(resources) + 1 }

// calendar is a queue of resources by a lower bound of T. Positive floats are
// ordered as their bits are, so a window is a range of bits, and windows are
// shorter where T is small. A window is a list of chunks.
type calendar struct {
	heads  []uint32 // chunk+1, 0: empty
	chunks []uint32
	free   uint32 // list of chunks, as in heads
	fresh  uint32 // chunks never used
	shift  uint
	base   uint64 // bits >> shift of the first window
	now    int    // window that is being worked off
}

func (c *calendar) lay(resources int, a *Arena) {
	b := calendarBuckets(resources)
	c.heads = take(&a.Indices, b)
	c.chunks = take(&a.Indices, chunkSize*(resources/chunkItems+b+2))
	c.shift = 52
	for n := windowsPerOctave(resources); n > 1; n /= 2 {
		c.shift--
	}
}

func (c *calendar) reset(least uint64) {
	clear(c.heads)
	c.free, c.fresh, c.now = 0, 0, 0
	c.base = least >> c.shift
}

// add puts r where its T, given as bits, says; never before the present
// window.
func (c *calendar) add(r uint32, bits uint64) {
	w := int(bits>>c.shift) - int(c.base)
	w = min(max(w, c.now), len(c.heads)-1)
	head := c.heads[w]
	if head != 0 {
		chunk := c.chunks[(head-1)*chunkSize:][:chunkSize]
		if n := chunk[1]; n < chunkItems {
			chunk[2+n] = r
			chunk[1] = n + 1
			return
		}
	}
	chunk := c.chunk()
	s := c.chunks[(chunk-1)*chunkSize:][:chunkSize]
	s[0], s[1], s[2] = head, 1, r
	c.heads[w] = chunk
}

func (c *calendar) chunk() uint32 {
	if chunk := c.free; chunk != 0 {
		c.free = c.chunks[(chunk-1)*chunkSize]
		return chunk
	}
	c.fresh++
	return c.fresh
}

// drain appends what is in the present window to out and empties it.
func (c *calendar) drain(out []uint32) []uint32 {
	for chunk := c.heads[c.now]; chunk != 0; {
		s := c.chunks[(chunk-1)*chunkSize:][:chunkSize]
		out = append(out, s[2:2+s[1]]...)
		next := s[0]
		s[0], c.free = c.free, chunk
		chunk = next
	}
	c.heads[c.now] = 0
	return out
}

// low and high are the bits between which the present window is.
func (c *calendar) low() uint64 { return (c.base + uint64(c.now)) << c.shift }

func (c *calendar) high() uint64 { return (c.base + uint64(c.now) + 1) << c.shift }

// later says whether the present window is the last, of all that come later.
func (c *calendar) later() bool { return c.now == len(c.heads)-1 }

// never is the key of a resource that nobody active demands.
const never = math.MaxUint64

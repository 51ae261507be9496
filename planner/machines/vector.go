package machines

import (
	"encoding/binary"
	"math/bits"

	"github.com/trimtab/trimtab"
)

// A vector of bits over n machines is encoded as one byte of form, the count of ones, and then
// either n bits, or the gaps between the ones in a Rice code: with parameter k a gap g is g >> k
// ones, a zero, and the k low bits of g. The shorter one is used. A tenth of the machines, spread
// at random, takes 0.48 bits a machine; the entropy is 0.47.
const (
	formBits = 0
	formRice = 1 // and up: formRice + k
	mostRice = 24
)

// appendVector appends the vector with ones at these positions, ascending.
func appendVector(b []byte, n int, ones []uint32) []byte {
	k, size := riceParameter(ones)
	if size >= n {
		b = binary.AppendUvarint(append(b, formBits), uint64(len(ones)))
		at := len(b)
		b = append(b, make([]byte, (n+7)/8)...)
		for _, i := range ones {
			b[at+int(i/8)] |= 1 << (i % 8)
		}
		return b
	}
	b = binary.AppendUvarint(append(b, formRice+byte(k)), uint64(len(ones)))
	w := bitWriter{b: b}
	next := uint32(0)
	for _, i := range ones {
		gap := i - next
		for range gap >> k {
			w.write(1, 1)
		}
		w.write(0, 1)
		w.write(gap, k)
		next = i + 1
	}
	return w.b
}

// riceParameter returns the best parameter and its size in bits.
func riceParameter(ones []uint32) (k, size int) {
	var sums [mostRice + 1]int
	next := uint32(0)
	for _, i := range ones {
		gap := i - next
		for k := range bits.Len32(gap) { // beyond, gap >> k is 0
			if k <= mostRice {
				sums[k] += int(gap >> k)
			}
		}
		next = i + 1
	}
	for i, sum := range sums {
		if all := sum + len(ones)*(1+i); i == 0 || all < size {
			k, size = i, all
		}
	}
	return k, size
}

// readVector reads a vector over n machines from the front of b. It allocates
// at most 4 bytes for each bit that b has.
func readVector(b []byte, n int) (ones []uint32, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, trimtab.Invalidf("bit vector: it ends too early")
	}
	form := b[0]
	count, rest, err := readNumber(b[1:])
	if err != nil {
		return nil, nil, err
	}
	if form > formRice+mostRice || count > uint64(n) || count > 8*uint64(len(rest)) {
		return nil, nil, trimtab.Invalidf("bit vector: form %d, %d ones of %d in %d bytes", form, count, n, len(rest))
	}
	if form == formBits {
		return readBits(rest, n, int(count))
	}
	return readRice(rest, n, int(count), int(form-formRice))
}

func readBits(b []byte, n, count int) (ones []uint32, rest []byte, err error) {
	size := (n + 7) / 8
	if len(b) < size {
		return nil, nil, trimtab.Invalidf("bit vector: %d bytes, want %d", len(b), size)
	}
	ones = make([]uint32, 0, count)
	for i, octet := range b[:size] {
		for ; octet != 0; octet &= octet - 1 {
			at := 8*i + bits.TrailingZeros8(octet)
			if at >= n || len(ones) == count {
				return nil, nil, trimtab.Invalidf("bit vector: more than %d ones, or beyond %d", count, n)
			}
			ones = append(ones, uint32(at))
		}
	}
	if len(ones) != count {
		return nil, nil, trimtab.Invalidf("bit vector: %d ones, want %d", len(ones), count)
	}
	return ones, b[size:], nil
}

func readRice(b []byte, n, count, k int) (ones []uint32, rest []byte, err error) {
	r := bitReader{b: b}
	ones = make([]uint32, 0, count)
	next := uint64(0)
	for range count {
		gap := uint64(0)
		for r.bit() == 1 {
			gap += 1 << k
		}
		for i := range k {
			gap += uint64(r.bit()) << i
		}
		next += gap
		if r.over() || next >= uint64(n) {
			return nil, nil, trimtab.Invalidf("bit vector: a one at %d of %d", next, n)
		}
		ones = append(ones, uint32(next))
		next++
	}
	return ones, b[min(len(b), (r.at+7)/8):], nil
}

// bitWriter appends bits, the low ones of a byte first.
type bitWriter struct {
	b    []byte
	used int // bits of the last byte; 0: all
}

// write appends the n low bits of v, lowest first.
func (w *bitWriter) write(v uint32, n int) {
	for i := range n {
		if w.used == 0 {
			w.b = append(w.b, 0)
		}
		w.b[len(w.b)-1] |= byte(v>>i&1) << w.used
		w.used = (w.used + 1) % 8
	}
}

// bitReader reads what bitWriter wrote; behind the end are zeros.
type bitReader struct {
	b  []byte
	at int
}

func (r *bitReader) bit() byte {
	at := r.at
	r.at++
	if at >= 8*len(r.b) {
		return 0
	}
	return r.b[at/8] >> (at % 8) & 1
}

func (r *bitReader) over() bool { return r.at > 8*len(r.b) }

// readNumber reads a number as [binary.AppendUvarint] writes it.
func readNumber(b []byte) (v uint64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, trimtab.Invalidf("number: it ends too early or is too long")
	}
	return v, b[n:], nil
}

package num

import "math"

// Isotonic replaces y by its isotonic regression with weights w, in place.
// It needs len(w) == len(y) and w > 0. Blocks is scratch of at least len(y);
// a nil one is allocated.
//
// With the same weights, y ≤ z everywhere implies Isotonic(y) ≤ Isotonic(z)
// everywhere: bands stay in order.
func Isotonic(y, w []float64, blocks []Block) {
	if cap(blocks) < len(y) {
		blocks = make([]Block, len(y))
	}
	blocks, n, top := blocks[:len(y)], 0, math.Inf(-1)
	for i, v := range y {
		b := Block{Mean: v, weight: w[i], size: 1}
		if v < top {
			for ; n > 0 && blocks[n-1].Mean > b.Mean; n-- {
				b = blocks[n-1].join(b)
			}
		}
		blocks[n], top = b, b.Mean
		n++
	}
	i := 0
	for _, b := range blocks[:n] {
		if b.size == 1 {
			i++
			continue // unchanged
		}
		for range b.size {
			y[i] = b.Mean
			i++
		}
	}
}

// Block is a run of equal values of an isotonic regression.
type Block struct {
	Mean   float64
	weight float64
	size   int
}

func (b Block) join(c Block) Block {
	w := b.weight + c.weight
	return Block{Mean: b.Mean + (c.Mean-b.Mean)*(c.weight/w), weight: w, size: b.size + c.size}
}

package num

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
	blocks = blocks[:0]
	for i, v := range y {
		b := Block{Mean: v, weight: w[i], size: 1}
		for n := len(blocks); n > 0 && blocks[n-1].Mean > b.Mean; n-- {
			b = blocks[n-1].join(b)
			blocks = blocks[:n-1]
		}
		blocks = append(blocks, b)
	}
	i := 0
	for _, b := range blocks {
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

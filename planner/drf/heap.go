package drf

// before orders candidates by T, ties by column.
func before(a, b candidate) bool { return byKey(a, b) < 0 }

// heapify makes h a binary heap with the smallest in front.
func heapify(h []candidate) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		down(h, i)
	}
}

// pop removes the smallest and returns it.
func pop(h *[]candidate) candidate {
	s := *h
	least := s[0]
	last := len(s) - 1
	s[0] = s[last]
	*h = s[:last]
	down(s[:last], 0)
	return least
}

func down(h []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && before(h[child+1], h[child]) {
			child++
		}
		if !before(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func push(h *[]candidate, c candidate) {
	*h = append(*h, c)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !before(s[i], s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

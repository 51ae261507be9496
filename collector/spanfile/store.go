package spanfile

// chunk is the number of spans that are stored together, so that growing moves none.
const chunk = 1 << 13

// store keeps spans in the order in which they came.
type store struct {
	chunks [][]held
	n      int
}

func (s *store) add(h held) {
	if s.n/chunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]held, chunk))
	}
	s.chunks[s.n/chunk][s.n%chunk] = h
	s.n++
}

func (s *store) at(i int) *held { return &s.chunks[i/chunk][i%chunk] }

// cut forgets all spans but the first n.
func (s *store) cut(n int) {
	s.n = min(s.n, n)
	s.chunks = s.chunks[:(s.n+chunk-1)/chunk]
}

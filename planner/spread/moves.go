package spread

// Move is the change of one instance's amount.
type Move struct {
	// Workload and Instance are places in the [Pool].
	Workload, Instance int
	From, To           int
	// AfterHost and AfterPool are how many shrinks must be confirmed before the move is made: of
	// its host the first AfterHost in the order of the moves, and of all the first AfterPool.
	AfterHost, AfterPool int
}

// Moves returns the moves to the amounts: the shrinks, then the grows, each with the shrinks that
// it waits for. While an unconfirmed move counts at the larger of From and To, neither a host nor
// the pool exceeds at any instant its capacity, or what it may hold now. A grow that does not fit
// once all shrinks are confirmed is left out.
func (p *Pool) Moves(amounts [][]int) []Move {
	pool := room{left: p.Quanta}
	hosts := make([]room, len(p.Hosts))
	for h, c := range p.Hosts {
		hosts[h].left = c
	}
	var moves []Move
	p.each(amounts, func(in *Instance, m Move) {
		hosts[in.Host].left -= in.counts()
		pool.left -= in.counts()
		if !in.Unreadable && m.To < m.From {
			hosts[in.Host].free(m.From - m.To)
			pool.free(m.From - m.To)
			moves = append(moves, m)
		}
	})
	p.each(amounts, func(in *Instance, m Move) {
		host := &hosts[in.Host]
		if in.Unreadable || m.To <= m.From || !host.holds(m.To-m.From) || !pool.holds(m.To-m.From) {
			return
		}
		m.AfterHost, m.AfterPool = host.take(m.To-m.From), pool.take(m.To-m.From)
		moves = append(moves, m)
	})
	return moves
}

// each calls f with every instance and its move.
func (p *Pool) each(amounts [][]int, f func(*Instance, Move)) {
	for j := range p.Workloads {
		for i := range p.Workloads[j].Instances {
			in := &p.Workloads[j].Instances[i]
			f(in, Move{Workload: j, Instance: i, From: in.Current, To: amounts[j][i]})
		}
	}
}

// room is what a host, or the pool, has left, and what its shrinks free, in order: the first
// freed of them are counted in left, the others in ahead.
type room struct {
	left, ahead int
	frees       []int
	freed       int
}

func (r *room) free(quanta int) {
	r.frees = append(r.frees, quanta)
	r.ahead += quanta
}

// holds reports whether a grow fits once all shrinks are confirmed.
func (r *room) holds(quanta int) bool { return quanta <= r.left+r.ahead }

// take subtracts what a grow needs and returns how many shrinks it waits for.
func (r *room) take(quanta int) (after int) {
	for r.left < quanta {
		r.left += r.frees[r.freed]
		r.ahead -= r.frees[r.freed]
		r.freed++
	}
	r.left -= quanta
	return r.freed
}

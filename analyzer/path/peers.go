package path

import "github.com/trimtab/trimtab/codec"

// A peer is the target of calls that sends no spans: a database, a broker, or an external service.
// It is a place without a workload, with the name in the callers' spans.
const (
	// maxPeers is the largest number of peers, maxPeersOf that for one caller's place, and maxCalls
	// that of all pairs of a place and a peer. Beyond these limits, time in a peer counts as the
	// caller's own.
	maxPeers, maxPeersOf, maxCalls = 1024, 64, 1 << 15
)

// origin identifies where a span comes from: a place or, with the bit called set, a pair of a place
// and the peer that it calls.
type origin uint32

const called origin = 1 << 31

// pair is a place with a peer that its spans call.
type pair struct {
	home, peer placeID
	// seen is when it was last in a frame, Unix ns.
	seen int64
}

// calls has the pairs of place and peer that spans have named.
type calls struct {
	pairs  []pair
	byPair map[[2]placeID]uint32
	spare  []uint32
	// byName has the peers by name.
	byName map[placeKey]placeID
}

// frameSender is the sender of a resource in a frame, with its peers.
type frameSender struct {
	sender
	// origins are the origins of its spans, by the number of the called peer; 0: no peer. peers is
	// how many it has.
	origins [codec.MaxPeers + 1]origin
	peers   uint8
}

// call adds the origin of the spans that call the resource's next peer.
func (s *frameSender) call(o origin) {
	if s.peers < codec.MaxPeers {
		s.peers++
		s.origins[s.peers] = o
	}
}

// origin returns the origin of a span that calls the peer with the given number.
func (s *frameSender) origin(peer uint8) origin {
	if peer > s.peers {
		peer = 0
	}
	return s.origins[peer]
}

// split returns the place where spans of an origin ran, and the peer that they call.
func (p *places) split(o origin) (place, peer placeID) {
	if o&called == 0 {
		return placeID(o), nowhere
	}
	x := &p.calls.pairs[o&^called]
	return x.home, x.peer
}

// calling returns the origin of spans that ran at home and call a peer.
func (p *places) calling(home placeID, name []byte) origin {
	if home == nowhere {
		return origin(home)
	}
	peer, known := p.calls.byName[placeKey{workload: noWorkload, component: string(name)}]
	if known {
		if i, ok := p.calls.byPair[[2]placeID{home, peer}]; ok {
			p.seen[peer], p.calls.pairs[i].seen = p.now, p.now
			return called | origin(i)
		}
	}
	full := func() bool {
		return !known && len(p.calls.byName) >= maxPeers || len(p.calls.byPair) >= maxCalls || p.places[home].peers >= maxPeersOf
	}
	if full() {
		p.sweep()
		peer, known = p.calls.byName[placeKey{workload: noWorkload, component: string(name)}]
	}
	if full() {
		p.refusedPeers++
		return origin(home)
	}
	if !known {
		peer = p.newPeer(cleanName(string(name)))
	}
	p.seen[peer] = p.now
	return called | origin(p.newPair(home, peer))
}

// newPeer returns the place of a peer with a cleaned name, creating it if needed.
func (p *places) newPeer(name string) placeID {
	key := placeKey{workload: noWorkload, component: name}
	id, ok := p.calls.byName[key]
	if !ok {
		id = p.allocate()
		p.places[id] = place{workload: noWorkload, component: name, base: id}
		p.calls.byName[key] = id
	}
	return id
}

func (p *places) newPair(home, peer placeID) uint32 {
	c := &p.calls
	key := [2]placeID{home, peer}
	i, ok := c.byPair[key]
	if !ok {
		i = uint32(len(c.pairs))
		if n := len(c.spare); n > 0 {
			i, c.spare = c.spare[n-1], c.spare[:n-1]
		} else {
			c.pairs = append(c.pairs, pair{})
		}
		c.byPair[key] = i
		p.places[home].peers++
	}
	c.pairs[i] = pair{home, peer, p.now}
	return i
}

// sweepCalls drops the pairs that were not seen for long.
func (p *places) sweepCalls() {
	c := &p.calls
	for i, x := range c.pairs {
		key := [2]placeID{x.home, x.peer}
		if at, ok := c.byPair[key]; ok && at == uint32(i) && p.now-x.seen > p.idle() {
			delete(c.byPair, key)
			c.spare = append(c.spare, at)
			p.places[x.home].peers--
		}
	}
}

// isPeer reports whether a place is a peer.
func (p *places) isPeer(id placeID) bool {
	return id != nowhere && id != beyond && p.places[id].workload == noWorkload
}

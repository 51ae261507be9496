package path

// index finds spans of one trace by their id. It is a hash table with open addressing; if ids
// were chosen to collide, it changes to a map, whose hash cannot be predicted from outside, so
// that n ids never cost more than O(n).
type index struct {
	slots  []slot
	epoch  uint32
	mask   uint64
	shift  uint8
	probes int // that may still be made before it falls back to the map
	spare  map[uint64]*slot
}

// slot has the spans with one id: 1 + the index of the node of the caller's side (client, producer,
// internal) and of the callee's (server, consumer), 0 if there is none. Both exist if the two sides
// share an id, as in Zipkin.
type slot struct {
	id    uint64
	epoch uint32
	sides [2]int32
}

// reset empties the index and allocates it for n ids.
func (x *index) reset(n int) {
	bits := uint8(4)
	for 1<<bits < 2*n {
		bits++
	}
	if len(x.slots) < 1<<bits {
		x.slots = make([]slot, 1<<bits)
		x.epoch = 0
	}
	if x.epoch++; x.epoch == 0 {
		clear(x.slots)
		x.epoch = 1
	}
	x.mask, x.shift = 1<<bits-1, 64-bits
	x.probes = 16*n + 64
	x.spare = nil
}

// find returns the slot of id. If there is none, it creates it if add is set, else it returns nil.
func (x *index) find(id uint64, add bool) *slot {
	if x.spare != nil {
		return x.findSpare(id, add)
	}
	for i := id * 0x9E3779B97F4A7C15 >> x.shift; ; i = (i + 1) & x.mask {
		s := &x.slots[i]
		if s.epoch != x.epoch {
			if !add {
				return nil
			}
			*s = slot{id: id, epoch: x.epoch}
			return s
		}
		if s.id == id {
			return s
		}
		if x.probes--; x.probes < 0 {
			x.fallBack()
			return x.findSpare(id, add)
		}
	}
}

func (x *index) findSpare(id uint64, add bool) *slot {
	s := x.spare[id]
	if s == nil && add {
		s = &slot{id: id}
		x.spare[id] = s
	}
	return s
}

// fallBack moves all slots to the map.
func (x *index) fallBack() {
	x.spare = map[uint64]*slot{}
	for i := range x.slots[:x.mask+1] {
		if s := &x.slots[i]; s.epoch == x.epoch {
			x.spare[s.id] = s
		}
	}
}

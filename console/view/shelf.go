package view

import (
	"encoding/json"
	"iter"
	"math"
	"os"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// A decision takes 1.2 KiB of memory, and 10^5 of them are kept. Those that will not change any
// more are moved to files, compressed to about 300 bytes each (lab/bench/small, 100 groups, rounds
// of 1 s).

const (
	// freshDecisions is about how many decisions of all workloads together stay in memory;
	// leastFresh and mostFresh bound those of one workload.
	freshDecisions        = 4096
	leastFresh, mostFresh = 4, 64
	// unanswered is how long the answer of an actuator may take.
	unanswered = 10 * time.Minute
	// segmentBytes is the size of a full file, maxShelfBytes the largest size of all.
	segmentBytes, maxShelfBytes = 4 << 20, 256 << 20
)

// shelf keeps decisions in files that have no name, so that nothing is left of
// them however the process ends: after a restart decisions are read again from
// the bus. Decisions go oldest first, so a file is given up when the last in
// it has gone.
type shelf struct {
	// dir is the directory of the files; "": all decisions stay in memory.
	dir     string
	current *segment
	bytes   int64 // of all segments that are in use
	// refused is when the disk last refused a write.
	refused time.Time
}

// segment is one file.
type segment struct {
	file *os.File
	size int64
	used int // chunks
}

// chunk is a row of decisions of one workload on the shelf.
type chunk struct {
	segment *segment
	at      int64
	size    int
	// seconds has the time of each decision that is kept, in s since 1970, oldest first: the
	// oldest are dropped first. all is how many decisions the chunk had before that.
	seconds []uint32
	all     int
	// last is the position of its newest decision among plans.
	last newest.Position
}

// position returns the position of the decision among all.
func (d *Decision) position() newest.Position { return newest.At(d.Epoch, d.Sequence, d.Step) }

// retryShelf is how long no decision is moved after the disk refused a write.
const retryShelf = 10 * time.Second

// takes reports whether there is room for more, as far as is known.
func (f *shelf) takes() bool { return f.dir != "" && time.Since(f.refused) >= retryShelf }

// put writes decisions of one workload. It reports false where they must stay
// in memory.
func (f *shelf) put(all []*Decision) (c chunk, ok bool) {
	text, err := json.Marshal(all)
	if err != nil {
		f.refused = time.Now() // one has a number that JSON does not have
		return c, false
	}
	packed := s2.Encode(nil, text)
	if err := f.write(&c, packed); err != nil {
		f.refused = time.Now()
		return c, false
	}
	c.all, c.last = len(all), all[len(all)-1].position()
	for _, d := range all {
		c.seconds = append(c.seconds, uint32(min(max(d.Time.Unix(), 0), math.MaxUint32)))
	}
	return c, true
}

func (f *shelf) write(c *chunk, packed []byte) error {
	if f.current == nil || f.current.size+int64(len(packed)) > segmentBytes && f.current.size > 0 {
		file, err := os.CreateTemp(f.dir, "console-*")
		if err != nil {
			return err
		}
		if err := os.Remove(file.Name()); err != nil {
			file.Close()
			return err
		}
		old := f.current
		f.current = &segment{file: file}
		f.leave(old)
	}
	s := f.current
	if _, err := s.file.WriteAt(packed, s.size); err != nil {
		return err
	}
	c.segment, c.at, c.size = s, s.size, len(packed)
	s.size += int64(len(packed))
	s.used++
	f.bytes += int64(len(packed))
	return nil
}

// leave gives up a file in which nothing is used any more.
func (f *shelf) leave(s *segment) {
	if s == nil || s.used > 0 || s == f.current {
		return
	}
	f.bytes -= s.size
	s.file.Close()
}

// drop gives a chunk up.
func (f *shelf) drop(c *chunk) {
	c.segment.used--
	f.leave(c.segment)
}

// take reads the decisions of a chunk that are kept; none where the file cannot
// be read.
func (c *chunk) take() []*Decision {
	packed := make([]byte, c.size)
	if _, err := c.segment.file.ReadAt(packed, c.at); err != nil {
		return nil
	}
	text, err := s2.Decode(nil, packed)
	if err != nil {
		return nil
	}
	var all []*Decision
	if json.Unmarshal(text, &all) != nil || len(all) != c.all {
		return nil
	}
	return all[c.all-len(c.seconds):]
}

// stored returns how many decisions on the workload are kept.
func (s *decisionLog) stored() int { return s.shelved + len(s.decisions) }

// shelve puts the older decisions of a workload, one of n, on the shelf when
// there are many in memory. What a report or an outcome may still change stays,
// unless there are very many.
func (b *book) shelve(s *state, of spread) {
	most := min(max(freshDecisions/max(of.workloads, 1), leastFresh), mostFresh)
	if len(s.decisions) <= most || !b.shelf.takes() {
		return
	}
	newest := s.decisions[len(s.decisions)-1]
	settled := newest.Time.Add(-effectRounds * max(of.round, time.Second))
	k := 0
	for k < len(s.decisions)-most/2 {
		d := s.decisions[k]
		if d.sameRound(newest) || len(s.decisions) <= 4*most && (d.Time.After(settled) || d.Result == nil && newest.Time.Sub(d.Time) < unanswered) {
			break
		}
		k++
	}
	if k < most/4+1 {
		return
	}
	c, ok := b.shelf.put(s.decisions[:k])
	if !ok {
		return
	}
	for _, d := range s.decisions[:k] {
		b.cost -= d.cost()
	}
	s.chunks, s.shelved = append(s.chunks, c), s.shelved+k
	s.decisions = slices.Clone(s.decisions[k:])
}

func (d *Decision) sameRound(o *Decision) bool { return d.Epoch == o.Epoch && d.Sequence == o.Sequence }

// fetch moves decisions from the shelf back to memory, until those from p on are there.
func (b *book) fetch(s *state, p newest.Position) {
	for n := len(s.chunks); n > 0 && s.chunks[n-1].last.Compare(p) >= 0; n-- {
		b.unshelve(s)
	}
}

// unshelve takes the newest chunk back to memory.
func (b *book) unshelve(s *state) {
	n := len(s.chunks)
	c := &s.chunks[n-1]
	all := c.take()
	for _, d := range all {
		b.cost += d.cost()
	}
	if lost := len(c.seconds) - len(all); lost > 0 {
		b.lose(s, lost)
	}
	s.shelved -= len(c.seconds)
	b.shelf.drop(c)
	s.chunks = slices.Delete(s.chunks, n-1, n)
	s.decisions = slices.Concat(all, s.decisions)
}

// lose removes a workload's decisions that could not be read back from the order in which decisions
// are dropped.
func (b *book) lose(s *state, n int) {
	b.order = slices.DeleteFunc(b.order, func(other *state) bool {
		n--
		if other != s || n < 0 {
			n++
			return false
		}
		return true
	})
}

// refute forgets the decisions of plans that belong behind p.
func (b *book) refute(p *trimtab.Plan) {
	from := newest.PositionOf(p)
	all := map[*state]bool{}
	for _, s := range b.order {
		all[s] = true
	}
	left := map[*state]int{} // how many of its decisions stay
	for s := range all {
		b.fetch(s, from)
		for _, d := range s.cut(from, s.room()) {
			b.cost -= d.cost()
			b.tally.dropped(d)
		}
		for len(s.decisions) == 0 && len(s.chunks) > 0 {
			b.unshelve(s) // the newest are in memory
		}
		left[s] = s.stored()
	}
	kept := b.order[:0]
	for _, s := range b.order {
		n := left[s]
		if n > 0 {
			kept = append(kept, s)
			n--
		}
		left[s] = n
	}
	clear(b.order[len(kept):])
	b.order = kept
}

// oldest is the time of the first decision.
func (s *decisionLog) oldest() time.Time {
	if len(s.chunks) > 0 {
		return time.Unix(int64(s.chunks[0].seconds[0]), 0)
	}
	return s.decisions[0].Time
}

// dropOldest forgets the first decision.
func (b *book) dropOldest(s *state) {
	if len(s.chunks) == 0 {
		b.cost -= s.decisions[0].cost()
		s.decisions[0] = nil
		s.decisions = s.decisions[1:]
		return
	}
	c := &s.chunks[0]
	s.shelved--
	if c.seconds = c.seconds[1:]; len(c.seconds) == 0 {
		b.shelf.drop(c)
		s.chunks = slices.Delete(s.chunks, 0, 1)
	}
}

// backward yields all decisions that are kept, the newest first.
func (s *decisionLog) backward() iter.Seq[*Decision] {
	return s.before(newest.At(math.MaxUint64, math.MaxUint64, math.MaxInt))
}

// replace puts another version of a decision in its place: readers may still
// hold the old one.
func (s *decisionLog) replace(i int, d *Decision) {
	if old := s.decisions[i]; s.newestOn[old.Action.Resource] == old {
		s.newestOn[old.Action.Resource] = d
	}
	s.decisions[i] = d
}

// cut drops the decisions of plans from p on, which were fetched before. room is how many
// resources are kept.
func (s *decisionLog) cut(p newest.Position, room int) (dropped []*Decision) {
	n := s.find(p)
	dropped = s.decisions[n:]
	s.decisions = slices.Clone(s.decisions[:n])
	clear(s.newestOn)
	looked := 0
	for d := range s.backward() {
		if looked++; looked > lookBack {
			break
		}
		if s.newestOn[d.Action.Resource] == nil && len(s.newestOn) < room {
			s.noteNewest(d, room)
		}
	}
	return dropped
}

// lookBack bounds how far back the newest decision on a resource is looked for
// when what came after it was made up.
const lookBack = 1000

// noteNewest records the newest decision on its resource. If there are too many resources, it drops
// the one with the oldest decision.
func (s *decisionLog) noteNewest(d *Decision, room int) {
	if s.newestOn == nil {
		s.newestOn = map[string]*Decision{}
	}
	s.newestOn[d.Action.Resource] = d
	if len(s.newestOn) <= room {
		return
	}
	oldest := d
	for _, other := range s.newestOn {
		if c := other.position().Compare(oldest.position()); c < 0 || c == 0 && other != d && (oldest == d || other.Action.Resource < oldest.Action.Resource) {
			oldest = other
		}
	}
	delete(s.newestOn, oldest.Action.Resource)
}

// before yields the decisions before p, the newest first. It reads chunks from the shelf one by
// one, as they are needed.
func (s *decisionLog) before(p newest.Position) iter.Seq[*Decision] {
	return func(yield func(*Decision) bool) {
		for i := s.find(p) - 1; i >= 0; i-- {
			if !yield(s.decisions[i]) {
				return
			}
		}
		first := len(s.chunks) // from here on all stand behind p
		for first > 1 && s.chunks[first-2].last.Compare(p) >= 0 {
			first--
		}
		for i := first - 1; i >= 0; i-- {
			for _, d := range slices.Backward(s.chunks[i].take()) {
				if d.position().Compare(p) < 0 && !yield(d) {
					return
				}
			}
		}
	}
}

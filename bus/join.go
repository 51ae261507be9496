package bus

import (
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
)

// joiner joins the pieces of plans, in any order and with repetitions. Its zero value is ready.
type joiner struct {
	open []*joining // in the order in which they began
	// done are the latest plans that were returned: pieces of them that come again are ignored.
	done []planStep
}

// planStep names one step of one plan.
type planStep struct {
	pool            string
	epoch, sequence uint64
	step            int
}

// joining is a plan of which only some pieces have arrived.
type joining struct {
	name   planStep
	pieces map[int]*trimtab.Plan
}

// maxJoining bounds the incomplete plans. A planner sends one after the other: the rest of an
// older one will not come, since its sender ended.
const maxJoining = 4

// add returns the plans that p completes, and the incomplete ones that are given up for it. It
// ignores the parts for hosts.
func (j *joiner) add(p *trimtab.Plan) (done []*trimtab.Plan) {
	switch {
	case p.Host != "":
		return nil
	case p.Pieces == 0:
		return []*trimtab.Plan{p}
	}
	name := planStep{p.Pool, p.Epoch, p.Sequence, p.Step}
	if slices.Contains(j.done, name) {
		return nil
	}
	i := slices.IndexFunc(j.open, func(o *joining) bool { return o.name == name })
	if i < 0 {
		if len(j.open) == maxJoining {
			done = j.drop(0)
		}
		i = len(j.open)
		j.open = append(j.open, &joining{name: name, pieces: map[int]*trimtab.Plan{}})
	}
	o := j.open[i]
	o.pieces[p.Piece] = p
	if len(o.pieces) >= p.Pieces {
		done = append(done, j.drop(i)...)
	}
	return done
}

// drop ends one plan, and returns it if its first piece has come.
func (j *joiner) drop(i int) []*trimtab.Plan {
	o := j.open[i]
	j.open = slices.Delete(j.open, i, i+1)
	if j.done = append(j.done, o.name); len(j.done) > maxJoining {
		j.done = slices.Delete(j.done, 0, 1)
	}
	first := o.pieces[1]
	if first == nil {
		return nil
	}
	whole := *first
	whole.Piece, whole.Pieces = 0, 0
	whole.Actions, whole.Envelopes = slices.Clip(whole.Actions), slices.Clip(whole.Envelopes)
	whole.Held, whole.Unmoved, whole.Alarms = maps.Clone(whole.Held), maps.Clone(whole.Unmoved), maps.Clone(whole.Alarms)
	for n := 2; n <= first.Pieces; n++ {
		if piece := o.pieces[n]; piece != nil {
			whole.Actions, whole.Envelopes = append(whole.Actions, piece.Actions...), append(whole.Envelopes, piece.Envelopes...)
			whole.Held, whole.Unmoved = merged(whole.Held, piece.Held), merged(whole.Unmoved, piece.Unmoved)
			whole.Alarms = merged(whole.Alarms, piece.Alarms)
		}
	}
	return []*trimtab.Plan{&whole}
}

// merged adds a piece's entries; all may be nil, and may be changed.
func merged[T any](all, more map[string]T) map[string]T {
	if all == nil && len(more) > 0 {
		all = make(map[string]T, len(more))
	}
	maps.Copy(all, more)
	return all
}

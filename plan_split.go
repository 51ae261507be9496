package trimtab

import (
	"maps"
	"slices"
)

// pieceSize is how many entries a piece of a plan has: actions, envelopes, and workloads that
// were held or not moved. maxPieces bounds the pieces of one plan.
const pieceSize, maxPieces = 1000, 10_000

// Split returns the messages of a plan. With several Hosts, the pieces are for parts that watch:
// each has some of the actions and of the reasons, and the first has everything else. The parts
// are for the hosts: each has the actions of one, and nothing about others; a host without
// actions gets one too, which renews the lease. With one host the plan is the only piece.
//
// The plan of 10,000 workloads is 10 MB with its reasons, and a thousand hosts would each read
// all of it.
func (p *Plan) Split() (pieces, parts []Value) {
	if len(p.Hosts) < 2 {
		return []Value{p}, nil
	}
	return p.pieces(), p.parts()
}

// parts returns the part of each host.
func (p *Plan) parts() (parts []Value) {
	of := make(map[string][]Action, len(p.Hosts))
	for i := range p.Actions {
		of[p.Actions[i].Host] = append(of[p.Actions[i].Host], p.Actions[i])
	}
	within := make(map[string][]Enveloped, len(p.Hosts))
	for i := range p.Envelopes {
		within[p.Envelopes[i].Host] = append(within[p.Envelopes[i].Host], p.Envelopes[i])
	}
	hosts := slices.AppendSeq(slices.AppendSeq(slices.Clone(p.Hosts), maps.Keys(of)), maps.Keys(within))
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		part := *p
		part.Hosts, part.Host, part.Actions = nil, host, of[host]
		part.Held, part.Unmoved, part.Alarms, part.Verdicts, part.Audit = nil, nil, nil, nil, nil
		part.Lendable, part.Envelopes = lendableOf(p, host), within[host]
		parts = append(parts, &part)
	}
	return parts
}

// pieces returns the plan in pieces of about pieceSize entries.
func (p *Plan) pieces() (pieces []Value) {
	n := max(1, (len(p.Actions)+len(p.Envelopes)+len(p.Held)+len(p.Unmoved)+len(p.Alarms)+pieceSize-1)/pieceSize)
	held, unmoved, alarmed := slices.Sorted(maps.Keys(p.Held)), slices.Sorted(maps.Keys(p.Unmoved)), slices.Sorted(maps.Keys(p.Alarms))
	for i := range n {
		piece := *p
		piece.Hosts, piece.Piece, piece.Pieces = nil, i+1, n
		piece.Actions, piece.Envelopes = share(p.Actions, i, n), share(p.Envelopes, i, n)
		piece.Held, piece.Unmoved = only(p.Held, share(held, i, n)), only(p.Unmoved, share(unmoved, i, n))
		piece.Alarms = only(p.Alarms, share(alarmed, i, n))
		if i > 0 {
			piece.Verdicts, piece.Audit, piece.Lendable = nil, nil, nil
		}
		pieces = append(pieces, &piece)
	}
	return pieces
}

// share is the i-th of n runs of all, which differ in length by 1 at most; nil: it
// is empty.
func share[T any](all []T, i, n int) []T {
	if from, to := i*len(all)/n, (i+1)*len(all)/n; from < to {
		return all[from:to:to]
	}
	return nil
}

// only returns the entries of some workloads; nil: none.
func only[T any](of map[string]T, names []string) map[string]T {
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]T, len(names))
	for _, name := range names {
		out[name] = of[name]
	}
	return out
}

// lendableOf returns a plan's entry for one host.
func lendableOf(p *Plan, host string) map[string]float64 {
	if v, ok := p.Lendable[host]; ok {
		return map[string]float64{host: v}
	}
	return nil
}

// Joiner joins the pieces of plans, in any order and with repetitions. Its zero value is ready.
type Joiner struct {
	open []*joining // in the order in which they began
	// done are the latest that were handed out: what comes again of them is no news.
	done []planStep
}

// planStep names one step of one plan.
type planStep struct {
	pool            string
	epoch, sequence uint64
	step            int
}

// joining is one plan of which some pieces have come.
type joining struct {
	name   planStep
	pieces map[int]*Plan
}

// maxJoining bounds the incomplete plans. A planner sends one after the other: the rest of an
// older one will not come, since its sender ended.
const maxJoining = 4

// Take returns the plans that p completes, and the incomplete ones that are given up for it. It
// ignores the parts for hosts.
func (j *Joiner) Take(p *Plan) (done []*Plan) {
	switch {
	case p.Host != "":
		return nil
	case p.Pieces == 0:
		return []*Plan{p}
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
		j.open = append(j.open, &joining{name: name, pieces: map[int]*Plan{}})
	}
	o := j.open[i]
	o.pieces[p.Piece] = p
	if len(o.pieces) >= p.Pieces {
		done = append(done, j.drop(i)...)
	}
	return done
}

// drop ends one plan, and returns it if its first piece has come.
func (j *Joiner) drop(i int) []*Plan {
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
	return []*Plan{&whole}
}

// merged adds a piece's entries; all may be nil, and may be changed.
func merged[T any](all, more map[string]T) map[string]T {
	if all == nil && len(more) > 0 {
		all = make(map[string]T, len(more))
	}
	maps.Copy(all, more)
	return all
}

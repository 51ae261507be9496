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

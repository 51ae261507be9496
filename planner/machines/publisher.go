package machines

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// Publisher is the aggregator's side: it knows the list and the candidates,
// their versions, and the messages that say them.
type Publisher struct {
	now  message // as a full message
	next []byte  // the candidates message
	full []byte  // made when a job manager asks for it
}

// NewPublisher returns the publisher of one life of the aggregator. life increases with each
// life, > 0 and below 2^63: the epoch of a leader, or the time of the start.
func NewPublisher(life uint64) (*Publisher, error) {
	if life == 0 || life > math.MaxInt64 {
		return nil, trimtab.Invalidf("make publisher: life %d: want > 0 and below 2^63", life)
	}
	p := &Publisher{now: message{kind: kindFull, list: list{life: life, digest: digest(nil)}}}
	return p, nil
}

// Update takes the list of all machines and the positions of the candidates in it, in any order,
// and returns the message for all job managers. Send it in each round, even if nothing changed:
// it is the heartbeat. Changes get a new version: ver_m for the list, ver_c for either.
func (p *Publisher) Update(ids []string, candidates []uint32) ([]byte, error) {
	sorted := slices.Sorted(slices.Values(candidates))
	for i, c := range sorted {
		if int(c) >= len(ids) || i > 0 && sorted[i-1] == c {
			return nil, trimtab.Invalidf("publish candidates: position %d of %d machines: want each once", c, len(ids))
		}
	}
	moved := p.next == nil || !slices.Equal(ids, p.now.ids)
	if moved {
		if _, err := positions(ids); err != nil {
			return nil, fmt.Errorf("publish candidates: %w", err)
		}
	}
	if !moved && slices.Equal(sorted, p.now.candidates) {
		return p.next, nil
	}
	if p.now.version == math.MaxUint64 { // ver_m is never larger
		p.now.list.life, p.now.list.version, p.now.version = p.now.list.life+1, 0, 0
		moved = true
	}
	if moved {
		p.now.ids = slices.Clone(ids)
		p.now.list.digest, p.now.list.n = digest(ids), len(ids)
		p.now.list.version++
	}
	p.now.version++
	p.now.candidates = sorted
	m := p.now
	m.kind, m.ids = kindCandidates, nil
	p.next, p.full = m.encode(), nil
	return p.next, nil
}

// Versions returns ver_m and ver_c.
func (p *Publisher) Versions() (machines, candidates uint64) {
	return p.now.list.version, p.now.version
}

// Full returns the message with the whole list and the candidates, the same bytes until something
// changes: it may be stored.
func (p *Publisher) Full() []byte {
	if p.full == nil {
		p.full = p.now.encode()
	}
	return p.full
}

// Answer returns the answer to a job manager's request, sent by itself or with its heartbeat: the
// full message, or nothing if it has the list. A request that cannot be read is
// trimtab.ErrInvalid.
func (p *Publisher) Answer(request []byte) ([]byte, error) {
	m, err := decode(request)
	if err != nil {
		return nil, fmt.Errorf("answer job manager: %w", err)
	}
	if m.kind != kindRequest {
		return nil, trimtab.Invalidf("answer job manager: %v: want a request", m)
	}
	if p.next == nil || m.list.life > 0 && m.list.same(p.now.list) {
		return nil, nil // nothing to tell yet, or nothing new
	}
	return p.Full(), nil
}

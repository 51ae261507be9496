package rose

import (
	"cmp"
	"slices"
)

// busiest is how many machines the resource manager hands speculative tasks to at a
// time, those with the shortest queues by their last heartbeat
// (yarn.resourcemanager.opportunistic-container-allocation.nodes-used).
const busiest = 10

// central is a job manager's heartbeat with the resource manager: what was answered to
// the last is sent to machines, which see it at their own next heartbeat; then it asks.
// From asking to the queue are three intervals: the answer, the launch, the heartbeat.
func (p *play) central(j *job) {
	for _, a := range j.answers {
		if !a.void {
			a.to.inbox = append(a.to.inbox, a)
		}
	}
	j.answers = j.answers[:0]
	p.expire(j)
	nodes := p.shortest()
	for len(nodes) > 0 && len(j.todo) > 0 && len(j.queued) < p.Window && (p.run.Attempts == 0 || p.submitted < p.run.Attempts) {
		a := p.attempt(j)
		m := nodes[j.cursor%len(nodes)]
		j.cursor++
		p.submitted++
		a.to = m
		j.queued, j.answers = append(j.queued, a), append(j.answers, a)
	}
}

// shortest are the machines that may take speculative tasks as the resource manager
// knows them: of those under the thresholds, the ones with the shortest queues.
func (p *play) shortest() []*machine {
	var all []*machine
	for _, m := range p.machines {
		if m.told.cpu < p.UpperCPU && m.told.disk < p.UpperDisk {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b *machine) int { return cmp.Compare(a.told.queued, b.told.queued) })
	return all[:min(len(all), busiest)]
}

// deliver puts into the queue of a machine what came since its last heartbeat.
func (p *play) deliver(m *machine) {
	for _, a := range m.inbox {
		if a.void {
			continue
		}
		a.offered = p.now
		if p.offer(a, m) {
			continue
		}
		p.settled++
		a.job.queued = drop(a.job.queued, a)
		a.job.todo = append(a.job.todo, a.task)
	}
	m.inbox = m.inbox[:0]
}

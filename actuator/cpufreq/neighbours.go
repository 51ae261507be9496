package cpufreq

import (
	"slices"
	"sync"
)

// Neighbours are the knobs of one process, each with the policies of its group as it read them
// last. It is used to find two groups that share a policy, since each would change the other's
// clock. The zero Neighbours is ready to use. It is safe for concurrent use.
type Neighbours struct {
	mu   sync.Mutex
	open map[*Frequency][]string
	// known has the shapes of the policies while these CPUs are online.
	known  shapes
	online string
}

// shapes returns the shapes of the policies.
func (n *Neighbours) shapes(f files) (shapes, error) {
	online, err := f.Online()
	if err != nil || online == "" {
		return readShapes(f, system)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known != nil && n.online == online {
		return n.known, nil
	}
	known, err := readShapes(f, system)
	if err == nil {
		n.known, n.online = known, online
	}
	return known, err
}

func (n *Neighbours) add(k *Frequency) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = map[*Frequency][]string{}
	}
	n.open[k] = nil
}

func (n *Neighbours) remove(k *Frequency) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, k)
}

// set records the policies of an open knob.
func (n *Neighbours) set(k *Frequency, policies []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.open[k]; ok {
		n.open[k] = policies
	}
}

// shares returns the group of another knob that uses one of the policies, and that policy; "" if
// there is none. Two knobs of the same group count as one.
func (n *Neighbours) shares(k *Frequency, policies []string) (group, policy string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, theirs := range n.open {
		if other.config.Root == k.config.Root && other.config.Path == k.config.Path {
			continue
		}
		for _, p := range policies {
			if slices.Contains(theirs, p) && (group == "" || other.config.Path < group) {
				group, policy = other.config.Path, p
			}
		}
	}
	return group, policy
}

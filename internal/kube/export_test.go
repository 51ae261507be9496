package kube

import "time"

// Age makes a cluster believe that so much time has passed.
func Age(c *Cluster, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = d
}

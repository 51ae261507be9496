package config

import "slices"

// OnHost reports whether a host has the knob of the workload.
func (w *Workload) OnHost(host string) bool { return w.Knob.Host == "" || w.Knob.Host == host }

// Elsewhere reports whether the file names another host that has a knob of the pool.
func (c *Config) Elsewhere(host string) bool {
	return slices.ContainsFunc(c.Workloads, func(w Workload) bool { return !w.OnHost(host) })
}

// ManyHosts names the key by which the pool may have knobs on other hosts than this one;
// "": it has none.
func (c *Config) ManyHosts(host string) string {
	switch {
	case c.NATS.URL != "":
		return "nats.url"
	case c.NATS.Listen != "":
		return "nats.listen"
	case c.Elsewhere(host):
		return "knob.host"
	}
	return ""
}

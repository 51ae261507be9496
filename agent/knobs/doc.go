// Package knobs converts the knobs that the configuration declares into those that an actuator
// opens: their locations on this host, their bounds, the host's capacity for them, and whether the
// pool can share its CPU time by weight.
//
//	all, err := knobs.Of(kinds, cfg, host)
//	targets, finders, err := knobs.OpenAll(kinds, all)
//
// It sets nothing: package actuator does.
package knobs

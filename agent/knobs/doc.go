// Package knobs turns the knobs that the configuration file declares into those that an
// actuator opens: where they are on this host, their bounds, what of the host they may give
// out, and whether the CPU time of the pool can be shared by weight.
//
//	all, err := knobs.Of(kinds, cfg, host)
//	targets, finders, err := knobs.OpenAll(kinds, all)
//
// It sets nothing: package actuator does.
package knobs

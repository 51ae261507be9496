// Package site runs the whole pipeline in one process, or the parts of one role:
// the bus, the web server, and the parts that a configuration names, which are
// the stages, what collects for them and what exports from them. Where several
// processes meet on a NATS server, what one at a time has to do is done under a
// lock (pipeline.Alone).
//
//	s, err := site.Open(ctx, cfg, site.Options{Logger: logger, Load: load})
//	…
//	err = s.Reload(ctx) // only what changed is restarted
//	…
//	err = s.Close()     // in the reverse order of the flow
//
// It turns the configuration file into that of each stage (wire.go) and names the
// parts (stages.go); package supervise starts them, replaces at a reload those
// whose built configuration is another, and says of each whether it is ready. It
// decides nothing, and reads no flags.
package site

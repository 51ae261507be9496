// Package gate limits what a `trimtab gate` admits, through the admin API of the gate:
//
//	1 ≤ requests in service ≤ max of the envelope
//	requests admitted per second ≤ rate, of all requests or of one class
//
// Below that maximum the gate's own rule moves the limit. A rate that is not exact it raises up to 1.5
// times while its service is not busy. Each limit is a knob of its own, with its own resource in the API,
// so that no knob has to know of the others. It expires a [Lease] after it
// was set. A Read by the knob that set it renews it; an actuator reads its knobs every
// few seconds. If trimtab is killed or stops reading, it expires, and nothing bounds the
// gate's rule any more.
//
// A gate does not identify its process, so trimtab does not notice a restart. A restarted gate has
// no limit until the next plan sets one.
//
//	knob, err := gate.Open(gate.Config{URL: "unix:/run/trimtab/checkout.gate"})
//	…
//	err = knob.Write(ctx, trimtab.Units(40))
package gate
